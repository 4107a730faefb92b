"""Spend as tables: what is summed, and how it is written."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pytest

from zurelay import money, usage_report
from zurelay.store import Counts, Line, Place
from zurelay.usage_report import Row, UsageError


def line(day: str, key: str, model: str = "gpt", workload: str = "", usd: str = "1", **counts: Any) -> Line:
    spent = money.units(Decimal(usd))
    return Line(Place(day, key, workload, model), Counts(**{"requests": 1, "prompt": 10, "usd": spent, **counts}))


LINES = [
    line("2026-11-29", "team-a", usd="0.1"),
    line("2026-11-29", "team-b", workload="pay/api", usd="0.2", failed=1),
    line("2026-11-30", "team-a", model="claude", usd="0.0000125", completion=5),
    line("2026-11-30", "team-a", usd="3", ours=money.units(Decimal("0.5"))),
]

SUMS = {
    ("key",): [(("team-a",), 3, "3.1000125"), (("team-b",), 1, "0.2")],
    ("day",): [(("2026-11-29",), 2, "0.3"), (("2026-11-30",), 2, "3.0000125")],
    ("model", "key"): [
        (("claude", "team-a"), 1, "0.0000125"),
        (("gpt", "team-a"), 2, "3.1"),
        (("gpt", "team-b"), 1, "0.2"),
    ],
    ("workload",): [(("",), 3, "3.1000125"), (("pay/api",), 1, "0.2")],
}


@pytest.mark.parametrize(("by", "expected"), SUMS.items())
def test_lines_are_summed_by_what_is_asked(by: tuple[str, ...], expected: list[tuple[Any, int, str]]) -> None:
    found = usage_report.rows(LINES, by)
    assert expected == [(row.names, row.counts.requests, f"{money.usd(row.counts.usd).normalize():f}") for row in found]


def test_summing_leaves_the_lines_alone() -> None:
    usage_report.rows(LINES, ("key",))
    assert 1 == LINES[0].counts.requests


def test_the_total_is_that_of_all_rows() -> None:
    found = usage_report.total(usage_report.rows(LINES))
    assert (4, 1, 40, Decimal("3.3000125")) == (found.requests, found.failed, found.prompt, money.usd(found.usd))


def test_json_has_names_figures_and_a_total() -> None:
    by = ("key", "workload")
    found = usage_report.as_json(usage_report.rows(LINES, by), by)
    assert ["key", "workload"] == found["by"]
    assert {
        "key": "team-b",
        "workload": "pay/api",
        "requests": 1,
        "failed": 1,
        "estimated": 0,
        "unpriced": 0,
        "prompt": 10,
        "cached": 0,
        "cache_written": 0,
        "completion": 0,
        "reasoning": 0,
        "usd": "0.20",
        "ours_usd": "0.00",
    } == found["rows"][1]
    assert (None, "3.1000125", "0.50") == tuple(found["rows"][0][name] for name in ("workload", "usd", "ours_usd"))
    assert "3.3000125" == found["total"]["usd"]


def test_csv_has_a_header_and_a_row_each() -> None:
    by = ("day", "key")
    text = usage_report.as_csv(usage_report.rows(LINES, by), by)
    found = list(csv.DictReader(io.StringIO(text)))
    assert ["2026-11-29", "2026-11-29", "2026-11-30"] == [row["day"] for row in found]
    assert ("team-a", "2", "3.0000125", "0.50") == tuple(
        found[2][name] for name in ("key", "requests", "usd", "ours_usd")
    )
    assert text.endswith("\r\n")


def test_a_name_in_csv_is_no_formula() -> None:
    text = usage_report.as_csv([Row(("=cmd()", "a,b"), Counts())], ("key", "model"))
    assert ["'=cmd()", "a,b"] == next(iter(list(csv.reader(io.StringIO(text)))[1:]))[:2]


def test_a_table_has_headings_rows_and_a_total() -> None:
    by = ("key", "workload")
    assert [
        ["key", "workload", "requests", "failed", "input", "cached", "output", "USD", "ours USD"],
        ["team-a", "-", "3", "0", "30", "0", "5", "3.100013", "0.500000"],
        ["team-b", "pay/api", "1", "1", "10", "0", "0", "0.200000", "0.000000"],
        ["total", "", "4", "1", "40", "0", "5", "3.300013", "0.500000"],
    ] == usage_report.as_table(usage_report.rows(LINES, by), by)


def test_an_empty_table_has_a_total_of_nothing() -> None:
    assert [["total", "0", "0", "0", "0", "0", "0.000000", "0.000000"]] == usage_report.as_table([], ("day",))[1:]


def test_large_figures_are_grouped() -> None:
    counts = Counts(prompt=1_234_567, usd=money.units(Decimal("1234.5")))
    row = usage_report.as_table([Row(("a",), counts)], ("key",))[1]
    assert ("1,234,567", "1,234.500000") == (row[3], row[6])


def test_what_the_figures_lack_is_said() -> None:
    assert [] == usage_report.notes(Counts(requests=5))
    assert [
        "2 requests were answered by models without a price: their cost isn't counted.",
        "3 requests had no usage from their provider: their tokens are estimates.",
    ] == usage_report.notes(Counts(unpriced=2, estimated=3))


def test_columns_are_read() -> None:
    assert ("key", "day") == usage_report.columns("key, day")


@pytest.mark.parametrize("text", ["", "team", "key,key", "key,"])
def test_columns_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="day, key, workload, model"):
        usage_report.columns(text)


TODAY = dt.date(2026, 11, 30)
DAYS = {
    "this month": (None, None, ("2026-11-01", "2026-11-30")),
    "from a day": ("2026-10-15", None, ("2026-10-15", "2026-11-30")),
    "some days": ("2026-10-15", "2026-10-20", ("2026-10-15", "2026-10-20")),
    "a month that is over": (None, "2026-09-30", ("2026-09-01", "2026-09-30")),
    "one day": ("2026-11-30", "2026-11-30", ("2026-11-30", "2026-11-30")),
}


@pytest.mark.parametrize(("first", "last", "expected"), [pytest.param(*row, id=case) for case, row in DAYS.items()])
def test_which_days_are_covered(first: str | None, last: str | None, expected: tuple[str, str]) -> None:
    assert expected == usage_report.days(first, last, TODAY)


@pytest.mark.parametrize(("first", "last"), [("yesterday", None), ("2026-02-30", None), ("2026-12-01", None)])
def test_days_that_are_none_are_refused(first: str, last: str | None) -> None:
    with pytest.raises(UsageError):
        usage_report.days(first, last, TODAY)
