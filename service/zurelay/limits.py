"""Limits as values: what a request needs, what is said when it doesn't fit, and when it would (SPEC 11).

Times are whole microseconds since 1970, of one clock for all who share a store. Days and months are UTC's.
"""

from __future__ import annotations

import datetime as dt
import enum
import functools
import math
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from zurelay import money
from zurelay.errors import LimitExceeded
from zurelay.model import UsageLimits

SECOND = 1_000_000
MINUTE = 60 * SECOND
_UNDER_WAY = 5 * SECOND  # after which it is worth asking again whether others are over; a model takes seconds
DEFAULT_OUTPUT = 4096  # SPEC 11: what a request may write where it doesn't say
_MOST_OUTPUT = 10**12  # beyond any limit; larger numbers tell nothing more


class Kind(enum.Enum):
    """A limit, by the name that it has in a configuration."""

    REQUESTS = "requests_per_minute"
    TOKENS = "tokens_per_minute"
    USD_DAY = "usd_per_day"
    USD_MONTH = "usd_per_month"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What limits count for: a key, or a policy and a workload. `label` is its name for the client it concerns.

    A scope that isn't enforced only tells what it would have done.
    """

    name: str
    label: str
    limits: UsageLimits = UsageLimits()
    enforced: bool = True

    @property
    def limited(self) -> bool:
        """Whether it has any limit."""
        return self.limits != _UNLIMITED

    @property
    def limits_spend(self) -> bool:
        """Whether it has a limit of money."""
        return self.limits.usd_per_day is not None or self.limits.usd_per_month is not None


_UNLIMITED = UsageLimits()


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What one request takes of each limit, as far as it can be told beforehand."""

    tokens: int = 0
    usd: Decimal = money.ZERO


