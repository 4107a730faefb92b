"""Limits as values: days and waits, what is said when a request doesn't fit, and the headers that clients read."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import limits
from zurelay.limits import Granted, Kind, Refused, Reservation, Scope, Standing
from zurelay.model import UsageLimits

SECOND = limits.SECOND


def at(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).timestamp()) * SECOND


def refused(kind: Kind = Kind.REQUESTS, **facts: Any) -> Refused:
    scope = Scope(name="key:team", label="This key")
    whole: dict[str, Any] = {
        "scope": scope,
        "kind": kind,
        "limit": 600,
        "used": 600,
        "needed": 1,
        "wait": SECOND,
        **facts,
    }
    return Refused(**whole)


NEXT = {
    "the last second of a day": ("2026-11-29T23:59:59Z", "2026-11-29", 1, 24 * 3600 + 1),
    "the first second of a month": ("2026-12-01T00:00:00Z", "2026-12-01", 24 * 3600, 31 * 24 * 3600),
    "the last second of a year": ("2026-12-31T23:59:59Z", "2026-12-31", 1, 1),
    "a day in February": ("2028-02-28T12:00:00Z", "2028-02-28", 12 * 3600, 36 * 3600),
    "a zone ahead of UTC": ("2026-12-01T01:30:00+02:00", "2026-11-30", 1800, 1800),
}


@pytest.mark.parametrize(
    ("time", "day", "to_day", "to_month"), [pytest.param(*row, id=name) for name, row in NEXT.items()]
)
def test_days_and_months_are_utcs(time: str, day: str, to_day: int, to_month: int) -> None:
    now = at(time)
    assert (day, day[:7]) == (limits.day_of(now), limits.month_of(limits.day_of(now)))
    assert (to_day * SECOND, to_month * SECOND) == (limits.until_next_day(now), limits.until_next_month(now))


@given(st.integers(min_value=0, max_value=4 * 10**15))
def test_the_next_day_and_month_begin_when_they_are_said_to(now: int) -> None:
    for until, period in ((limits.until_next_day(now), 10), (limits.until_next_month(now), 7)):
        assert limits.day_of(now)[:period] == limits.day_of(now + until - 1)[:period]
        assert limits.day_of(now)[:period] < limits.day_of(now + until)[:period]


OUTPUTS = {
    "left out": (None, 1, 4096),
    "set": (100, 1, 100),
    "three choices": (100, 3, 300),
    "two choices of a default": (None, 2, 8192),
    "none": (0, 1, 0),
    "absurd": (10**400, 1, 10**12),
    "absurd choices": (None, 10**400, 10**12),
    "choices below one": (100, -4, 100),
}


@pytest.mark.parametrize(
    ("most", "choices", "expected"), [pytest.param(*row, id=name) for name, row in OUTPUTS.items()]
)
def test_what_an_answer_may_need(most: int | None, choices: int, expected: int) -> None:
    assert expected == limits.output_needed(most, choices)


DURATIONS = {
    0: "0s",
    -5: "0s",
    1: "1ms",
    12_000: "12ms",
    999_001: "1s",
    8_640_000: "8.64s",
    60 * SECOND: "1m0s",
    360 * SECOND: "6m0s",
    360 * SECOND + 250_000: "6m0.25s",
    3600 * SECOND: "1h0m0s",
    90_061 * SECOND: "25h1m1s",
}


@pytest.mark.parametrize(("microseconds", "expected"), DURATIONS.items())
def test_durations_are_written_as_openai_does(microseconds: int, expected: str) -> None:
    assert expected == limits.duration(microseconds)


def test_headers_name_what_is_limited() -> None:
    granted = Granted(
        reservation=Reservation(day="2026-11-30"),
        requests=Standing(60, 59, SECOND),
        tokens=Standing(150_000, 149_984, 360 * SECOND),
    )
    assert {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    } == limits.headers(granted)


def test_what_is_not_limited_has_no_headers() -> None:
    assert {} == limits.headers(Granted(reservation=Reservation(day="2026-11-30")))


def test_a_refusal_has_the_headers_too() -> None:
    found = limits.headers(refused(requests=Standing(600, 0, 30 * SECOND)))
    assert ("0", "30s") == (found["x-ratelimit-remaining-requests"], found["x-ratelimit-reset-requests"])


WAITS = {0: 1, 1: 1, 999_999: 1, SECOND: 1, SECOND + 1: 2, 59 * SECOND + 1: 60}


@pytest.mark.parametrize(("wait", "expected"), WAITS.items())
def test_retry_after_is_never_too_soon(wait: int, expected: int) -> None:
    assert expected == limits.seconds(wait)


ERRORS = {
    "requests": (
        refused(wait=2_500_000),
        "This key has a limit of 600 requests a minute. Try again in 3s.",
        {"retry-after": "3"},
        "rate_limit_exceeded",
    ),
    "tokens": (
        refused(Kind.TOKENS, limit=1000, used=900, needed=200),
        (
            "This key has a limit of 1000 tokens a minute, 900 used or reserved; this request may need 200. "
            "Try again in 1s."
        ),
        {"retry-after": "1"},
        "rate_limit_exceeded",
    ),
    "more tokens than ever fit": (
        refused(Kind.TOKENS, limit=1000, used=0, needed=2000, wait=None),
        (
            "This key has a limit of 1000 tokens a minute, 0 used or reserved; this request may need 2000. "
            "That never fits: send a shorter prompt, or ask for less output (max_tokens)."
        ),
        {"x-should-retry": "false"},
        "rate_limit_exceeded",
    ),
    "USD a day": (
        refused(Kind.USD_DAY, limit=Decimal(50), used=Decimal("49.99"), needed=Decimal("0.0715"), wait=3600 * SECOND),
        (
            "This key has a limit of 50.00 USD a day, 49.99 used or reserved; this request may need 0.0715. "
            "The limit begins anew in 1h0m0s."
        ),
        {"retry-after": "3600", "x-should-retry": "false"},
        "insufficient_quota",
    ),
    "USD that requests under way hold": (
        refused(
            Kind.USD_DAY, limit=Decimal(50), used=Decimal("49.99"), needed=Decimal("0.0715"), wait=5 * SECOND, held=True
        ),
        (
            "This key has a limit of 50.00 USD a day, 49.99 used or reserved; this request may need 0.0715. "
            "Requests under way hold what is left: try again in 5s."
        ),
        {"retry-after": "5", "x-should-retry": "false"},
        "insufficient_quota",
    ),
    "USD a month": (
        refused(Kind.USD_MONTH, limit=Decimal(1), used=Decimal(1), needed=Decimal(2), wait=None),
        (
            "This key has a limit of 1.00 USD a month, 1.00 used or reserved; this request may need 2.00. "
            "That never fits: send a shorter prompt, or ask for less output (max_tokens)."
        ),
        {"x-should-retry": "false"},
        "insufficient_quota",
    ),
}


@pytest.mark.parametrize(
    ("refusal", "message", "headers", "code"), [pytest.param(*row, id=name) for name, row in ERRORS.items()]
)
def test_a_refusal_is_a_429_that_says_what_to_do(
    refusal: Refused, message: str, headers: dict[str, str], code: str
) -> None:
    error = limits.exceeded(refusal)
    assert (429, "rate_limit_error", code) == (error.status, error.type, error.code)
    assert message == error.message
    assert headers == error.headers()


def test_the_refusal_that_lasts_longest_binds() -> None:
    short, long, never = refused(wait=1), refused(wait=2), refused(wait=None)
    assert long is limits.binding([short, long])
    assert never is limits.binding([long, never, short])


def test_the_standing_with_the_least_left_is_shown() -> None:
    assert Standing(10, 3, 5) == limits.tightest([Standing(5, 4, 9), Standing(10, 3, 5)])
    assert Standing(10, 3, 9) == limits.tightest([Standing(10, 3, 5), Standing(10, 3, 9)])
    assert limits.tightest([]) is None


def test_a_reservation_travels_as_json() -> None:
    reservation = Reservation(day="2026-11-30", scopes=("key:team-a",), id="3f.1", tokens=5000)
    assert reservation == msgspec.json.decode(msgspec.json.encode(reservation), type=Reservation)
    assert {"day": "2026-11-30"} == json.loads(msgspec.json.encode(Reservation(day="2026-11-30")))


def test_a_scope_says_whether_it_limits() -> None:
    free = Scope(name="key:a", label="This key")
    paid = Scope(name="key:a", label="This key", limits=UsageLimits(usd_per_month=Decimal(1)))
    paced = Scope(name="key:a", label="This key", limits=UsageLimits(requests_per_minute=1))
    assert [(False, False), (True, True), (True, False)] == [
        (scope.limited, scope.limits_spend) for scope in (free, paid, paced)
    ]
