"""Requests: latency and rate by wrk, in rounds that take each target in turn, so that a noisy minute hits them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench import proc, wrk
from bench.figures import SHORT, WHOLE, Figures, Quantity
from bench.servers import SIDECAR
from bench.targets import Target

_ALONE, _MANY = 1, 32  # connections
_WARM_UP = 1  # seconds: pools fill, and node compiles
_BUSIEST = "share of the busiest worker"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are measured: by which wrk, in how many rounds, of how many seconds."""

    program: str
    directory: Path
    rounds: int
    seconds: int


async def measure(load: Load, targets: Sequence[Target], figures: Figures) -> None:
    """Load every target with requests for whole answers, then with ones for short streams of the stub's own length."""
    await compare(load, WHOLE, [target for target in targets if target.whole], figures)
    await _rounds(load, SHORT, targets, {"stream": True}, figures)


async def compare(load: Load, title: str, targets: Sequence[Target], figures: Figures) -> None:
    """Load targets with requests for whole answers, each in turn."""
    await _rounds(load, title, targets, {}, figures)


async def _rounds(load: Load, title: str, targets: Sequence[Target], more: dict[str, object], figures: Figures) -> None:
    scripts = [_script(load.directory, target, {**target.chat, **more}) for target in targets]
    for target, script in zip(targets, scripts, strict=True):
        await wrk.run(load.program, target.url, script, _MANY, _WARM_UP)
    for turn in range(load.rounds):
        for place in range(len(targets)):
            chosen = (place + turn) % len(targets)
            await _round(load, title, targets[chosen], scripts[chosen], figures)


def _script(directory: Path, target: Target, body: object) -> Path:
    headers = {"content-type": "application/json", **target.headers}
    file = directory / f"{target.name.replace(' ', '-')}.lua"
    file.write_text(wrk.script(msgspec.json.encode(body), headers))
    return file


async def _round(load: Load, title: str, target: Target, script: Path, figures: Figures) -> None:
    def add(name: str, unit: str, value: float) -> None:
        figures.add(Quantity(title=title, name=name, unit=unit), target.name, value)

    alone = await wrk.run(load.program, target.url, script, _ALONE, load.seconds)
    add("median, 1 connection", "ms", alone.p50 / 1000)
    add("p99, 1 connection", "ms", alone.p99 / 1000)
    before = {pid: proc.cpu_seconds([pid]) for pid in target.pids}
    many = await wrk.run(load.program, target.url, script, _MANY, load.seconds)
    used = {pid: proc.cpu_seconds([pid]) - before[pid] for pid in target.pids}
    add("median, 32 connections", "ms", many.p50 / 1000)
    add("p99, 32 connections", "ms", many.p99 / 1000)
    add("a second, 32 connections", "/s", many.rate)
    add("that failed", "", alone.failed + many.failed)
    add("CPU each", "us", sum(used.values()) / many.requests * 1e6)
    if len(target.roles) > 1:
        for role, pids in target.roles.items():
            add(f"CPU each, {role}", "us", sum(used[pid] for pid in pids) / many.requests * 1e6)
    workers = [used[pid] for pid in target.roles.get(SIDECAR, ())]
    if len(workers) > 1:
        add(_BUSIEST, "%", max(workers) / sum(workers) * 100)
