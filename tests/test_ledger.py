"""The ledger: what one process makes of all events, its own and others'."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_window import PAUSES, BruteWindow, Step
from zurelay import limits, money
from zurelay.ledger import Ledger
from zurelay.limits import MINUTE, SECOND, Kind, Need, Scope, Standing
from zurelay.model import UsageLimits
from zurelay.news import Closed, News, Taken

DAY, MONTH = "2026-11-30", "2026-11"
NOW = 1_796_040_000 * SECOND  # that day, 12:00 UTC
USD = money.units(Decimal(1))


def scope(name: str = "key:a", *, enforced: bool = True, **limits: Any) -> Scope:
    return Scope(name=name, label="This key", limits=UsageLimits(**limits), enforced=enforced)


def taken(name: str = "own.1", *, at: int = NOW, tokens: int = 0, amount: int = 0, scopes: Any = ("key:a",)) -> Taken:
    return Taken(name, at, DAY, tokens, amount, scopes)


def closed(name: str = "own.1", *, at: int = NOW, reserved: int = 0, used: int = 0, scopes: Any = ("key:a",)) -> Closed:
    return Closed(name, at, DAY, reserved, used, scopes)


def ledger(now: int = NOW) -> Ledger:
    found = Ledger()
    found.advance(now)
    return found


def learned(found: Ledger, *scopes: Scope) -> Ledger:
    for place in found.unknown(scopes, DAY):
        found.learn(*place, 0)
    return found


def fits(found: Ledger, *scopes: Scope, tokens: int = 0, usd: str = "0") -> bool:
    return not found.consider(scopes, Need(tokens=tokens, usd=Decimal(usd)), DAY).refused


def test_the_kind_that_is_short_is_named() -> None:
    limited = scope(requests_per_minute=1, tokens_per_minute=100, usd_per_day=Decimal(1), usd_per_month=Decimal(5))
    found = learned(ledger(), limited)
    assert fits(found, limited, tokens=100, usd="1")
    found.take(taken(tokens=60, amount=USD // 2))
    refusals = {
        Kind.REQUESTS: scope(requests_per_minute=1),
        Kind.TOKENS: scope(tokens_per_minute=100),
        Kind.USD_DAY: scope(usd_per_day=Decimal(1)),
        Kind.USD_MONTH: scope(usd_per_month=Decimal(1)),
    }
    for kind, short in refusals.items():
        (refused,) = found.consider((short,), Need(tokens=50, usd=Decimal("0.6")), DAY).refused
        assert kind is refused.kind


def test_of_several_limits_the_longest_wait_is_told() -> None:
    limited = scope(requests_per_minute=1, usd_per_day=Decimal(1))
    found = learned(ledger(), limited)
    found.take(taken())
    found.spend(limited.name, DAY, USD)
    (refused,) = found.consider((limited,), Need(usd=Decimal(1)), DAY).refused
    assert (Kind.USD_DAY, 12 * 60 * MINUTE, Decimal(1)) == (refused.kind, refused.wait, refused.used)
    assert not refused.held


def test_money_that_is_only_held_is_worth_asking_for_again_soon() -> None:
    limited = scope(usd_per_day=Decimal(1), usd_per_month=Decimal(1))
    found = learned(ledger(), limited)
    found.spend(limited.name, DAY, USD // 2)
    found.take(taken(amount=USD // 2))
    (refused,) = found.consider((limited,), Need(usd=Decimal("0.5")), DAY).refused
    assert (5 * SECOND, True) == (refused.wait, refused.held)
    (refused,) = found.consider((limited,), Need(usd=Decimal("0.51")), DAY).refused
    assert (12 * 60 * MINUTE, False) == (refused.wait, refused.held)
    (refused,) = found.consider((limited,), Need(usd=Decimal("1.01")), DAY).refused
    assert (None, False) == (refused.wait, refused.held)


def test_money_fits_to_the_last_digit() -> None:
    limited = scope(usd_per_day=Decimal("0.3"))
    found = learned(ledger(), limited)
    for number in range(3):
        assert fits(found, limited, usd="0.1")
        found.take(taken(f"own.{number}", amount=money.units(Decimal("0.1"))))
    assert not fits(found, limited, usd="0.000000000000000001")


def test_every_scope_must_have_room() -> None:
    roomy, full = scope("key:a", requests_per_minute=10), scope("policy:p anyone", requests_per_minute=1)
    found = ledger()
    found.take(taken(scopes=("policy:p anyone",)))
    assert ["policy:p anyone"] == [each.scope.name for each in found.consider((roomy, full), Need(), DAY).refused]


def test_a_shadow_refuses_nothing_and_is_told_apart() -> None:
    real, shadow = scope(requests_per_minute=10), scope("policy:p anyone", enforced=False, requests_per_minute=1)
    found = ledger()
    found.take(taken(scopes=("key:a", "policy:p anyone")))
    considered = found.consider((real, shadow), Need(), DAY)
    assert () == considered.refused
    assert ["policy:p anyone"] == [each.scope.name for each in considered.shadow]
    assert ("key:a",) == considered.fitting


def test_tokens_that_were_not_used_are_free_again() -> None:
    limited = scope(tokens_per_minute=100)
    found = ledger()
    found.take(taken(tokens=100))
    assert not fits(found, limited, tokens=1)
    found.close(closed(reserved=100, used=30))
    assert fits(found, limited, tokens=70)
    assert not fits(found, limited, tokens=71)


def test_tokens_beyond_the_reservation_count_from_when_they_are_known() -> None:
    limited = scope(tokens_per_minute=100)
    found = ledger()
    found.take(taken(tokens=10))
    found.advance(NOW + 2 * MINUTE)
    found.close(closed(at=NOW + 2 * MINUTE, reserved=10, used=90))
    assert not fits(found, limited, tokens=21)
    found.advance(NOW + 3 * MINUTE)
    assert fits(found, limited, tokens=100)


def test_the_end_of_a_reservation_unheard_of_counts_what_is_known() -> None:
    limited = scope(tokens_per_minute=100)
    found = ledger()
    found.close(closed("other.9", reserved=10, used=90))
    found.close(closed("other.8", reserved=10, used=5))
    assert not fits(found, limited, tokens=21)
    assert fits(found, limited, tokens=20)


def test_settled_money_takes_the_place_of_what_was_held() -> None:
    limited = scope(usd_per_day=Decimal(1))
    found = learned(ledger(), limited)
    found.take(taken(amount=USD))
    found.spend("key:a", DAY, USD // 4)
    found.close(closed())
    assert fits(found, limited, usd="0.75")
    assert not fits(found, limited, usd="0.76")


def test_spend_is_learned_once_and_then_followed() -> None:
    limited = scope(usd_per_day=Decimal(1), usd_per_month=Decimal(9))
    found = ledger()
    found.spend("key:a", DAY, USD)  # not known yet: what is learned will have it
    assert [("key:a", DAY), ("key:a", MONTH)] == found.unknown((limited, scope("key:b")), DAY)
    learned(found, limited)
    assert [] == found.unknown((limited,), DAY)
    found.spend("key:a", DAY, USD)
    assert not fits(found, limited, usd="0.1")


def test_a_request_of_yesterday_holds_nothing_of_today() -> None:
    limited = scope(usd_per_day=Decimal(1), usd_per_month=Decimal(5))
    found = learned(ledger(), limited)
    found.take(taken(amount=USD))
    tomorrow = "2026-12-01"
    for place in found.unknown((limited,), tomorrow):
        found.learn(*place, 0)
    assert () == found.consider((limited,), Need(usd=Decimal(1)), tomorrow).refused


def test_what_dead_processes_held_is_given_back() -> None:
    limited = scope(usd_per_day=Decimal(1))
    found = learned(ledger(), limited)
    found.take(taken("own.1", amount=USD // 2))
    found.take(taken("gone.1", amount=USD // 2))
    assert not fits(found, limited, usd="0.1")
    found.sweep({"own"})
    assert fits(found, limited, usd="0.5")
    assert not fits(found, limited, usd="0.6")
    found.close(closed("gone.1"))  # another settles it after all: nothing is given back twice
    assert not fits(found, limited, usd="0.6")


def test_money_given_back_is_given_back_once() -> None:
    limited = scope(tokens_per_minute=100, usd_per_day=Decimal(1))
    found = learned(ledger(), limited)
    found.take(taken("own.1", tokens=100, amount=USD // 2))
    found.take(taken("own.2", amount=USD // 2))
    found.hear(News(released=("own.1", "own.1", "unheard.of")))
    assert fits(found, limited, usd="0.5")
    assert not fits(found, limited, usd="0.6")
    assert not fits(found, limited, tokens=1)  # tokens stay until it is settled
    found.close(closed("own.1", reserved=100, used=40))
    assert fits(found, limited, tokens=60, usd="0.5")
    assert not fits(found, limited, usd="0.6")


def test_a_reservation_that_holds_nothing_is_forgotten() -> None:
    found = ledger()
    found.take(taken("own.1", tokens=100))
    found.sweep({"own"})
    assert ["own.1"] == list(found._open)
    found.advance(NOW + MINUTE)
    found.tidy(DAY)
    found.sweep({"own"})
    assert {} == found._open


def test_standings_are_those_of_the_tightest_enforced_scope() -> None:
    scopes = (
        scope("key:a", requests_per_minute=10, tokens_per_minute=1000),
        scope("policy:p anyone", requests_per_minute=5),
        scope("policy:q anyone", enforced=False, requests_per_minute=1),
        scope("key:free"),
    )
    found = ledger()
    found.take(taken(tokens=300, scopes=("key:a", "policy:p anyone", "policy:q anyone")))
    found.advance(NOW + 10 * SECOND)
    assert (Standing(5, 4, 50 * SECOND), Standing(1000, 700, 50 * SECOND)) == found.standings(scopes)
    assert (None, None) == found.standings(scopes[2:])


def test_a_clock_that_goes_back_lets_nothing_in_sooner() -> None:
    limited = scope(requests_per_minute=1)
    found = ledger()
    found.take(taken())
    found.advance(NOW - 3600 * SECOND)
    (refused,) = found.consider((limited,), Need(), DAY).refused
    assert MINUTE == refused.wait
    found.advance(NOW - 3600 * SECOND + MINUTE)
    assert fits(found, limited)


def test_a_clock_that_went_back_between_two_events_heard_blocks_no_one() -> None:
    limited = scope(requests_per_minute=1)
    found = Ledger()
    found.hear(News(taken=(taken("other.1", at=NOW + 3600 * SECOND), taken("other.2", at=NOW))))
    found.advance(NOW + MINUTE)
    assert fits(found, limited)


@pytest.mark.parametrize("count", [1, 3000])
def test_tidying_drops_what_no_longer_counts(count: int) -> None:
    found = ledger()
    for number in range(count):
        found.take(taken(f"own.{number}", amount=1, scopes=(f"key:{number}",)))
        found.close(closed(f"own.{number}", scopes=(f"key:{number}",)))
    found.advance(NOW + MINUTE)
    for _ in range(4):
        found.tidy("2027-01-01")
    assert ({}, {}, {}) == (found._windows, found._purses, found._open)


def test_tidying_keeps_what_counts() -> None:
    limited = scope(requests_per_minute=1, usd_per_day=Decimal(1))
    found = learned(ledger(), limited)
    found.take(taken(amount=USD))
    found.tidy("2026-12-01")
    assert not fits(found, scope(requests_per_minute=1))
    assert not fits(found, scope(usd_per_day=Decimal(1)), usd="0.1")


events = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 9), st.integers(0, 50)),
        st.tuples(st.just("close"), st.integers(0, 9), st.integers(0, 90)),
    ),
    max_size=40,
)


@given(events)
def test_whoever_hears_the_same_news_comes_to_the_same_figures(events: list[tuple[str, int, int]]) -> None:
    first, second = ledger(), ledger()
    scopes = (scope(requests_per_minute=100, tokens_per_minute=1000, usd_per_day=Decimal(1000)),)
    open_ids: list[str] = []
    for now, (kind, number, figure) in enumerate(events, NOW):
        if kind == "take":
            open_ids.append(f"own.{now}")
            told = News(taken=(taken(f"own.{now}", at=now, tokens=figure, amount=figure * USD),))
            first.take(told.taken[0])
        else:
            name = open_ids.pop(number % len(open_ids)) if open_ids else "own.0"
            ended = closed(name, at=now, reserved=20, used=figure)
            told = News(closed=(ended,), spent=(("key:a", DAY, figure),))
            first.close(ended)
            first.spend("key:a", DAY, figure)
        second.hear(told)
    for found in (first, second):
        found.advance(NOW + MINUTE // 2)
        learned(found, *scopes)
    need = Need(tokens=900, usd=Decimal(999))
    assert first.standings(scopes) == second.standings(scopes)
    assert first.consider(scopes, need, DAY) == second.consider(scopes, need, DAY)


STEPS = st.lists(
    st.builds(
        Step,
        pause=st.sampled_from(PAUSES) | st.integers(0, MINUTE),
        tokens=st.sampled_from([0, 1, 100, 101]) | st.integers(0, 101),
        closes=st.none() | st.tuples(st.integers(0, 9), st.sampled_from([0, 100]) | st.integers(0, 300)),
    ),
    max_size=30,
)


@given(STEPS, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_who_passes_and_when_is_what_brute_force_finds(steps: list[Step], requests: int) -> None:
    limited = scope(requests_per_minute=requests, tokens_per_minute=100)
    found, brute, now = ledger(), BruteWindow(requests, 100), NOW
    under_way: list[tuple[str, int, Any]] = []
    for number, step in enumerate(steps):
        now += step.pause
        found.advance(now)
        if step.closes is not None and under_way:
            which, used = step.closes
            name, reserved, came = under_way.pop(which % len(under_way))
            found.close(closed(name, at=now, reserved=reserved, used=used))
            brute.close(came, used, now)
        refused = found.consider((limited,), Need(tokens=step.tokens), DAY).refused
        assert brute.admits(now, step.tokens) is not bool(refused)
        if refused:
            wait = refused[0].wait
            assert brute.retry_after(now, step.tokens) == (None if wait is None else limits.seconds(wait))
        else:
            found.take(taken(f"own.{number}", at=now, tokens=step.tokens))
            under_way.append((f"own.{number}", step.tokens, brute.take(now, step.tokens)))
        assert brute.standings(now) == found.standings((limited,))
