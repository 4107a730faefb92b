"""When things happened in one request, and how its stream went: nanoseconds since 1970, 0 for what is not known."""

from __future__ import annotations

import msgspec

SECOND = 1_000_000_000


class Moments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The end of a request as the one who saw it tells it.

    `began` is the start of the attempt that ended it, `opened` when its stream was opened without a token; `gaps` are
    the times between chunks, as a histogram's counts and sum.
    """

    began: int = 0
    first_token: int = 0
    opened: int = 0
    ended: int = 0
    keepalives: int = 0
    gaps: tuple[float, ...] = ()


def seconds(start: int, end: int) -> float | None:
    """Give the time between two moments; None where one is not known. Never below zero: clocks of workers differ."""
    return max(end - start, 0) / SECOND if start and end else None
