"""What is done beside the event loop: signs of life, the log's and the file's length, what is old."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from storing import NOON
from zurelay import sqlite_file, sqlite_keeper, sqlite_reader
from zurelay.limits import SECOND
from zurelay.sqlite_keeper import Keeper, alive


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "zurelay.db")


@pytest.fixture
def connection(path: str) -> Iterator[sqlite3.Connection]:
    found = sqlite_file.open_file(path)
    yield found
    found.close()


@pytest.fixture
def keeper(path: str) -> Iterator[Keeper]:
    found = Keeper(path, "own")
    yield found
    found.close()


def keep(keeper: Keeper, now: int = NOON, *, sync: bool = False, old: int = 0, tidy: bool = False) -> None:
    keeper.keep(now, sync=sync, old=old, tidy=tidy)


def test_a_process_lives_as_long_as_it_says_so(connection: sqlite3.Connection, path: str, keeper: Keeper) -> None:
    other = Keeper(path, "other")
    keeper.beat(NOON)
    other.beat(NOON - 5 * SECOND)
    assert {"own", "other"} == alive(connection, NOON - 6 * SECOND)
    assert {"own"} == alive(connection, NOON - 5 * SECOND)
    keep(keeper, NOON + 9 * SECOND)
    assert {"own"} == alive(connection, NOON)
    other.close()
    assert [("own",)] == connection.execute("SELECT id FROM owners").fetchall()


def test_the_newest_row_of_the_log_stays(connection: sqlite3.Connection, keeper: Keeper) -> None:
    for _ in range(3):
        connection.execute("INSERT INTO log (body) VALUES ('')")
    keep(keeper, old=2)
    assert [(3,)] == connection.execute("SELECT seq FROM log").fetchall()
    keep(keeper, old=3)
    assert 4 == connection.execute("INSERT INTO log (body) VALUES ('')").lastrowid


def test_what_no_limit_looks_at_goes(connection: sqlite3.Connection, keeper: Keeper) -> None:
    periods = ("2026-08", "2026-08-31", "2026-09", "2026-09-28", "2026-09-29", "2026-10", "2026-11", "2026-11-30")
    sqlite_file.add_spent(connection, {("key:a", period): 1 for period in periods})
    connection.execute("INSERT INTO owners VALUES ('gone', ?)", (NOON - 3601 * SECOND,))
    keep(keeper, tidy=True)
    kept = connection.execute("SELECT period FROM spent ORDER BY period").fetchall()
    assert ["2026-09-29", "2026-10", "2026-11", "2026-11-30"] == [period for (period,) in kept]
    assert [("own",)] == connection.execute("SELECT id FROM owners").fetchall()


def test_a_long_log_is_moved_and_begun_anew(
    connection: sqlite3.Connection, path: str, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_keeper, "_WAL_BYTES", 1 << 17)
    log = Path(f"{path}-wal")
    for _ in range(20):
        connection.execute("INSERT INTO log (body) VALUES (zeroblob(10000))")
    assert log.stat().st_size > 1 << 17
    keep(keeper, sync=True)
    assert log.stat().st_size < 1 << 14
    assert (20,) == connection.execute("SELECT count(*) FROM log").fetchone()


def test_a_reader_of_long_ago_does_not_stop_the_keeping(
    connection: sqlite3.Connection, path: str, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_keeper, "_WAL_BYTES", 0)
    reader = sqlite_reader.open_to_read(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM log").fetchone()
    connection.execute("INSERT INTO log (body) VALUES ('')")
    keep(keeper)
    reader.execute("COMMIT")
    reader.close()
    assert {"own"} == alive(connection, 0)


def test_syncing_reaches_the_log_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "data" / "real.db")
    keeper = Keeper(str(link), "own")
    keep(keeper, sync=True)
    keeper.close()
    assert (tmp_path / "data" / "real.db").exists()
