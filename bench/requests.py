"""Requests: latency and rate by wrk, in rounds that take each target in turn, so that a noisy minute hits them all."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench import proc, wrk
from bench.figures import SHORT, WHOLE, Figures, Quantity
from bench.targets import CHAT, Target

_ALONE, _MANY = 1, 32  # connections
_WARM_UP = 1  # seconds: pools fill, and node compiles
_KINDS = {WHOLE: CHAT, SHORT: {**CHAT, "stream": True}}  # the stub's default length


async def measure(
    program: str, targets: list[Target], directory: Path, rounds: int, seconds: int, figures: Figures
) -> None:
    """Load every target with requests for whole answers, then with ones for short streams."""
    for title, body in _KINDS.items():
        scripts = [_script(directory, target, body) for target in targets]
        for target, script in zip(targets, scripts, strict=True):
            await wrk.run(program, target.url, script, _MANY, _WARM_UP)
        for turn in range(rounds):
            for place in range(len(targets)):
                chosen = (place + turn) % len(targets)
                await _round(program, title, targets[chosen], scripts[chosen], seconds, figures)


def _script(directory: Path, target: Target, body: object) -> Path:
    headers = {"content-type": "application/json", **target.headers}
    file = directory / f"{target.name.replace(' ', '-')}.lua"
    file.write_text(wrk.script(msgspec.json.encode(body), headers))
    return file


async def _round(program: str, title: str, target: Target, script: Path, seconds: int, figures: Figures) -> None:
    def add(name: str, unit: str, value: float) -> None:
        figures.add(Quantity(title=title, name=name, unit=unit), target.name, value)

    alone = await wrk.run(program, target.url, script, _ALONE, seconds)
    add("median, 1 connection", "ms", alone.p50 / 1000)
    add("p99, 1 connection", "ms", alone.p99 / 1000)
    before = {role: proc.cpu_seconds(pids) for role, pids in target.roles.items()}
    many = await wrk.run(program, target.url, script, _MANY, seconds)
    used = {role: proc.cpu_seconds(pids) - before[role] for role, pids in target.roles.items()}
    add("median, 32 connections", "ms", many.p50 / 1000)
    add("p99, 32 connections", "ms", many.p99 / 1000)
    add("a second, 32 connections", "/s", many.rate)
    add("that failed", "", alone.failed + many.failed)
    add("CPU each", "us", sum(used.values()) / many.requests * 1e6)
    if len(used) > 1:
        for role, seconds_used in used.items():
            add(f"CPU each, {role}", "us", seconds_used / many.requests * 1e6)
