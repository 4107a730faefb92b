"""The SQLite file: its tables, how it is opened, read and written.

| table | holds |
| --- | --- |
| log | what the processes that share the file tell each other: requests let in and over, in order, for some minutes |
| spent | USD by scope (a key, a policy and a workload) and period (a day, a month): what limits of spend need |
| usage | sums by day, key, workload and model: what `zurelay usage` shows |
| owners | the processes, and when each was last heard of |

USD are exact: whole millionths, and a rest in 1e-18 that is always under a millionth (`money.parts`).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from zurelay import money
from zurelay.store import COUNTS, MONEY, Counts, Line, Place, StoreError

VERSION = 1
_APPLICATION = 0x7A75726C  # "zurl"
PATIENCE = 10.0  # seconds to wait for other processes, outside the event loop

_COLUMNS = tuple(
    column for name in COUNTS for column in ((f"{name}_micro", f"{name}_rest") if name in MONEY else (name,))
)


def _table(name: str, keys: tuple[str, ...], sums: tuple[str, ...]) -> str:
    columns = [*(f"{key} TEXT" for key in keys), *(f"{column} INTEGER NOT NULL" for column in sums)]
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({', '.join(keys)})) WITHOUT ROWID"


_SCHEMA = (
    "CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE owners (id TEXT PRIMARY KEY, seen INTEGER NOT NULL) WITHOUT ROWID",
    _table("spent", ("scope", "period"), ("usd_micro", "usd_rest")),
    _table("usage", ("day", "key", "workload", "model"), _COLUMNS),
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def _added(column: str) -> str:
    """The SET clause that adds a column's new figure; a rest that reaches a millionth is carried over."""
    total = f"{column} + excluded.{column}"
    stem, _, kind = column.rpartition("_")
    if kind == "rest":
        return f"{column} = ({total}) % {money.REST}"
    if kind == "micro":
        return f"{column} = {total} + ({stem}_rest + excluded.{stem}_rest) / {money.REST}"
    return f"{column} = {total}"


def _upsert(table: str, names: tuple[str, ...], sums: tuple[str, ...]) -> str:
    columns = (*names, *sums)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "  # noqa: S608  # constants
        f"ON CONFLICT DO UPDATE SET {', '.join(map(_added, sums))}"
    )


_ADD_SPENT = _upsert("spent", ("scope", "period"), ("usd_micro", "usd_rest"))
_ADD_USAGE = _upsert("usage", ("day", "key", "workload", "model"), _COLUMNS)
_READ_USAGE = (
    f"SELECT day, key, workload, model, {', '.join(_COLUMNS)} FROM usage "  # noqa: S608  # constants
    "WHERE day BETWEEN ? AND ? ORDER BY day, key, workload, model"
)


def open_file(path: str) -> sqlite3.Connection:
    """Open the file to write, and make it if it isn't there."""
    connection = connect(path, "mode=rwc")
    try:
        with telling(path):
            _make(connection, path)
    except StoreError:
        connection.close()
        raise
    return connection


def connect(path: str, mode: str) -> sqlite3.Connection:
    """Open the file in a mode of SQLite's URIs."""
    with telling(path):
        return sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?{mode}",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time uses it, not always the same
        )


def _make(connection: sqlite3.Connection, path: str) -> None:
    # First, as it can't be changed in a transaction. WAL: readers and the writer don't wait for each other.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # no fsync at a commit; the keeper does it each second
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # it would make a commit wait for the disk: the keeper does it
    connection.execute("BEGIN IMMEDIATE")
    try:
        if check(connection, path) == 0:
            for statement in _SCHEMA:
                connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check(connection: sqlite3.Connection, path: str) -> int:
    """Give the file's version, 0 for an empty one; an error for a file that isn't ours."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if application != _APPLICATION and not empty:
        raise StoreError(f"{path} is another program's database: let store.sqlite name a file of its own.")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer zurelay (its version is {version}, this one knows {VERSION}): "
            "run that one, or let store.sqlite name another file."
        )
    return version


def code(error: sqlite3.Error) -> int:
    """Give SQLite's primary result code, such as SQLITE_BUSY."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is no SQLite database; let store.sqlite name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy, or move it away to begin anew",
    sqlite3.SQLITE_CANTOPEN: "its folder must be there, and be writable",
    sqlite3.SQLITE_READONLY: "it and its folder must be writable",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk is full or fails; see what the system says of it",
    sqlite3.SQLITE_BUSY: "another program keeps it locked",
}


@contextlib.contextmanager
def telling(path: str) -> Iterator[None]:
    """Make SQLite's errors those of a store that can't be used."""
    try:
        yield
    except sqlite3.Error as error:
        advice = _ADVICE.get(code(error), "see what the system says of the disk")
        raise StoreError(f"{path} can't be used as the store ({error}): {advice}.") from error


def identity(path: str) -> tuple[int, int] | None:
    """Tell one file from another of the same name; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def add_spent(connection: sqlite3.Connection, spent: Mapping[tuple[str, str], int]) -> None:
    """Add to what was spent by scope and period."""
    connection.executemany(_ADD_SPENT, [(*place, *money.parts(amount)) for place, amount in spent.items()])


def read_spent(connection: sqlite3.Connection, scope: str, period: str) -> int:
    """Give what was spent in one scope and period."""
    found = connection.execute(
        "SELECT usd_micro, usd_rest FROM spent WHERE scope = ? AND period = ?", (scope, period)
    ).fetchone()
    return 0 if found is None else money.whole(*found)


def add_usage(connection: sqlite3.Connection, lines: Mapping[Place, Counts]) -> None:
    """Add to the sums by day, key, workload and model."""
    connection.executemany(_ADD_USAGE, [_row(place, counts) for place, counts in lines.items()])


def _row(place: Place, counts: Counts) -> list[str | int]:
    row: list[str | int] = [place.day, place.key, place.workload, place.model]
    for name in COUNTS:
        value = getattr(counts, name)
        row += money.parts(value) if name in MONEY else (value,)
    return row


def read_usage(connection: sqlite3.Connection, first: str, last: str) -> list[Line]:
    """Give the sums of the days from `first` to `last`, in order."""
    return [_line(row) for row in connection.execute(_READ_USAGE, (first, last))]


def _line(row: tuple[str | int, ...]) -> Line:
    place, figures = row[:4], iter(row[4:])
    counts = {
        name: money.whole(int(next(figures)), int(next(figures))) if name in MONEY else int(next(figures))
        for name in COUNTS
    }
    return Line(Place(*map(str, place)), Counts(**counts))
