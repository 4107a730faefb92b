"""The SQLite store's own: locks, full disks, processes that die or stop, and what it leaves on the disk."""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

import storing
from storing import DAY, Stores, granted, refused, scope, spent
from zurelay import money, sqlite_file, sqlite_keeper, sqlite_reader, store_sqlite
from zurelay.store import StoreError, StoreUnavailableError
from zurelay.store_sqlite import SqliteStore

WORKER = Path(__file__).with_name("sqlite_load.py")


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    found = storing.sqlite(tmp_path)
    yield found
    await found.close()


@pytest.fixture
async def store(stores: Stores) -> SqliteStore:
    return cast("SqliteStore", await stores.open())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # it comes about in a file, or another process
            await asyncio.sleep(0.01)


def usage(stores: Stores) -> Decimal:
    """What the file holds for the key `a`, read as `zurelay usage` does."""
    connection = sqlite_reader.open_to_read(stores.where)
    try:
        lines = sqlite_file.read_usage(connection, DAY, DAY)
    finally:
        connection.close()
    return money.usd(sum(line.counts.usd for line in lines))


async def test_what_is_settled_is_written_soon_without_being_asked(stores: Stores, store: SqliteStore) -> None:
    store.settle(await granted(store, scope()), spent("0.25"))
    await until(lambda: usage(stores) == Decimal("0.25"))


