"""A process that asks a store much at once, for tests of several of them: `store_worker.py STORE LIMIT EACH`."""

from __future__ import annotations

import asyncio
import json
import sys
from decimal import Decimal

from zurelay.limits import Granted, Need, Scope
from zurelay.model import UsageLimits
from zurelay.store import Store
from zurelay.store_redis import RedisStore
from zurelay.store_sqlite import SqliteStore


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def opened(where: str) -> Store:
    return await (RedisStore if where.startswith("unix:") else SqliteStore).open(where)


async def burst(where: str, limit: int, each: int) -> None:
    """Ask `each` times at once for one of `limit`, for every kind of limit; tell how many were let in."""
    store = await opened(where)
    tell("ready")
    await asyncio.to_thread(sys.stdin.readline)
    kinds = {
        "requests": (UsageLimits(requests_per_minute=limit), Need()),
        "tokens": (UsageLimits(tokens_per_minute=7 * limit), Need(tokens=7)),
        "usd": (UsageLimits(usd_per_month=limit * Decimal("0.7")), Need(usd=Decimal("0.7"))),
    }
    counts = {}
    for kind, (limits, need) in kinds.items():
        scopes = (Scope(name=f"key:{kind}", label="This key", limits=limits),)
        outcomes = await asyncio.gather(*(store.reserve(scopes, need) for _ in range(each)))
        counts[kind] = sum(isinstance(outcome, Granted) for outcome in outcomes)
    tell(json.dumps(counts))
    await asyncio.to_thread(sys.stdin.readline)  # who leaves gives back what it holds: not before all are done
    await store.close()


if __name__ == "__main__":
    asyncio.run(burst(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
