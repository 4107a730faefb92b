"""Opening the file twice, whatever the disk says; and letting go of one that was taken away."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from storing import NOON
from zurelay import sqlite_file, sqlite_opening
from zurelay.store import StoreError


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "zurelay.db")


@contextlib.contextmanager
def full() -> Iterator[None]:
    """Let no file grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_at_the_start_is_told_plainly(path: str) -> None:
    with full(), pytest.raises(StoreError, match="the disk is full"):
        sqlite_opening.open_both(path, "own", NOON)
    connection, keeper = sqlite_opening.open_both(path, "first", NOON)
    with full(), pytest.raises(StoreError, match="the disk is full"):
        sqlite_opening.open_both(path, "second", NOON)
    keeper.close()
    connection.close()


def test_leaving_while_the_disk_is_full_is_no_trouble(path: str) -> None:
    connection, keeper = sqlite_opening.open_both(path, "own", NOON)
    with full():
        keeper.close()
        connection.close()


def test_a_folder_that_is_not_there_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="its folder must be there"):
        sqlite_opening.open_both(str(tmp_path / "none" / "z.db"), "own", NOON)


def test_what_a_file_left_that_was_taken_away_is_not_another_ones(path: str) -> None:
    connection, keeper = sqlite_opening.open_both(path, "own", NOON)
    Path(path).unlink()
    fresh, new_keeper = sqlite_opening.open_both(path, "new", NOON)
    assert [("new",)] == fresh.execute("SELECT id FROM owners").fetchall()
    for each in (new_keeper, fresh, keeper, connection):
        each.close()


def test_letting_go_of_a_file_that_is_gone_leaves_the_new_ones_log_alone(path: str) -> None:
    connection, keeper = sqlite_opening.open_both(path, "own", NOON)
    file = sqlite_file.identity(path)
    assert file is not None
    Path(path).unlink()
    fresh, new_keeper = sqlite_opening.open_both(path, "new", NOON)
    sqlite_opening.never_last(file)
    keeper.close()
    connection.close()
    assert Path(f"{path}-wal").exists()
    other = sqlite3.connect(path)
    assert [("new",)] == other.execute("SELECT id FROM owners").fetchall()
    for each in (other, new_keeper, fresh):
        each.close()
