"""The wall clock."""

from __future__ import annotations

import time


class WallClock:
    """A Clock that tells the system's time."""

    def now(self) -> int:
        """Give the microseconds since 1970, UTC."""
        return time.time_ns() // 1000
