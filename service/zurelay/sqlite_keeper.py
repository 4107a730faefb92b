"""Keeps the SQLite file in order, in a thread: whatever may wait for the disk waits here, not in the event loop."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from zurelay import limits, sqlite_file

_WAL_BYTES = 16 << 20  # a write-ahead log that is longer is moved into the file
_SPENT_DAYS = 62  # a month and what comes before it
_OWNERS_KEPT = 60 * limits.MINUTE


class Keeper:
    """A connection of its own. Each write is one statement: the file is locked only while SQLite itself is at work."""

    def __init__(self, path: str, owner: str) -> None:
        self._owner = owner
        self._connection = sqlite_file.open_file(path)
        self._log = Path(f"{Path(path).resolve()}-wal")

    def keep(self, now: int, *, sync: bool, old: int, tidy: bool) -> None:
        """Do what is due. `old` is the number up to which the log may go."""
        self.beat(now)
        if sync:
            self._sync()
        if old:  # all but the newest row: the numbers go on from there
            self._connection.execute("DELETE FROM log WHERE seq <= ? AND seq < (SELECT max(seq) FROM log)", (old,))
        if tidy:
            self._forget(now)
        self._checkpoint(now)

    def beat(self, now: int) -> None:
        """Say that this process lives."""
        statement = "INSERT INTO owners VALUES (?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen"
        self._connection.execute(statement, (self._owner, now))

    def _sync(self) -> None:
        """Let the disk have what was committed: a power cut costs no more than what came after."""
        with self._log.open("rb") as log:
            os.fdatasync(log.fileno())

    def _checkpoint(self, now: int) -> None:
        """Move a long write-ahead log into the file."""
        if self._log.stat().st_size <= _WAL_BYTES:
            return
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # the bulk of it, while others write on
        # The rest, and a new log: it locks the file, so that it must not wait for those who read. Next time, then.
        self._connection.execute("PRAGMA busy_timeout = 0")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute(f"PRAGMA busy_timeout = {int(sqlite_file.PATIENCE * 1000)}")
        self.beat(now)  # the first write of a new log waits for the disk: here, rather than in the event loop

    def _forget(self, now: int) -> None:
        """Drop spend of periods that no limit looks at any more, and processes that are long gone."""
        day = limits.day_of(now - _SPENT_DAYS * 24 * 60 * limits.MINUTE)
        self._connection.execute("DELETE FROM spent WHERE period < ?", (day,))
        self._connection.execute("DELETE FROM owners WHERE seen < ?", (now - _OWNERS_KEPT,))

    def close(self) -> None:
        """Take leave; what this process's requests hold is given back."""
        try:  # where that can't be written, the others find out by themselves that this process is gone
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("DELETE FROM owners WHERE id = ?", (self._owner,))
        finally:
            self._connection.close()


def alive(connection: sqlite3.Connection, since: int) -> set[str]:
    """Name the processes heard of since a time."""
    return {str(row[0]) for row in connection.execute("SELECT id FROM owners WHERE seen > ?", (since,))}
