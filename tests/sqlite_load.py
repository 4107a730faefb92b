"""A process that settles as fast as it can until it is killed: `sqlite_load.py FILE KEY`."""

from __future__ import annotations

import asyncio
import sys
import time
from decimal import Decimal

from zurelay.limits import Granted, Need, Scope
from zurelay.model import UsageLimits
from zurelay.store import Spent
from zurelay.store_sqlite import SqliteStore
from zurelay.usage import Usage


async def load(where: str, key: str) -> None:
    """Reserve and settle a cent at a time until killed; tell the time and how many were settled, again and again."""
    store = await SqliteStore.open(where)
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
        sys.stdout.write(f"{time.monotonic()} {settled}\n")
        sys.stdout.flush()
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(load(sys.argv[1], sys.argv[2]))
