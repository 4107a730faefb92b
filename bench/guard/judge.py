"""Whether a request or a chunk costs more than it did: its time by the yardstick's, against what was recorded."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from bench.guard.measure import Least

# Runs of the same code differ by 5 % either way, idle or busy: a fifth more never passes, nothing more never fails.
BOUND = 1.12
_CHEAPER = 0.9

Baseline = dict[str, dict[str, float]]
"""By Python's version, as that decides how fast what is: cost by name, in yardsticks."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of one cost; `holds` is False where it is too high."""

    holds: bool
    said: str


def costs(found: Least) -> dict[str, float]:
    """Express times in yardsticks."""
    return {"request": found.request / found.yardstick, "chunk": found.chunk / found.yardstick}


def middle(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Take the median run's value of each cost."""
    return {name: round(statistics.median(run[name] for run in runs), 5) for name in runs[0]}


def judged(found: Mapping[str, float], recorded: Mapping[str, float]) -> list[Verdict]:
    """Compare each cost with the one recorded."""
    return [_judge(name, cost, recorded.get(name)) for name, cost in found.items()]


def _judge(name: str, cost: float, recorded: float | None) -> Verdict:
    if recorded is None:
        return Verdict(holds=False, said=f"a {name}: nothing is recorded: python -m bench.guard --record")
    share = cost / recorded
    said = f"a {name} costs the sidecar {share:.2f} times what is recorded"
    if share > BOUND:
        return Verdict(holds=False, said=f"{said}; up to {BOUND} is noise")
    if share < _CHEAPER:
        return Verdict(holds=True, said=f"{said}: record it, so that this stays: python -m bench.guard --record")
    return Verdict(holds=True, said=said)
