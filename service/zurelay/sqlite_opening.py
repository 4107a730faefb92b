"""Opens the SQLite file to write, and lets go of one that somebody took away while it was in use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

from zurelay import sqlite_file
from zurelay.sqlite_keeper import Keeper
from zurelay.store import StoreError

_SHARED_FIRST, _SHARED_SIZE = 0x40000000 + 2, 510  # the bytes that SQLite locks to share a file (its os.h)


def open_both(path: str, owner: str, now: int) -> tuple[sqlite3.Connection, Keeper]:
    """Open the file for an event loop, where nothing waits, and for its keeper; a StoreError says why it can't be used.

    Where the file was taken away, what it left beside it goes first: to a new file it would be another's log.
    """
    with _alone_in(Path(path).resolve().parent):
        if not Path(path).exists():
            for left in ("-wal", "-shm"):
                Path(f"{Path(path).resolve()}{left}").unlink(missing_ok=True)
        connection = sqlite_file.open_file(path)
    try:
        with sqlite_file.telling(path):
            connection.execute("PRAGMA busy_timeout = 0")
            keeper = Keeper(path, owner)
            keeper.beat(now)
    except StoreError:
        connection.close()
        raise
    return connection, keeper


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep the other processes from opening files in a folder meanwhile."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # opening the file will tell
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def never_last(file: tuple[int, int]) -> None:
    """Keep SQLite, when it closes a file that is gone, from deleting the log of the one that has its name now.

    It does so where it can lock the file for itself alone, as its last user: so the file stays shared.
    """
    opened = map(str, Path("/proc/self/fd").iterdir())
    path = next((path for path in opened if sqlite_file.identity(path) == file), None)
    if path is not None:
        handle = os.open(path, os.O_RDONLY)  # never closed
        lock = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock + bytes(4))