class Reservation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a request holds until it is settled; it may travel as JSON, to be settled by another process.

    `id` is empty where nothing was held: no limits, or a store that was away. `day` is the one that is charged.
    """

    day: str
    scopes: tuple[str, ...] = ()
    id: str = ""
    tokens: int = 0


class Standing(msgspec.Struct, frozen=True):
    """Where a caller stands with a limit of the minute. `reset` is when all of it is free again, in microseconds."""

    limit: int
    remaining: int
    reset: int


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a request doesn't fit in. `used` includes what is held for requests under way.

    `wait` is when it would fit if nothing else came, in microseconds; None where it never will. `held`: it is money
    that requests under way hold: nobody knows for how long.
    """

    scope: Scope
    kind: Kind
    limit: int | Decimal
    used: int | Decimal
    needed: int | Decimal
    wait: int | None
    held: bool = False
    requests: Standing | None = None
    tokens: Standing | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to go on, and where the caller stands now. `shadow` are limits that would have refused if enforced."""

    reservation: Reservation
    requests: Standing | None = None
    tokens: Standing | None = None
    shadow: tuple[Refused, ...] = ()


def output_needed(max_output: int | None, choices: int = 1) -> int:
    """Give the tokens to reserve for the answer: what the request allows, else a default, for each of its choices."""
    return min((DEFAULT_OUTPUT if max_output is None else max_output) * max(choices, 1), _MOST_OUTPUT)


def day_of(at: int) -> str:
    """Give the UTC day of a time: 2026-11-30. Its first seven letters are the month."""
    return _day(at // (24 * 60 * MINUTE))


@functools.lru_cache(8)
def _day(number: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(number)).isoformat()


def month_of(day: str) -> str:
    """Give the month of a day: 2026-11."""
    return day[:7]


def until_next_day(at: int) -> int:
    """Give the microseconds to the next UTC midnight."""
    return 24 * 60 * MINUTE - at % (24 * 60 * MINUTE)


def until_next_month(at: int) -> int:
    """Give the microseconds to the first of the next month."""
    first = dt.datetime.fromtimestamp(at // SECOND, dt.UTC).replace(day=1, hour=0, minute=0, second=0)
    following = (first + dt.timedelta(days=32)).replace(day=1)
    return int(following.timestamp()) * SECOND - at


def out_of_money(
    scope: Scope, kind: Kind, limit: Decimal, used: Decimal, needed: Decimal, now: int, *, held: bool
) -> Refused:
    """Refuse for money: it fits when the next day or month begins, or never.

    `held`: or when requests under way are over, as it is what they hold that leaves no room.
    """
    until = until_next_day(now) if kind is Kind.USD_DAY else until_next_month(now)
    wait = None if needed > limit else min(until, _UNDER_WAY) if held else until
    return Refused(
        scope=scope, kind=kind, limit=limit, used=used, needed=needed, wait=wait, held=held and wait is not None
    )


def binding(refusals: Iterable[Refused]) -> Refused:
    """Choose the refusal that lasts longest: the others are over before it."""
    return max(refusals, key=lambda refused: math.inf if refused.wait is None else refused.wait)


def tightest(standings: Iterable[Standing]) -> Standing | None:
    """Choose the standing with the least left; of equals, the one that takes longest."""
    return min(standings, key=lambda each: (each.remaining, -each.reset), default=None)


def headers(outcome: Granted | Refused) -> dict[str, str]:
    """Give the x-ratelimit response headers, named and written as OpenAI's.

    Source: OpenAI's guide to rate limits, "Rate limits in headers" (limit, remaining, reset for requests and tokens).
    """
    found = {}
    for name, standing in (("requests", outcome.requests), ("tokens", outcome.tokens)):
        if standing is not None:
            found[f"x-ratelimit-limit-{name}"] = str(standing.limit)
            found[f"x-ratelimit-remaining-{name}"] = str(standing.remaining)
            found[f"x-ratelimit-reset-{name}"] = duration(standing.reset)
    return found


def duration(microseconds: int) -> str:
    """Write a duration as OpenAI's headers do: 12ms, 8.64s, 1m0s, 6m0.25s (Go's format, to the millisecond)."""
    milliseconds = -(-max(microseconds, 0) // 1000)
    if not milliseconds:
        return "0s"
    if milliseconds < 1000:  # noqa: PLR2004  # a second
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{Decimal(rest).scaleb(-3).normalize():f}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def seconds(wait: int) -> int:
    """Give a wait in whole seconds for retry-after, rounded up, so that it is never too soon."""
    return max(-(-wait // SECOND), 1)


_UNITS = {
    Kind.REQUESTS: ("requests", "a minute"),
    Kind.TOKENS: ("tokens", "a minute"),
    Kind.USD_DAY: ("USD", "a day"),
    Kind.USD_MONTH: ("USD", "a month"),
}
_SPEND = frozenset({Kind.USD_DAY, Kind.USD_MONTH})


def exceeded(refused: Refused) -> LimitExceeded:
    """Make the 429 of a limit; a spend limit tells clients not to retry by themselves."""
    unit, period = _UNITS[refused.kind]
    told = f"{refused.scope.label} has a limit of {_shown(refused.limit)} {unit} {period}"
    if refused.kind is not Kind.REQUESTS:
        told += f", {_shown(refused.used)} used or reserved; this request may need {_shown(refused.needed)}"
    advice = _advice(refused)
    spend = refused.kind in _SPEND
    return LimitExceeded(
        f"{told}. {advice}",
        code="insufficient_quota" if spend else "rate_limit_exceeded",
        retry_after=None if refused.wait is None else seconds(refused.wait),
        should_retry=False if spend or refused.wait is None else None,
        standing=headers(refused),
    )


def _advice(refused: Refused) -> str:
    if refused.wait is None:
        return "That never fits: send a shorter prompt, or ask for less output (max_tokens)."
    when = duration(seconds(refused.wait) * SECOND)
    if refused.held:
        return f"Requests under way hold what is left: try again in {when}."
    if refused.kind in _SPEND:
        return f"The limit begins anew in {when}."
    return f"Try again in {when}."


def _shown(amount: int | Decimal) -> str:
    return money.written(amount) if isinstance(amount, Decimal) else str(amount)
