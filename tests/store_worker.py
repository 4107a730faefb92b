"""A process that uses a store, for tests of several at once. Run as `store_worker.py MODE STORE ...`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from decimal import Decimal

from zurelay.limits import Granted, Need, Scope
from zurelay.model import UsageLimits
from zurelay.store import Spent, Store
from zurelay.store_redis import RedisStore
from zurelay.store_sqlite import SqliteStore
from zurelay.usage import Usage


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
    await store.close()
    tell(json.dumps(counts))


async def load(where: str, key: str) -> None:
    """Reserve and settle a cent at a time until killed; tell the time and how many were settled, again and again."""
    store = await opened(where)
    limits = UsageLimits(requests_per_minute=10**9, usd_per_day=Decimal(10**6))
    scopes = (Scope(name=f"key:{key}", label="This key", limits=limits),)
    spent = Spent(key=key, model="gpt", usage=Usage(prompt=100, completion=10), usd=Decimal("0.01"))
    settled = 0
    while True:
        for _ in range(5):
            outcome = await store.reserve(scopes, Need(tokens=500, usd=Decimal("0.05")))
            assert isinstance(outcome, Granted)
            store.settle(outcome.reservation, spent)
            settled += 1
        tell(f"{time.monotonic()} {settled}")
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    mode, *words = sys.argv[1:]
    asyncio.run(burst(words[0], int(words[1]), int(words[2])) if mode == "burst" else load(words[0], words[1]))
