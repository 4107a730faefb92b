"""What the limits cost in a worker: reserving and settling a request, with limits off, in SQLite and in Redis.

    python -m bench.stores

In one process, without Envoy: the store's part alone. The kinds take turns, so that what the machine does meanwhile
falls on all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import msgspec

from bench.running import BenchError
from zurelay.limits import Granted, Need, Scope
from zurelay.model import Store as Named
from zurelay.model import UsageLimits
from zurelay.store import Spent, Store
from zurelay.stores import open_store
from zurelay.usage import Usage

OFF, SQLITE, REDIS = "limits off", "SQLite", "Redis"
A_SECOND = 1000  # settled requests that the goal asks for
_FREE = (Scope(name="key:free", label="This key"),)
_LIMITED = (
    Scope(
        name="key:a",
        label="This key",
        limits=UsageLimits(
            requests_per_minute=10**9,
            tokens_per_minute=10**12,
            usd_per_day=Decimal(10**6),
            usd_per_month=Decimal(10**6),
        ),
    ),
)
_NEED = Need(tokens=500, usd=Decimal("0.05"))
_SPENT = Spent(key="a", model="gpt", usage=Usage(prompt=100, completion=10), usd=Decimal("0.01"))


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: `store` is OFF, SQLITE or REDIS; `name` says what was measured, in `unit`, one value a round."""

    store: str
    name: str
    unit: str
    rounds: list[float]

    @property
    def median(self) -> float:
        """The figure."""
        return statistics.median(self.rounds)


async def rows(*, rounds: int = 5, requests: int = 300, seconds: float = 3.0) -> list[Row]:
    """Measure all stores that can be had here; Redis needs redis-server installed."""
    async with _stores() as found:
        each: dict[str, list[float]] = {kind: [] for kind in found}
        for _ in range(rounds):
            for kind, store in found.items():
                each[kind].append(await _median(store, _FREE if kind == OFF else _LIMITED, requests))
        measured = [
            Row(store=kind, name="reserve and settle, median", unit="us", rounds=it) for kind, it in each.items()
        ]
        for kind in (SQLITE, REDIS):
            if kind not in found:
                continue
            added = [one - off for one, off in zip(each[kind], each[OFF], strict=True)]
            measured.append(Row(store=kind, name="added by limits", unit="us", rounds=added))
            rate, lost = await _settled(found[kind], seconds)
            measured.append(Row(store=kind, name="settled a second", unit="1/s", rounds=[rate]))
            measured.append(Row(store=kind, name="lost", unit="requests", rounds=[lost]))
        return measured


async def _median(store: Store, scopes: tuple[Scope, ...], requests: int) -> float:
    """Give a request's median in microseconds, one after the other."""
    took = []
    for _ in range(requests):
        begun = time.perf_counter()
        await _one(store, scopes)
        took.append((time.perf_counter() - begun) * 1e6)
        await asyncio.sleep(0)  # the store's own work falls between two, as it does between requests
    return statistics.median(took)


async def _one(store: Store, scopes: tuple[Scope, ...]) -> None:
    outcome = await store.reserve(scopes, _NEED)
    if not isinstance(outcome, Granted):
        raise TypeError("the limits of the benchmark are too low")
    store.settle(outcome.reservation, _SPENT)


async def _settled(store: Store, seconds: float) -> tuple[float, float]:
    """Settle at the goal's pace, or as fast as it goes; give the rate, and how many aren't in the store after."""
    before = await _counted(store)
    begun, asked = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        due = int(passed * A_SECOND * 1.05) - asked
        await asyncio.gather(*(_one(store, _LIMITED) for _ in range(due)))
        asked += due
        await asyncio.sleep(0.001)
    rate = asked / (time.perf_counter() - begun)
    return rate, asked - (await _counted(store) - before)


async def _counted(store: Store) -> int:
    lines = await store.spending("2000-01-01", "9999-12-31")
    return sum(line.counts.requests for line in lines)


@contextlib.asynccontextmanager
async def _stores() -> AsyncIterator[dict[str, Store]]:
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        named = {SQLITE: Named(sqlite=str(folder / "bench.db"))}
        program = shutil.which("redis-server")
        if program is not None:
            url = await stack.enter_async_context(_redis(program, folder))
            named[REDIS] = Named(sqlite=None, redis=url)
        found: dict[str, Store] = {}
        for kind, name in named.items():
            found[kind] = await open_store(name)
            stack.push_async_callback(found[kind].close)
        yield {OFF: found[SQLITE], **found}


@contextlib.asynccontextmanager
async def _redis(program: str, folder: Path) -> AsyncIterator[str]:
    """Run a Redis that keeps nothing; give its URL."""
    socket = folder / "redis.sock"
    options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--logfile", "redis.log")
    server = await asyncio.create_subprocess_exec(program, *options, cwd=folder)
    try:
        end = time.monotonic() + 20
        while not socket.exists():
            if server.returncode is not None or time.monotonic() > end:
                raise BenchError("redis-server does not start")
            await asyncio.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        server.terminate()
        await server.wait()


def main() -> None:
    """Print the figures, one a line."""
    for row in asyncio.run(rows()):
        sys.stdout.write(f"{row.store:11} {row.name:28} {row.median:10.1f} {row.unit}\n")


if __name__ == "__main__":
    main()
