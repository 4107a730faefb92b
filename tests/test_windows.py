"""The sliding window against a plain model of it, and its behaviour where a clock jumps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.limits import MINUTE, SECOND
from zurelay.windows import Purse, Window


def filled(*entries: tuple[int, int]) -> Window:
    """A window with a request at each of these seconds, with these tokens."""
    window = Window()
    for second, tokens in entries:
        window.add(second * SECOND, 1, tokens)
    return window


def test_a_request_counts_for_exactly_a_minute() -> None:
    window = filled((0, 5))
    window.advance(MINUTE - 1)
    assert (1, 5) == (window.requests, window.tokens)
    window.advance(MINUTE)
    assert (0, 0, True) == (window.requests, window.tokens, window.empty)


def test_two_bursts_at_a_boundary_do_not_both_fit() -> None:
    window = filled(*[(59, 0)] * 10)
    now = 61 * SECOND
    window.advance(now)
    assert 58 * SECOND == window.wait_for_request(10, now)


WAITS = {
    "an empty window": ([], 1, 0),
    "one short of the limit": ([(0, 0), (10, 0)], 3, 0),
    "at the limit, the oldest must go": ([(0, 0), (10, 0)], 2, 40 * SECOND),
    "a limit that was lowered, more must go": ([(0, 0), (5, 0), (10, 0)], 1, 50 * SECOND),
}


@pytest.mark.parametrize(("entries", "limit", "expected"), [pytest.param(*row, id=name) for name, row in WAITS.items()])
def test_how_long_a_request_waits(entries: list[tuple[int, int]], limit: int, expected: int) -> None:
    assert expected == filled(*entries).wait_for_request(limit, 20 * SECOND)


TOKENS = {
    "they fit": ([(0, 50)], 50, 100, 0),
    "one too many": ([(0, 50)], 51, 100, 40 * SECOND),
    "the oldest must go": ([(0, 50), (10, 40)], 60, 100, 40 * SECOND),
    "both must go": ([(0, 50), (10, 40)], 61, 100, 50 * SECOND),
    "an empty entry frees nothing": ([(0, 0), (10, 90)], 20, 100, 50 * SECOND),
    "more than the limit": ([], 101, 100, None),
    "just the limit": ([], 100, 100, 0),
}


@pytest.mark.parametrize(
    ("entries", "needed", "limit", "expected"), [pytest.param(*row, id=name) for name, row in TOKENS.items()]
)
def test_how_long_tokens_wait(entries: list[tuple[int, int]], needed: int, limit: int, expected: int | None) -> None:
    assert expected == filled(*entries).wait_for_tokens(needed, limit, 20 * SECOND)


def test_a_correction_counts_while_the_request_does() -> None:
    window = Window()
    early, late = window.add(0, 1, 100), window.add(30 * SECOND, 1, 100)
    window.advance(MINUTE)
    window.correct(early, 7)
    window.correct(late, 30)
    assert (1, 30) == (window.requests, window.tokens)


def test_when_all_is_free_again() -> None:
    window = filled((0, 5), (10, 5))
    window.add(20 * SECOND, 0, 3)
    now = 30 * SECOND
    assert (40 * SECOND, 50 * SECOND) == (window.requests_reset(now), window.tokens_reset(now))
    assert (0, 0) == (Window().requests_reset(now), Window().tokens_reset(now))


def test_a_clock_that_goes_back_neither_frees_nor_blocks_for_long() -> None:
    window = filled((1000, 5), (3600, 5))
    window.turn_back(1000 * SECOND)
    window.advance(1000 * SECOND)
    assert (2, 10) == (window.requests, window.tokens)
    assert MINUTE == window.requests_reset(1000 * SECOND)
    window.advance(1060 * SECOND)
    assert window.empty


steps = st.lists(
    st.tuples(st.integers(min_value=0, max_value=40 * SECOND), st.integers(min_value=0, max_value=60)), max_size=60
)


@given(steps, st.integers(min_value=1, max_value=6), st.integers(min_value=60, max_value=200))
def test_a_window_lets_in_what_a_list_of_all_requests_would(
    steps: list[tuple[int, int]], requests: int, tokens: int
) -> None:
    window, now = Window(), 0
    passed: list[tuple[int, int]] = []
    for pause, needed in steps:
        now += pause
        window.advance(now)
        recent = [each for each in passed if each[0] > now - MINUTE]
        fits = len(recent) < requests and sum(each[1] for each in recent) + needed <= tokens
        wait = max(window.wait_for_request(requests, now), window.wait_for_tokens(needed, tokens, now) or 0)
        assert fits == (wait == 0)
        if fits:
            window.add(now, 1, needed)
            passed.append((now, needed))


@given(steps, st.integers(min_value=1, max_value=4))
def test_a_wait_ends_exactly_when_it_fits(steps: list[tuple[int, int]], limit: int) -> None:
    window, now = Window(), 0
    for pause, tokens in steps:
        now += pause
        window.advance(now)
        window.add(now, 1, tokens)
    wait = window.wait_for_request(limit, now)
    if wait:
        window.advance(now + wait - 1)
        assert window.requests >= limit
        window.advance(now + wait)
        assert window.requests < limit


def test_a_purse_holds_beside_what_was_spent() -> None:
    purse = Purse()
    purse.held = 5
    assert 5 == purse.used
    purse.spent = 7
    assert 12 == purse.used
