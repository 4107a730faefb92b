"""Whose money a request cost."""

from __future__ import annotations

from decimal import Decimal

import pytest

from making import attempt, plan
from zurelay.model import Endpoint, Price
from zurelay.plan import Attempt, Past, Reason
from zurelay.settlement import spent, tokens, used
from zurelay.usage import Usage

PRICE = Price(input=Decimal(1), output=Decimal(10))
USED = Usage(prompt=1_000, completion=100)
COST = Decimal("0.002")
FIRST = attempt("first/one", price=PRICE)
SECOND = attempt("second/two", price=PRICE, max_output=300_000)

OUTCOMES = {
    "answered": ("answered", USED, COST, Decimal(0), False, "first"),
    "client left, with what was generated": ("client_left", USED, COST, Decimal(0), False, "first"),
    "client left before anything": ("client_left", None, Decimal(0), Decimal(0), False, "first"),
    "refused": ("refused", None, Decimal(0), Decimal(0), True, ""),
    "broken after content: ours": ("broken", USED, Decimal(0), COST, True, "first"),
}


@pytest.mark.parametrize(
    ("outcome", "usage", "usd", "ours", "failed", "name"),
    [pytest.param(*row, id=name) for name, row in OUTCOMES.items()],
)
def test_who_pays(outcome: str, usage: Usage | None, usd: Decimal, ours: Decimal, failed: bool, name: str) -> None:
    found = spent(plan(FIRST, key="team", workload="a/b"), FIRST, outcome, usage)
    assert ("team", "a/b", name) == (found.key, found.workload, found.model)
    assert (usd, ours, failed) == (found.usd, found.ours, found.failed)
    assert (USED if usd else Usage()) == found.usage


def test_a_model_without_a_price_is_told_apart_from_one_that_is_free() -> None:
    unpriced = attempt("first/one")
    assert spent(plan(unpriced), unpriced, "answered", USED).usd is None


def test_what_was_given_up_is_ours_whatever_came_of_the_request() -> None:
    past = (
        Past(number=1, cluster="first/one", reason=Reason.NO_TOKEN, status=200, usage=USED),
        Past(number=2, cluster="second/two", reason=Reason.STATUS, status=500),
        Past(number=3, cluster="first/one", reason=Reason.ERROR_BODY, status=200, usage=Usage(prompt=1 << 39)),
    )
    tried = plan(FIRST, SECOND, FIRST, SECOND, past=past, prompt=500)
    ours = COST + Decimal("0.0005")
    answered = spent(tried, SECOND, "answered", USED)
    assert (COST, ours, USED) == (answered.usd, answered.ours, answered.usage)
    for outcome in ("refused", "failed", "client_left"):
        assert ours == spent(tried, SECOND, outcome, None).ours
    assert Decimal(0) == spent(plan(FIRST, past=past[:1], endpoint=Endpoint.COUNT_TOKENS), None, "failed", None).ours


OWN = Usage(prompt=10, completion=20, estimated=True)
BELIEVED: dict[str, tuple[Attempt, Usage | None, Usage]] = {
    "as told": (FIRST, USED, USED),
    "nothing told": (FIRST, None, OWN),
    "no prompt told": (FIRST, Usage(completion=5, estimated=True), Usage(prompt=10, completion=5, estimated=True)),
    "no completion told": (FIRST, Usage(prompt=8, estimated=True), Usage(prompt=8, completion=20, estimated=True)),
    "a prompt of the window": (FIRST, Usage(prompt=100_000, completion=1), Usage(prompt=100_000, completion=1)),
    "a prompt beyond it": (
        FIRST,
        Usage(prompt=100_001, completion=1, cached=7),
        Usage(prompt=10, completion=1, estimated=True),
    ),
    "an output of the window": (FIRST, Usage(prompt=1, completion=100_000), Usage(prompt=1, completion=100_000)),
    "an output beyond it": (
        FIRST,
        Usage(prompt=1, completion=100_001, reasoning=4),
        Usage(prompt=1, completion=20, estimated=True),
    ),
    "an output that the model may have": (
        SECOND,
        Usage(prompt=1, completion=300_000),
        Usage(prompt=1, completion=300_000),
    ),
    "both beyond all sense": (FIRST, Usage(prompt=1 << 39, completion=1 << 39), OWN),
}


@pytest.mark.parametrize(("one", "usage", "expected"), [pytest.param(*row, id=name) for name, row in BELIEVED.items()])
def test_a_figure_that_cannot_be_gives_way_to_the_estimate(one: Attempt, usage: Usage | None, expected: Usage) -> None:
    assert expected == used(plan(one, prompt=10), one, usage, 20)


def test_several_choices_may_write_more_than_a_window() -> None:
    told = Usage(prompt=1, completion=150_000)
    assert told == used(plan(FIRST, output=200_000), FIRST, told, 20)
    assert used(plan(FIRST, output=1 << 50), FIRST, Usage(prompt=1, completion=1_000_001), 20).estimated


def test_counting_tokens_is_free() -> None:
    found = spent(plan(FIRST, endpoint=Endpoint.COUNT_TOKENS), FIRST, "answered", USED)
    assert (Decimal(0), 0, False) == (found.usd, found.usage.total, found.failed)


def test_no_attempt_is_a_failure_without_a_model() -> None:
    found = spent(plan(FIRST), None, "refused", None)
    assert (True, "", Decimal(0)) == (found.failed, found.model, found.usd)


def test_bytes_of_an_answer_are_counted_as_tokens() -> None:
    assert [1, 1, 2, 11] == [tokens(size) for size in (0, 3, 4, 40)]
