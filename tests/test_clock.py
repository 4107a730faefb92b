"""The wall clock tells microseconds."""

from __future__ import annotations

import time

from zurelay.clock import WallClock


def test_it_tells_the_systems_time_in_microseconds() -> None:
    before = time.time_ns()
    now = WallClock().now()
    assert before // 1000 <= now <= time.time_ns() // 1000
