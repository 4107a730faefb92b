"""zurelay beside itself: gateways that differ in one setting, all up at once and loaded in turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench import requests, servers, stores, targets
from bench.figures import Figures, Quantity
from bench.requests import Load
from bench.running import BenchError, Running
from bench.targets import Target

NO_REDIS = "redis-server is missing, so limits in Redis are left out: apt install redis-server"
_PATIENCE = 20.0  # seconds for Redis to start
_ASK_EVERY = 0.02
# So high that nothing is refused: what is measured is that they are looked at.
_LIMITS = {"requests_per_minute": 10_000_000, "tokens_per_minute": 10_000_000_000, "usd_per_month": 1_000_000_000}
_LIMITED = {"policies": [{"name": "all", "match": {}, "limits": _LIMITS}]}

Settings = Mapping[str, Mapping[str, object]]
"""What is put on top of a gateway's configuration, by its name."""


async def workers(load: Load, stub: Target, figures: Figures) -> None:
    """Measure what a second worker brings, and how evenly the two share the work."""
    settings = {"1 worker": {"workers": 1}, "2 workers": {"workers": 2}}
    await compare(load, "by workers", stub, settings, figures)


async def limits(load: Load, stub: Target, figures: Figures) -> str | None:
    """Measure what limits cost, by where they are kept; gives what was left out."""
    settings: dict[str, Mapping[str, object]] = {"no limits": {}, "in SQLite": _LIMITED}
    program = shutil.which("redis-server")
    if program is None:
        await compare(load, "by limits", stub, settings, figures)
        return NO_REDIS
    async with _redis(program, load.directory) as url:
        settings["in Redis"] = {**_LIMITED, "store": {"redis": url}}
        await compare(load, "by limits", stub, settings, figures)
    return None


async def stores_alone(figures: Figures) -> None:
    """Measure the stores' own part, in one process and without Envoy."""
    for row in await stores.rows():
        for value in row.rounds:
            figures.add(Quantity(title="by store, without Envoy", name=row.name, unit=row.unit), row.store, value)


async def compare(load: Load, title: str, stub: Target, settings: Settings, figures: Figures) -> None:
    """Start a gateway for each of the settings, and load each in turn with requests for whole answers."""
    made = [servers.zurelay(load.directory, stub.port, name, some) for name, some in settings.items()]
    async with targets.running(made, load.directory) as started:
        await requests.compare(load, title, started, figures)


@contextlib.asynccontextmanager
async def _redis(program: str, directory: Path) -> AsyncIterator[str]:
    """Run a Redis without persistence."""
    path = directory / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"]
    process = await Running.start("redis", command, directory, os.environ)
    try:
        async with asyncio.timeout(_PATIENCE):
            while not path.exists():  # made once it listens
                process.check()
                await asyncio.sleep(_ASK_EVERY)
        yield f"unix://{path}"
    except TimeoutError:
        raise BenchError(f"redis-server does not listen within {_PATIENCE:g} s") from None
    finally:
        await process.stop()
