"""Times between moments."""

from __future__ import annotations

from zurelay import moments


def test_a_time_needs_both_its_ends_and_is_never_below_zero() -> None:
    assert 1.5 == moments.seconds(1, 1_500_000_001)
    assert moments.seconds(0, 5) is None
    assert moments.seconds(5, 0) is None
    assert 0 == moments.seconds(9, 5)
