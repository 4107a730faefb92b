"""Whose money a request cost."""

from __future__ import annotations

from decimal import Decimal

import pytest

from making import attempt, plan
from zurelay.model import Endpoint, Price
from zurelay.settlement import spent, used
from zurelay.usage import Usage

PRICE = Price(input=Decimal(1), output=Decimal(10))
USED = Usage(prompt=1_000, completion=100)
COST = Decimal("0.002")
FIRST = attempt("first/one")

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
    found = spent(plan(FIRST, key="team", workload="a/b"), FIRST, outcome, usage, PRICE)
    assert ("team", "a/b", name) == (found.key, found.workload, found.model)
    assert (usd, ours, failed) == (found.usd, found.ours, found.failed)
    assert (USED if usd else Usage()) == found.usage


def test_a_model_without_a_price_is_told_apart_from_one_that_is_free() -> None:
    assert spent(plan(FIRST), FIRST, "answered", USED, None).usd is None


def test_absurd_figures_give_way_to_the_estimate() -> None:
    found = spent(plan(FIRST, prompt=10, output=20), FIRST, "answered", Usage(prompt=1 << 39), PRICE)
    assert Usage(prompt=10, completion=20, estimated=True) == found.usage


def test_counting_tokens_is_free() -> None:
    found = spent(plan(FIRST, endpoint=Endpoint.COUNT_TOKENS), FIRST, "answered", USED, PRICE)
    assert (Decimal(0), 0, False) == (found.usd, found.usage.total, found.failed)


def test_no_attempt_is_a_failure_without_a_model() -> None:
    found = spent(plan(FIRST), None, "refused", None, None)
    assert (True, "", Decimal(0)) == (found.failed, found.model, found.usd)


def test_an_answer_without_usage_is_estimated_and_marked() -> None:
    assert Usage(prompt=7, completion=11, estimated=True) == used(plan(FIRST, prompt=7), None, bytes(40))
    assert USED == used(plan(FIRST), USED, b"")
    assert used(plan(FIRST), None, None) is None
