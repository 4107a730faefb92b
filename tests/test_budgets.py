"""Budgets as gauges: what was spent of them this day and this month."""

from __future__ import annotations

from decimal import Decimal

from making import key
from zurelay import budgets, families, money
from zurelay.model import UsageLimits
from zurelay.store import Counts, Line, Place
from zurelay.tally import Sample, Tally

DAY = key("day", limits=UsageLimits(usd_per_day=Decimal(10)))
BOTH = key("both", limits=UsageLimits(usd_per_day=Decimal(1), usd_per_month=Decimal(100)))
FREE = key("free", limits=UsageLimits(requests_per_minute=5))
NAME = families.LIMIT_USED.name


def line(day: str, name: str, usd: int, model: str = "m") -> Line:
    return Line(Place(day, name, "", model), Counts(usd=money.units(Decimal(usd))))


def test_only_keys_with_a_limit_of_money_have_a_budget() -> None:
    assert (DAY, BOTH) == budgets.limited((DAY, FREE, BOTH))


def test_a_month_begins_on_its_first_day() -> None:
    assert "2026-11-01" == budgets.first_day("2026-11-30")


def test_shares_are_of_the_day_and_of_the_month() -> None:
    tally = Tally()
    lines = [
        line("2026-11-29", "both", 30),
        line("2026-11-30", "both", 2),
        line("2026-11-30", "both", 3, "other"),
        line("2026-11-30", "free", 9),
    ]
    budgets.count(tally, (DAY, BOTH), lines, "2026-11-30")
    assert {
        Sample(NAME, ("day", "usd_per_day"), (0.0,)),
        Sample(NAME, ("both", "usd_per_day"), (5.0,)),
        Sample(NAME, ("both", "usd_per_month"), (0.35,)),
    } == set(tally.samples())


def test_a_key_that_is_gone_has_no_budget_any_more() -> None:
    tally = Tally()
    budgets.count(tally, (DAY, BOTH), [], "2026-11-30")
    budgets.count(tally, (DAY,), [], "2026-12-01")
    assert [Sample(NAME, ("day", "usd_per_day"), (0.0,))] == tally.samples()
