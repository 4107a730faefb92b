"""The SQLite file: opened by many at once, refused where it isn't ours, its sums exact."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import sqlite_file, sqlite_reader
from zurelay.store import COUNTS, Counts, Line, Place, StoreError


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "odd name?#%.db")


@pytest.fixture
def connection(path: str) -> Iterator[sqlite3.Connection]:
    found = sqlite_file.open_file(path)
    yield found
    found.close()


def test_many_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    def made(number: int) -> int:
        connection = sqlite_file.open_file(str(tmp_path / f"{number % 4}.db"))
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            return int(version)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert [sqlite_file.VERSION] * 32 == list(pool.map(made, range(32)))


def test_commits_do_not_wait_for_the_disk(connection: sqlite3.Connection) -> None:
    values = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint")
    ]
    assert ["wal", 1, 0] == values


def test_a_path_is_taken_as_it_is_written(connection: sqlite3.Connection, path: str) -> None:
    assert Path(path).exists()
    assert path == connection.execute("PRAGMA database_list").fetchone()[2]


def test_a_database_of_a_newer_version_is_left_alone(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("PRAGMA user_version = 7")
    for opening in (sqlite_file.open_file, sqlite_reader.open_to_read):
        with pytest.raises(StoreError, match=r"written by a newer zurelay \(its version is 7, this one knows 1\)"):
            opening(path)
    assert (7,) == connection.execute("PRAGMA user_version").fetchone()


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "theirs.db")
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE log (theirs)")
    for opening in (sqlite_file.open_file, sqlite_reader.open_to_read):
        with pytest.raises(StoreError, match="another program's database"):
            opening(path)
    assert [("log",)] == theirs.execute("SELECT name FROM sqlite_master").fetchall()
    theirs.close()


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("notes " * 1000)
    for opening in (sqlite_file.open_file, sqlite_reader.open_to_read):
        with pytest.raises(StoreError, match="no SQLite database"):
            opening(str(path))
    assert "notes " * 1000 == path.read_text()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"no/such/zurelay\.db can't be used as the store .*: its folder must be there"
    ):
        sqlite_file.open_file(str(tmp_path / "no/such/zurelay.db"))


def test_a_file_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was spent yet"):
        sqlite_reader.open_to_read(str(tmp_path / "zurelay.db"))
    assert [] == list(tmp_path.iterdir())


def test_a_damaged_file_is_told_as_such(connection: sqlite3.Connection, path: str) -> None:
    connection.close()
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    with pytest.raises(StoreError, match="damaged"):
        sqlite_file.open_file(path)


amounts = st.integers(min_value=0, max_value=10**30)


@given(st.lists(amounts, max_size=20))
def test_spend_adds_up_exactly(amounts: list[int]) -> None:
    connection = _memory()
    for amount in amounts:
        sqlite_file.add_spent(connection, {("key:a", "2026-11"): amount})
    assert sum(amounts) == sqlite_file.read_spent(connection, "key:a", "2026-11")
    assert 0 == sqlite_file.read_spent(connection, "key:a", "2026-12")
    connection.close()


def _memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    sqlite_file._make(connection, ":memory:")
    return connection


def test_every_figure_is_added_and_read_back(connection: sqlite3.Connection) -> None:
    place = Place("2026-11-30", "a", "pay/api", "gpt")
    first = Counts(**{name: number for number, name in enumerate(COUNTS, 1)})
    second = Counts(**{name: 10**13 * number for number, name in enumerate(COUNTS, 1)})
    for counts in (first, second):
        sqlite_file.add_usage(connection, {place: counts})
    expected = Counts(**{name: number + 10**13 * number for number, name in enumerate(COUNTS, 1)})
    assert [Line(place, expected)] == sqlite_file.read_usage(connection, "2026-11-30", "2026-11-30")


def test_lines_come_in_order_of_days_within_the_days_asked_for(connection: sqlite3.Connection) -> None:
    for day in ("2026-11-30", "2026-11-28", "2026-12-01", "2026-11-29"):
        sqlite_file.add_usage(connection, {Place(day, "a", "", "gpt"): Counts(requests=1)})
    found = sqlite_file.read_usage(connection, "2026-11-29", "2026-11-30")
    assert ["2026-11-29", "2026-11-30"] == [line.place.day for line in found]


def test_codes_are_the_primary_ones() -> None:
    error = sqlite3.OperationalError("busy, with a snapshot")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY_SNAPSHOT
    assert sqlite3.SQLITE_BUSY == sqlite_file.code(error)
    assert 0 == sqlite_file.code(sqlite3.ProgrammingError("closed"))
