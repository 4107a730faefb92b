"""Reading the file beside its writers, and where nothing can be written."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from zurelay import sqlite_file, sqlite_reader
from zurelay.store import Counts, Place, StoreError


@pytest.fixture
def path() -> Iterator[str]:
    """A file's path, in a folder that everyone may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield str(Path(folder) / "zurelay.db")


@pytest.fixture
def connection(path: str) -> Iterator[sqlite3.Connection]:
    made = sqlite_file.open_file(path)
    yield made
    made.close()


def test_a_reader_sees_what_was_committed_while_others_write(connection: sqlite3.Connection, path: str) -> None:
    reader = sqlite_reader.open_to_read(path)
    connection.execute("BEGIN IMMEDIATE")
    sqlite_file.add_usage(connection, {Place("2026-11-30", "a", "", "gpt"): Counts(requests=1)})
    assert [] == sqlite_file.read_usage(reader, "2026-11-30", "2026-11-30")
    connection.execute("COMMIT")
    assert 1 == len(sqlite_file.read_usage(reader, "2026-11-30", "2026-11-30"))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM usage")
    reader.close()


def spend(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    sqlite_file.add_usage(connection, {Place("2026-11-30", "a", "", "gpt"): Counts(requests=1)})
    connection.execute("COMMIT")


@contextlib.contextmanager
def unwritable(path: str, mode: int = 0o444) -> Iterator[None]:
    """Let the folder be one that can't be written; to the superuser that takes being somebody else."""
    folder, user = Path(path).parent, os.geteuid()
    for each in (*folder.iterdir(), folder):
        each.chmod(0o555 if each == folder else mode)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        folder.chmod(0o755)


def requests(path: str) -> int:
    reader = sqlite_reader.open_to_read(path)
    lines = sqlite_file.read_usage(reader, "2026-11-30", "2026-11-30")
    reader.close()
    return sum(line.counts.requests for line in lines)


def test_a_file_that_was_closed_is_read_where_nothing_can_be_written(path: str) -> None:
    connection = sqlite_file.open_file(path)
    spend(connection)
    connection.close()
    assert not Path(f"{path}-wal").exists()
    with unwritable(path):
        assert 1 == requests(path)


def test_a_file_whose_writer_was_killed_is_read_with_its_log_where_nothing_can_be_written(
    path: str, connection: sqlite3.Connection
) -> None:
    spend(connection)
    with unwritable(path):
        assert 1 == requests(path)


def test_a_copy_of_a_file_and_its_log_is_read_whole(path: str, connection: sqlite3.Connection) -> None:
    spend(connection)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copy = str(Path(folder) / "copy.db")
        shutil.copyfile(path, copy)
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        with unwritable(copy):
            assert 1 == requests(copy)


def test_a_file_that_may_not_be_read_says_so(path: str, connection: sqlite3.Connection) -> None:
    spend(connection)
    with unwritable(path, 0o000), pytest.raises(StoreError, match="nor copied to be read"):
        sqlite_reader.open_to_read(path)
