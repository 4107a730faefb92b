"""Opens the SQLite file only to read: beside those who write to it, or where nobody can."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

from zurelay import sqlite_file
from zurelay.store import StoreError

_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def open_to_read(path: str) -> sqlite3.Connection:
    """Open the file only to read; whoever writes to it goes on."""
    if not Path(path).exists():
        raise StoreError(f"{path} isn't there: nothing was spent yet, or store.sqlite names another file.")
    try:
        return _opened(path, "mode=ro")
    except StoreError as error:
        cause = error.__cause__
        if not isinstance(cause, sqlite3.Error) or sqlite_file.code(cause) not in _UNWRITABLE:
            raise
    return _opened_where_nobody_writes(path)


def _opened(path: str, mode: str) -> sqlite3.Connection:
    connection = sqlite_file.connect(path, mode)
    try:
        with sqlite_file.telling(path):
            sqlite_file.check(connection, path)
    except StoreError:
        connection.close()
        raise
    return connection


def _opened_where_nobody_writes(path: str) -> sqlite3.Connection:
    """Open a file of a folder that can't be written, in which SQLite misses the index of its log.

    Without a log the file is whole by itself (SQLite, "Write-Ahead Logging", 5). With one, both are read from a copy.
    """
    log = Path(f"{Path(path).resolve()}-wal")
    if not log.exists() or not log.stat().st_size:
        return _opened(path, "immutable=1")
    try:
        with tempfile.TemporaryDirectory() as folder:
            copied = str(Path(folder) / "zurelay.db")
            shutil.copyfile(path, copied)
            shutil.copyfile(log, f"{copied}-wal")
            return _remembered(copied, path)
    except OSError as error:
        raise StoreError(f"{path} can't be read where it is, nor copied to be read ({error}).") from error


def _remembered(copied: str, path: str) -> sqlite3.Connection:
    source = _opened(copied, "mode=rw")
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with sqlite_file.telling(path):
            source.backup(memory)
    finally:
        source.close()
    return memory
