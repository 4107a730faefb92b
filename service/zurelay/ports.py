"""The seams: what the house needs of the world, as small protocols. Shells implement them, tests do too."""

from __future__ import annotations

from typing import Protocol

import msgspec

from zurelay.plan import Plan
from zurelay.usage import Usage


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one request. `number` is the attempt that ended it, 0 where none began; `outcome` is one word."""

    plan: Plan
    number: int
    outcome: str
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()


class Recorder(Protocol):
    """Where requests are put on record."""

    def finished(self, record: Record) -> None:
        """Take note of a request that has ended."""

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        """Take note of an attempt that failed."""
