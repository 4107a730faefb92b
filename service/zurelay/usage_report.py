"""Spend and tokens as tables (SPEC 14, `zurelay usage`): lines of the store in, sums by what one wants to see out."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from zurelay import money
from zurelay.store import COUNTS, MONEY, Counts, Line

BY = ("day", "key", "workload", "model")  # what spend can be summed by
_NONE = "-"  # shown where a request had no key, no workload, or no model answered


class UsageError(ValueError):
    """There is no such table; the message says what there is."""


def columns(text: str) -> tuple[str, ...]:
    """Read what to sum by, such as `key,day`."""
    named = tuple(part.strip() for part in text.split(","))
    if any(part not in BY for part in named) or len(set(named)) < len(named):
        raise UsageError(f"expected some of {', '.join(BY)}, each once, with commas between them")
    return named


def days(first: str | None, last: str | None, today: dt.date) -> tuple[str, str]:
    """Read the days that a table covers: by default, the month until today."""
    begin, end = _day(first, today.replace(day=1)), _day(last, today)
    if first is None and begin > end:
        begin = end.replace(day=1)
    if begin > end:
        raise UsageError(f"{begin} is after {end}: give the first day first")
    return begin.isoformat(), end.isoformat()


def _day(text: str | None, default: dt.date) -> dt.date:
    if text is None:
        return default
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC).date()
    except ValueError:
        raise UsageError(f"{text[:20]!r} is no day such as 2026-11-30") from None


class Row(msgspec.Struct, frozen=True):
    """The sums of one combination of what is summed by."""

    names: tuple[str, ...]
    counts: Counts


def rows(lines: Iterable[Line], by: Sequence[str] = BY) -> list[Row]:
    """Sum lines by some of their names, in order."""
    sums: dict[tuple[str, ...], Counts] = {}
    for line in lines:
        names = tuple(getattr(line.place, name) for name in by)
        sums.setdefault(names, Counts()).add(line.counts)
    return [Row(names, counts) for names, counts in sorted(sums.items())]


def total(found: Iterable[Row]) -> Counts:
    """Sum all rows."""
    counts = Counts()
    for row in found:
        counts.add(row.counts)
    return counts


def as_json(found: Sequence[Row], by: Sequence[str]) -> dict[str, Any]:
    """Give rows and total as JSON's values. USD are text, as they are exact; a name that isn't there is null."""
    return {
        "by": list(by),
        "rows": [
            {**{name: value or None for name, value in zip(by, row.names, strict=True)}, **_figures(row.counts)}
            for row in found
        ],
        "total": _figures(total(found)),
    }


def _figures(counts: Counts) -> dict[str, int | str]:
    found: dict[str, int | str] = {name: getattr(counts, name) for name in COUNTS if name not in MONEY}
    found["usd"] = money.written(money.usd(counts.usd))
    found["ours_usd"] = money.written(money.usd(counts.ours))
    return found


def as_csv(found: Iterable[Row], by: Sequence[str]) -> str:
    """Write rows as CSV with a header (RFC 4180), USD exactly."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*by, *_figures(Counts())])
    for row in found:
        writer.writerow([*map(_plain, row.names), *_figures(row.counts).values()])
    return out.getvalue()


def _plain(name: str) -> str:
    """Keep a spreadsheet from taking a name for a formula."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@") else name


HEADINGS = ("requests", "failed", "input", "cached", "output", "USD", "ours USD")


def as_table(found: Sequence[Row], by: Sequence[str]) -> list[list[str]]:
    """Give a table of text: a heading, the rows, and their total. USD to the millionth, rounded half up."""
    table = [[*by, *HEADINGS]]
    table += [[*(name or _NONE for name in row.names), *_cells(row.counts)] for row in found]
    table.append(["total", *[""] * (len(by) - 1), *_cells(total(found))])
    return table


def _cells(counts: Counts) -> list[str]:
    shown = (counts.requests, counts.failed, counts.prompt, counts.cached, counts.completion)
    return [*(f"{count:,}" for count in shown), *(_rounded(getattr(counts, name)) for name in MONEY)]


def _rounded(count: int) -> str:
    micro = (count + money.REST // 2) // money.REST
    return f"{micro // 10**6:,}.{micro % 10**6:06d}"


def notes(counts: Counts) -> list[str]:
    """Say what the figures don't hold."""
    found = []
    if counts.unpriced:
        found.append(f"{counts.unpriced} requests were answered by models without a price: their cost isn't counted.")
    if counts.estimated:
        found.append(f"{counts.estimated} requests had no usage from their provider: their tokens are estimates.")
    return found
