"""What zurelay must reach and aims at, and whether a run did."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from bench import figures
from bench.figures import (
    ALL_TRACED,
    ENVOY,
    FEW_TRACED,
    FLOODED,
    LARGE,
    LITELLM,
    MEMORY,
    PACED,
    PASSTHROUGH,
    PORTKEY,
    SATURATED,
    START,
    STREAMS,
    TRACING,
    UNTRACED,
    WHOLE,
    ZURELAY,
    Figure,
)

OPEN_STREAMS = 1_000


class Bound(msgspec.Struct, frozen=True):
    """A figure is to lie under a value, or over it."""

    value: float
    over: bool

    def holds(self, found: float) -> bool:
        """Whether it does."""
        return found > self.value if self.over else found < self.value


class Met(enum.Enum):
    """How far a goal was met."""

    AIM = "as aimed at"
    MUST = "yes"
    NO = "no"
    UNKNOWN = "not measured"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to reach. With `other`, zurelay's figure is divided by that target's."""

    what: str
    title: str
    name: str
    unit: str
    must: Bound | None = None
    aim: Bound | None = None
    target: str = ZURELAY
    other: str | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A goal and what came of it."""

    goal: Goal
    found: float | None
    met: Met


def _under(value: float) -> Bound:
    return Bound(value, over=False)


def _over(value: float) -> Bound:
    return Bound(value, over=True)


_MEDIAN = "median, 1 connection"
_RATE = "a second, 32 connections"
_FLOW = f"chunks a second, {FLOODED}"

GOALS = (
    Goal(what="median, 1 connection", title=WHOLE, name=_MEDIAN, unit="ms", must=_under(1.8), aim=_under(1.3)),
    Goal(what="median by Portkey's", title=WHOLE, name=_MEDIAN, unit="x", aim=_under(1), other=PORTKEY),
    Goal(what="requests, 32 connections", title=WHOLE, name=_RATE, unit="/s", must=_over(1300), aim=_over(2000)),
    Goal(what="requests by Portkey's", title=WHOLE, name=_RATE, unit="x", must=_over(2.5), other=PORTKEY),
    Goal(what="requests by LiteLLM's", title=WHOLE, name=_RATE, unit="x", must=_over(15), other=LITELLM),
    Goal(
        what="CPU of the sidecar a chunk, 2,000 a second",
        title=STREAMS,
        name=f"CPU a chunk, {PACED}, sidecar",
        unit="us",
        must=_under(150),
        aim=_under(75),
    ),
    Goal(
        what="CPU of the sidecar a chunk, saturated",
        title=STREAMS,
        name=f"CPU a chunk, {SATURATED}, sidecar",
        unit="us",
        must=_under(60),
        aim=_under(30),
    ),
    Goal(
        what="pass-through chunks by Envoy's alone",
        title=STREAMS,
        name=_FLOW,
        unit="x",
        must=_over(0.6),
        aim=_over(0.8),
        target=PASSTHROUGH,
        other=ENVOY,
    ),
    Goal(
        what="first token, added, median",
        title=STREAMS,
        name="first token, added, median",
        unit="ms",
        must=_under(3),
        aim=_under(2),
    ),
    Goal(
        what=f"memory of the sidecar, {OPEN_STREAMS:,} streams",
        title=MEMORY,
        name=f"sidecar, {OPEN_STREAMS:,} streams open",
        unit="MiB",
        must=_under(250),
    ),
    Goal(
        what=f"memory of Envoy, {OPEN_STREAMS:,} streams",
        title=MEMORY,
        name=f"Envoy, {OPEN_STREAMS:,} streams open",
        unit="MiB",
        must=_under(300),
    ),
    Goal(what="a request of 20 MB", title=LARGE, name="time", unit="ms", must=_under(500), aim=_under(250)),
    Goal(
        what="memory of the sidecar by size of that request",
        title=LARGE,
        name="sidecar, most memory by size of the request",
        unit="x",
        must=_under(6),
    ),
    Goal(
        what="requests, all traced, by untraced",
        title=TRACING,
        name=_RATE,
        unit="x",
        must=_over(0.85),
        target=ALL_TRACED,
        other=UNTRACED,
    ),
    Goal(
        what="requests, a hundredth traced, by untraced",
        title=TRACING,
        name=_RATE,
        unit="x",
        must=_over(0.97),
        target=FEW_TRACED,
        other=UNTRACED,
    ),
    Goal(what="first answer after the start", title=START, name="first answer", unit="s", must=_under(3)),
    Goal(what="a worker's imports", title=START, name="a worker's imports", unit="s", must=_under(0.5)),
)


def judged(measured: Sequence[Figure]) -> list[Judged]:
    """Hold a run's figures against every goal."""
    return [_judge(goal, measured) for goal in GOALS]


def _judge(goal: Goal, measured: Sequence[Figure]) -> Judged:
    found = figures.median(measured, goal.title, goal.name, goal.target)
    if found is not None and goal.other is not None:
        theirs = figures.median(measured, goal.title, goal.name, goal.other)
        found = found / theirs if theirs else None
    return Judged(goal=goal, found=found, met=met(goal, found))


def met(goal: Goal, found: float | None) -> Met:
    """Say how far a goal is met; one without a must can't fail, but its aim can be missed."""
    if found is None:
        return Met.UNKNOWN
    if goal.aim is not None and goal.aim.holds(found):
        return Met.AIM
    return Met.MUST if goal.must is not None and goal.must.holds(found) else Met.NO
