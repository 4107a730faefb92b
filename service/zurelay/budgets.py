"""How much of each key's budget is spent: what an alert looks at before requests are refused."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from zurelay import families, limits, money
from zurelay.limits import Kind
from zurelay.model import Key
from zurelay.store import Line
from zurelay.tally import Tally


def limited(keys: Iterable[Key]) -> tuple[Key, ...]:
    """Give the keys that have a limit of money."""
    return tuple(key for key in keys if key.limits.usd_per_day or key.limits.usd_per_month)


def first_day(day: str) -> str:
    """Give the first day of a day's month."""
    return f"{limits.month_of(day)}-01"


def count(tally: Tally, keys: Iterable[Key], lines: Iterable[Line], day: str) -> None:
    """Set each key's share of its limits, from the spend of this month up to `day`."""
    today: dict[str, int] = {}
    month: dict[str, int] = {}
    for line in lines:
        name, amount = line.place.key, line.counts.usd
        month[name] = month.get(name, 0) + amount
        if line.place.day == day:
            today[name] = today.get(name, 0) + amount
    tally.clear(families.LIMIT_USED)  # a key that is gone has no budget
    for key in keys:
        _set(tally, key, Kind.USD_DAY, key.limits.usd_per_day, today)
        _set(tally, key, Kind.USD_MONTH, key.limits.usd_per_month, month)


def _set(tally: Tally, key: Key, kind: Kind, limit: Decimal | None, spent: dict[str, int]) -> None:
    if limit is not None:
        share = money.usd(spent.get(key.name, 0)) / limit
        tally.set(families.LIMIT_USED, (key.name, kind.value), float(share))
