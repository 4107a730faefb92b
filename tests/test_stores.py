"""The store that a configuration names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from zurelay import stores
from zurelay.limits import Need
from zurelay.model import Store
from zurelay.store import Spent, StoreError


def test_what_is_settled_in_a_file_is_read_beside_its_writer(tmp_path: Path) -> None:
    named = Store(sqlite=str(tmp_path / "z.db"))

    async def use() -> int:
        store = await stores.open_store(named)
        granted = await store.reserve((), Need())
        store.settle(granted.reservation, Spent(key="a"))  # type: ignore[union-attr]  # no limit refuses it
        await store.flush()
        lines = await asyncio.to_thread(stores.spending, named, "2000-01-01", "2999-12-31")
        await store.close()
        return sum(line.counts.requests for line in lines)

    assert 1 == asyncio.run(use())


def test_a_file_that_is_none_of_ours_is_an_error_that_says_so(tmp_path: Path) -> None:
    file = tmp_path / "z.db"
    file.write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="no SQLite database"):
        stores.check(Store(sqlite=str(file)))
    with pytest.raises(StoreError, match="isn't there"):
        stores.spending(Store(sqlite=str(tmp_path / "none.db")), "2026-01-01", "2026-01-02")


def test_a_check_makes_the_file_and_leaves_a_redis_alone(tmp_path: Path) -> None:
    stores.check(Store(sqlite=str(tmp_path / "z.db")))
    assert (tmp_path / "z.db").exists()
    stores.check(Store(sqlite=None, redis="redis://127.0.0.1:1"))


def test_a_redis_that_does_not_answer_is_an_error_to_who_reads() -> None:
    with pytest.raises(StoreError, match="doesn't answer"):
        stores.spending(Store(sqlite=None, redis="redis://127.0.0.1:1"), "2026-01-01", "2026-01-02")


def test_the_place_of_a_store_is_its_file_or_its_server() -> None:
    assert stores.place(Store()) == ("zurelay.db", None)
    assert stores.place(Store(sqlite=None, redis="redis://r")) == (None, "redis://r")
