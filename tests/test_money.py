"""Costs to the last digit, who pays them, and the whole numbers that they are stored as."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import money
from zurelay.model import Price
from zurelay.money import Charge, Ending
from zurelay.usage import Usage


def price(input: str, output: str, cached: str | None = None, write: str | None = None) -> Price:
    return Price(
        input=Decimal(input),
        output=Decimal(output),
        cached_input=None if cached is None else Decimal(cached),
        cache_write=None if write is None else Decimal(write),
    )


OPUS = price("3.5", "17.5", "0.35", "4.375")
CHEAP = price("0.025", "0.12")
EXACT = price("0.000000000001", "999999.999999999999")

COSTS = {
    "nothing used": (OPUS, Usage(), "0"),
    "one token in": (CHEAP, Usage(prompt=1), "0.000000025"),
    "one token out": (CHEAP, Usage(completion=1), "0.00000012"),
    "a million in": (OPUS, Usage(prompt=1_000_000), "3.5"),
    "input and output": (OPUS, Usage(prompt=1000, completion=200), "0.007"),
    "reasoning is inside the output": (OPUS, Usage(completion=200, reasoning=150), "0.0035"),
    # 4 x 3.5 + 2455 x 0.35 per million: a prompt that is nearly all cached costs nearly a tenth
    "a cached prompt": (OPUS, Usage(prompt=2459, cached=2455), "0.00087325"),
    "a cache read and a write": (OPUS, Usage(prompt=500, cached=300, cache_written=200), "0.00098"),
    "no cache prices: the input price": (CHEAP, Usage(prompt=500, cached=300, cache_written=200), "0.0000125"),
    "the finest price": (EXACT, Usage(prompt=1), "0.000000000000000001"),
    "the largest figures": (EXACT, Usage(completion=1 << 40), "1099511627775.999998900488372224"),
    "no price at all in a free model": (price("0", "0"), Usage(prompt=10, completion=10), "0"),
    "negative counts are none": (OPUS, Usage(prompt=-5, completion=-1, cached=-3), "0"),
    "more cached than there was": (OPUS, Usage(prompt=10, cached=100), "0.000035"),
}


@pytest.mark.parametrize(("prices", "usage", "expected"), [pytest.param(*row, id=name) for name, row in COSTS.items()])
def test_a_cost_is_exact(prices: Price, usage: Usage, expected: str) -> None:
    assert Decimal(expected) == money.cost(prices, usage)


amounts = st.decimals(min_value=0, max_value=10**6, places=12)
tokens = st.integers(min_value=0, max_value=1 << 40)


@given(amounts, amounts, amounts, tokens, tokens, tokens)
def test_a_cost_is_what_fractions_say(inward: Decimal, out: Decimal, cached: Decimal, a: int, b: int, c: int) -> None:
    found = money.cost(
        Price(input=inward, output=out, cached_input=cached), Usage(prompt=a + b, cached=b, completion=c)
    )
    assert (a * Fraction(inward) + b * Fraction(cached) + c * Fraction(out)) / 10**6 == Fraction(found)


@given(st.integers(min_value=0, max_value=10**40))
def test_what_is_stored_comes_back(count: int) -> None:
    assert count == money.units(money.usd(count))


@given(st.integers(min_value=0, max_value=10**36))
def test_the_parts_of_an_amount_make_it_whole(count: int) -> None:
    micro, rest = money.parts(count)
    assert count == money.whole(micro, rest)
    assert 0 <= rest < 10**12


def test_an_amount_too_fine_to_store_is_an_error() -> None:
    with pytest.raises(decimal.Inexact):
        money.units(Decimal("1e-19"))


def test_the_surrounding_precision_changes_nothing() -> None:
    with decimal.localcontext(decimal.Context(prec=3)):
        assert Decimal("1099511627775.999998900488372224") == money.cost(EXACT, Usage(completion=1 << 40))
        assert 1234567890123456789012 == money.units(money.usd(1234567890123456789012))


ESTIMATES = {
    "the dearest model counts": ([CHEAP, OPUS], "0.021"),
    "a model without a price is left out": ([None, CHEAP], "0.000145"),
    "no prices": ([None], "0"),
    "no models": ([], "0"),
}


@pytest.mark.parametrize(("prices", "expected"), [pytest.param(*row, id=name) for name, row in ESTIMATES.items()])
def test_an_estimate_is_the_dearest_models(prices: list[Price | None], expected: str) -> None:
    assert Decimal(expected) == money.estimate(prices, prompt=1000, output=1000)


SOME = Usage(prompt=1000, completion=200)
LOST = Decimal("0.002")
CHARGES = {
    "answered": (Ending.ANSWERED, OPUS, SOME, (), Charge(usd=Decimal("0.007"), usage=SOME)),
    "answered at the second try": (
        Ending.ANSWERED,
        OPUS,
        SOME,
        (LOST, LOST),
        Charge(usd=Decimal("0.007"), ours=Decimal("0.004"), usage=SOME),
    ),
    "the client left": (Ending.CLIENT_LEFT, OPUS, SOME, (), Charge(usd=Decimal("0.007"), usage=SOME)),
    "the client left before anything came": (Ending.CLIENT_LEFT, OPUS, None, (), Charge()),
    "failed after content": (Ending.FAILED, OPUS, SOME, (LOST,), Charge(ours=Decimal("0.009"))),
    "failed before content": (Ending.FAILED, OPUS, None, (LOST,), Charge(ours=LOST)),
    "answered by a model without a price": (
        Ending.ANSWERED,
        None,
        SOME,
        (LOST,),
        Charge(usd=None, ours=LOST, usage=SOME),
    ),
    "failed at a model without a price": (Ending.FAILED, None, SOME, (LOST,), Charge(ours=LOST)),
}


@pytest.mark.parametrize(
    ("ending", "prices", "usage", "discarded", "expected"),
    [pytest.param(*row, id=name) for name, row in CHARGES.items()],
)
def test_who_pays(
    ending: Ending, prices: Price | None, usage: Usage | None, discarded: tuple[Decimal, ...], expected: Charge
) -> None:
    assert expected == money.charge(ending, prices, usage, discarded)


def test_an_estimated_usage_stays_marked() -> None:
    usage = Usage(prompt=10, completion=3, estimated=True)
    assert money.charge(Ending.CLIENT_LEFT, OPUS, usage).usage.estimated


OURS = Usage(prompt=900, completion=100)
BELIEVED = {
    "an ordinary figure": (SOME, SOME),
    "as much as may be": (Usage(prompt=100_000, completion=50_000), Usage(prompt=100_000, completion=50_000)),
    "one token more of a prompt": (
        Usage(prompt=100_001, completion=7, cached=5),
        Usage(prompt=900, completion=7, estimated=True),
    ),
    "one token more of an answer": (
        Usage(prompt=7, cached=5, completion=50_001, reasoning=3),
        Usage(prompt=7, cached=5, completion=100, estimated=True),
    ),
    "both beyond all sense": (Usage(prompt=1 << 40, completion=1 << 40), msgspec.structs.replace(OURS, estimated=True)),
}


@pytest.mark.parametrize(("usage", "expected"), [pytest.param(*row, id=name) for name, row in BELIEVED.items()])
def test_absurd_figures_give_way_to_our_estimate(usage: Usage, expected: Usage) -> None:
    assert expected == money.believable(usage, most_prompt=100_000, most_output=50_000, otherwise=OURS)


WRITTEN = {"0": "0.00", "1": "1.00", "0.5": "0.50", "0.0000125": "0.0000125", "2.500": "2.50", "1E+3": "1000.00"}


@pytest.mark.parametrize(("amount", "expected"), WRITTEN.items())
def test_an_amount_is_written_exactly(amount: str, expected: str) -> None:
    assert expected == money.written(Decimal(amount))
