"""Windows grow up to their limit; a peer that sends much which brings nothing is told to stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zurelay.http2.flow import MOST_FAULTS, MOST_IDLE, MOST_UNREAD, Calm, grown
from zurelay.http2.frames import NUMBER, Code, ConnectionFault


@pytest.mark.parametrize(("window", "size"), [(0, NUMBER), (NUMBER, 0), (-5, NUMBER), (NUMBER - 1, 1)])
def test_a_window_grows_up_to_the_limit(window: int, size: int) -> None:
    assert window + size == grown(window, size)


@pytest.mark.parametrize(("window", "size"), [(1, NUMBER), (NUMBER, 1)])
def test_a_window_beyond_the_limit_overflows(window: int, size: int) -> None:
    with pytest.raises(OverflowError):
        grown(window, size)


@pytest.mark.parametrize(
    ("act", "most"), [(Calm.idle, MOST_IDLE), (Calm.answered, MOST_UNREAD), (Calm.fault, MOST_FAULTS)]
)
def test_there_is_a_most_of_each(act: Callable[[Calm], None], most: int) -> None:
    calm = Calm()
    for _ in range(most):
        act(calm)
    with pytest.raises(ConnectionFault) as fault:
        act(calm)
    assert Code.CALM == fault.value.code


def test_frames_that_carry_nothing_are_counted_by_the_second() -> None:
    calm = Calm()
    for second in range(5):
        calm.tick(second)
        for _ in range(MOST_IDLE):
            calm.idle()


def test_answers_that_are_read_do_not_count() -> None:
    calm = Calm()
    for _ in range(5):
        for _ in range(MOST_UNREAD):
            calm.answered()
        calm.read()