async def test_the_event_loop_goes_on_while_another_process_holds_the_lock(stores: Stores, store: SqliteStore) -> None:
    other = sqlite_file.open_file(stores.where)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(granted(store, scope(requests_per_minute=1)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    assert (await waiting).id


async def test_a_lock_that_is_never_given_back_is_an_unavailable_store(
    stores: Stores, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_sqlite, "_PAUSES", (0.0, 0.0))
    other = sqlite_file.open_file(stores.where)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked by another process"):
        await granted(store, scope(requests_per_minute=1))
    other.close()


@pytest.mark.parametrize("gone", ["", "*"], ids=["the file alone", "with its log"])
async def test_a_file_that_is_taken_away_in_use_is_begun_anew_by_all(
    stores: Stores, store: SqliteStore, caplog: pytest.LogCaptureFixture, gone: str
) -> None:
    other = cast("SqliteStore", await stores.open())
    limited = scope(requests_per_minute=3)
    await granted(store, limited)
    for each in Path(stores.where).parent.glob(f"zurelay.db{gone}"):
        each.unlink()
    await until(lambda: 2 == caplog.text.count("was taken away in use"))
    for one in (store, other, other):
        one.settle(await granted(one, limited), spent("0.5"))
    await storing.refused(store, limited)
    await other.close()
    await store.flush()
    assert Decimal("1.5") == usage(stores)


async def test_a_file_that_cannot_be_begun_anew_is_tried_again(
    stores: Stores, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(stores.where).parent
    folder.rename(folder.with_name("elsewhere"))
    await until(lambda: "its folder must be there" in caplog.text)
    store.settle(await granted(store, scope()), spent("0.5"))
    folder.mkdir()
    await until(lambda: "was taken away in use" in caplog.text)
    store.settle(await granted(store, scope()), spent("0.5"))
    await store.flush()
    assert Decimal("0.5") <= usage(stores)


def fill_up(store: SqliteStore) -> None:
    """Let the file grow no further, as on a full disk."""
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_is_an_unavailable_store_and_loses_nothing(
    stores: Stores, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    limited = scope(requests_per_minute=10**6)
    fill_up(store)
    settled = 0
    with pytest.raises(StoreUnavailableError, match="full"):  # noqa: PT012  # it fills up some time
        while True:
            reservation = await granted(store, limited)
            store.settle(reservation, spent("0.01"))
            settled += 1
    fill_up(store)
    for number in range(50):
        store.settle(reservation, spent("0.01", key=f"key-{number}" * 50))
        settled += 1
    with pytest.raises(StoreUnavailableError, match="full"):
        await store.flush()
    await until(lambda: "is kept and tried again" in caplog.text)
    store._connection.execute("PRAGMA max_page_count = 1000000")
    before = (await store.reserve((limited,), storing.need())).requests
    await store.flush()
    assert Decimal("0.01") * settled == usage(stores)
    assert before is not None
    assert settled - 50 + 1 == before.limit - before.remaining  # refused ones count nowhere


async def test_a_full_disk_is_told_in_a_line_by_the_keeper_too(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store._keeper, "keep", fail)
    await until(lambda: "database or disk is full" in caplog.text)
    assert [None] == [record.exc_info for record in caplog.records]


async def test_trouble_is_told_once_while_it_lasts(
    stores: Stores, store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR)
    tries = 0

    def fail() -> None:
        nonlocal tries
        tries += 1
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "_write", fail)
    store.settle(await granted(store), spent("1"))
    await until(lambda: tries >= 3)
    monkeypatch.undo()
    await until(lambda: usage(stores) == 1)
    assert 1 == caplog.text.count("is kept and tried again")


async def test_what_a_dead_process_held_is_given_back(stores: Stores, store: SqliteStore) -> None:
    dead = SqliteStore(stores.where, stores.clock)  # opened, but never started: it gives no sign of life
    limited = scope(usd_per_day="1")
    await granted(dead, limited, usd="1")
    await refused(store, limited, usd="1")
    stores.clock.move(5)
    await store._keep()
    await refused(store, limited, usd="1")
    stores.clock.move(2)
    await store._keep()
    await granted(store, limited, usd="1")
    dead._let_go()


async def test_what_a_closed_process_held_is_given_back_at_once(stores: Stores, store: SqliteStore) -> None:
    other = await SqliteStore.open(stores.where, stores.clock)
    limited = scope(usd_per_day="1")
    await granted(other, limited, usd="1")
    await other.close()
    await store._keep()
    await granted(store, limited, usd="1")


async def test_a_process_that_was_stopped_for_long_learns_anew(stores: Stores, store: SqliteStore) -> None:
    other = cast("SqliteStore", await stores.open())
    limited = scope(requests_per_minute=3, usd_per_day="1")
    store.settle(await granted(store, limited, usd="0.1"), spent("0.1"))
    other.settle(await granted(other, limited, usd="0.5"), spent("0.5"))
    await other.flush()
    other._connection.execute("DELETE FROM log WHERE seq < (SELECT max(seq) FROM log)")
    store._heard_at -= 60
    assert Decimal("0.6") == (await refused(store, limited, usd="0.5")).used
    await store.flush()
    assert Decimal("0.6") == (await refused(other, limited, usd="0.5")).used


async def test_a_fresh_start_counts_what_was_settled_but_not_yet_heard(store: SqliteStore) -> None:
    limited = scope(tokens_per_minute=100)
    store.settle(await granted(store, limited, tokens=100), spent(prompt=30))
    await granted(store, limited)  # the ledger knows of it from here on
    store._heard_at -= 60
    assert 30 == (await refused(store, limited, tokens=71)).used
    await granted(store, limited, tokens=70)


async def test_the_log_is_trimmed_but_its_numbers_go_on(stores: Stores, store: SqliteStore) -> None:
    other = cast("SqliteStore", await stores.open())
    limited = scope(requests_per_minute=100)
    for _ in range(50):
        await granted(store, limited)
    await store._keep()
    await other._keep()
    store._marks = type(store._marks)((at - 100, seq) for at, seq in store._marks)
    await store._keep()
    assert [(50,)] == store._connection.execute("SELECT seq FROM log").fetchall()
    await granted(store, limited)
    assert 51 == (await refused(other, scope(requests_per_minute=51))).used


def log_size(stores: Stores) -> int:
    return Path(f"{stores.where}-wal").stat().st_size


async def test_a_long_write_ahead_log_goes_into_the_file(
    stores: Stores, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.settle(await granted(store, scope()), spent("1"))
    await store.flush()
    before = log_size(stores)
    await store._keep()
    assert log_size(stores) >= before
    monkeypatch.setattr(sqlite_keeper, "_WAL_BYTES", 0)
    await store._keep()
    assert log_size(stores) < before
    assert 1 == usage(stores)


async def test_a_file_that_can_not_be_used_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a database, " * 100)
    with pytest.raises(StoreError, match="no SQLite database"):
        await SqliteStore.open(str(path))


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_closing_leaves_one_whole_file(stores: Stores, store: SqliteStore, tmp_path: Path) -> None:
    store.settle(await granted(store), spent("1"))
    await stores.close()
    assert ["zurelay.db"] == names(tmp_path)
    assert 1 == usage(stores)


def killed_under_load(where: str, names: list[str], chance: random.Random) -> dict[str, int]:
    """Let processes settle for over a second, kill them; give what each had settled a second before it died."""
    words = [sys.executable, str(WORKER), where]
    processes = {name: subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in names}
    told: dict[str, list[tuple[float, int]]] = {name: [] for name in names}

    def listen(name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        lasting = chance.uniform(1.2, 1.5)
        for line in process.stdout:
            at, settled = line.split()
            told[name].append((float(at), int(settled)))
            if told[name][-1][0] - told[name][0][0] > lasting:
                process.kill()

    threads = [threading.Thread(target=listen, args=each) for each in processes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes.values():
        assert process.stdout is not None
        process.stdout.close()
        assert -9 == process.wait()
    return {name: max(count for at, count in lines if at <= lines[-1][0] - 1) for name, lines in told.items()}


async def test_killed_twenty_times_under_load_it_loses_a_second_at_most(stores: Stores) -> None:
    chance = random.Random(7)
    settled: dict[str, int] = {}
    for turn in range(5):
        settled |= killed_under_load(stores.where, [f"{turn}-{number}" for number in range(4)], chance)
    store = cast("SqliteStore", await stores.open())
    assert [("ok",)] == store._connection.execute("PRAGMA integrity_check").fetchall()
    days = await store.spending("2000-01-01", "9999-12-31")
    written = {line.place.key: line.counts for line in days}
    assert set(settled) <= set(written)
    for name, least in settled.items():
        counts = written[name]
        assert least <= counts.requests
        assert (counts.requests * 100, counts.requests * 10) == (counts.prompt, counts.completion)  # none is torn
        assert counts.requests * money.units(Decimal("0.01")) == counts.usd
