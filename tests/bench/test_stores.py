"""The stores' benchmark finds a figure for each store, and counts what it lost."""

from __future__ import annotations

import asyncio
import shutil

from bench import stores


def test_every_store_that_can_be_had_is_measured_and_loses_nothing() -> None:
    found = asyncio.run(stores.rows(rounds=2, requests=20, seconds=0.3))
    measured = {(row.store, row.name): row for row in found}
    kinds = {stores.SQLITE} | ({stores.REDIS} if shutil.which("redis-server") else set())
    assert kinds | {stores.OFF} == {row.store for row in found}
    for kind in kinds:
        assert 0 == measured[kind, "lost"].median
        assert 0 < measured[kind, "settled a second"].median
        assert 2 == len(measured[kind, "added by limits"].rounds)
