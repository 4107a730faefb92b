"""The store in an SQLite file, which the worker processes of one machine share.

A reservation is one short transaction: it hears what the others did since, looks in the ledger, and tells them of
itself. The write lock puts the processes in order, so that limits are exact. Nothing in it waits for the disk; where
another process holds the lock, the event loop goes on and it is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

import msgspec

from zurelay import limits, money, news, sqlite_file, sqlite_keeper, sqlite_opening
from zurelay.chores import Chores
from zurelay.clock import WallClock
from zurelay.ledger import Ledger
from zurelay.limits import Granted, Need, Refused, Reservation, Scope
from zurelay.news import Closed, News, Taken
from zurelay.store import (
    BEAT_EVERY,
    DEAD_AFTER,
    FLUSH_EVERY,
    Batch,
    Clock,
    Line,
    Spent,
    StoreError,
    StoreUnavailableError,
    purses,
)

T = TypeVar("T")

_log = logging.getLogger("zurelay")

_KEPT = 90.0  # seconds that the log is kept, more than the minute that limits look back
_PAUSES = (0.0, 0.0, *itertools.repeat(0.001, 2000))  # between two tries for the lock, in seconds


class SqliteStore:
    """A Store in a file. Make it with `open`, in the event loop that uses it."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._owner = secrets.token_hex(6)
        self._numbers = itertools.count(1)
        self._connection, self._keeper = sqlite_opening.open_both(path, self._owner, clock.now())
        self._file = sqlite_file.identity(path)
        self._ledger = Ledger()
        self._batch = Batch()
        self._settled: list[Closed] = []  # what the ledger hasn't taken in yet
        self._released: list[str] = []  # the same
        self._unsettled: set[str] = set()
        self._seq = 0
        self._heard_at = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque()  # when the log was as far as what number
        self._day = ""
        self._unsynced = False
        self._chores = Chores(path)
        with sqlite_file.telling(path):
            self._hear()

    @classmethod
    async def open(cls, path: str, clock: Clock | None = None) -> Self:
        """Open the file, or make it; a StoreError says why it can't be used."""
        store = await asyncio.to_thread(cls, path, clock or WallClock())
        store.start()
        return store

    def start(self) -> None:
        """Write and keep the file from now on, in this event loop."""
        self._chores.start(FLUSH_EVERY, self.flush)
        self._chores.start(BEAT_EVERY, self._keep_or_tell)

    async def reserve(self, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
        """Let a request in, or say which limit it doesn't fit in."""
        if not any(scope.limited for scope in scopes):
            day = limits.day_of(self._clock.now())
            return Granted(reservation=Reservation(day=day, scopes=tuple(scope.name for scope in scopes)))
        return await self._patiently(lambda: self._reserve(scopes, need))

    def _reserve(self, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
        with self._transaction():
            now = self._advance()
            day = limits.day_of(now)
            for scope, period in self._ledger.unknown(scopes, day):
                spent = sqlite_file.read_spent(self._connection, scope, period)
                self._ledger.learn(scope, period, spent + self._batch.spent.get((scope, period), 0))
            found = self._ledger.consider(scopes, need, day)
            if found.refused:
                requests, tokens = self._ledger.standings(scopes)
                refused = limits.binding(found.refused)
                return msgspec.structs.replace(refused, requests=requests, tokens=tokens)
            amount = money.units(need.usd) if any(scope.limits_spend for scope in scopes) else 0
            name = news.reservation_id(self._owner, next(self._numbers)) if found.fitting else ""
            taken = Taken(name, now, day, need.tokens, amount, found.fitting)
            seq = self._tell(News(taken=(taken,))) if name else self._seq
        self._seq = seq
        if name:
            self._ledger.take(taken)
            self._unsettled.add(name)
        requests, tokens = self._ledger.standings(scopes)
        unfit = {refused.scope.name for refused in found.shadow}
        names = tuple(scope.name for scope in scopes if scope.name not in unfit)
        reservation = Reservation(day=day, scopes=names, id=name, tokens=need.tokens)
        return Granted(reservation=reservation, requests=requests, tokens=tokens, shadow=found.shadow)

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Take note of what a request came to; it is written within a fifth of a second."""
        closed, amount = self._batch.note(reservation, spent, self._clock.now())
        for scope, period in purses(reservation) if amount else ():
            self._ledger.spend(scope, period, amount)
        if closed is not None:
            self._settled.append(closed)
            self._unsettled.discard(closed.id)

    def release(self, reservation: Reservation) -> None:
        """Give back the money held, if this process has settled nothing; another one's word of it may be on its way."""
        if reservation.id in self._unsettled:
            self._unsettled.discard(reservation.id)
            self._batch.released.append(reservation)
            self._released.append(reservation.id)

    async def spending(self, first: str, last: str) -> list[Line]:
        """Give the spend of some days, as far as all processes have written it."""
        await self.flush()
        return sqlite_file.read_usage(self._connection, first, last)

    async def flush(self) -> None:
        """Write what was settled."""
        if self._batch:
            await self._patiently(self._write)

    def _write(self) -> None:
        batch = self._batch
        with self._transaction():
            self._advance()
            sqlite_file.add_spent(self._connection, batch.spent)
            sqlite_file.add_usage(self._connection, batch.lines)
            spent = tuple((*place, amount) for place, amount in batch.spent.items())
            released = tuple(each.id for each in batch.released)
            seq = self._tell(News(closed=tuple(batch.closed), spent=spent, released=released))
        self._seq = seq
        self._batch = Batch()

    def _advance(self) -> int:
        """Bring the ledger up to now, within a transaction; give the time."""
        self._hear()
        now = self._clock.now()
        self._ledger.advance(now)
        for closed in self._settled:
            self._ledger.close(closed)
        for reservation in self._released:
            self._ledger.give_back(reservation)
        self._settled.clear()
        self._released.clear()
        return now

    def _hear(self) -> None:
        """Take in what the other processes did since."""
        now = time.monotonic()
        if now - self._heard_at > _KEPT / 2:  # this process was stopped: some of the log may be gone
            self._ledger, self._seq = Ledger(), 0
            self._settled = list(self._batch.closed)
            self._released = [each.id for each in self._batch.released]
        self._heard_at = now
        for seq, line in self._connection.execute("SELECT seq, body FROM log WHERE seq > ? ORDER BY seq", (self._seq,)):
            self._ledger.hear(news.decode(line))
            self._seq = seq

    def _tell(self, told: News) -> int:
        self._unsynced = True
        return self._connection.execute("INSERT INTO log (body) VALUES (?)", (news.encode(told),)).lastrowid or 0

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    async def _patiently(self, work: Callable[[], T]) -> T:
        """Do a transaction; again while another process holds the lock."""
        for pause in _PAUSES:
            try:
                return work()
            except sqlite3.Error as error:
                if sqlite_file.code(error) != sqlite3.SQLITE_BUSY:
                    raise StoreUnavailableError(f"{self._path}: {error}") from error
            await asyncio.sleep(pause)
        raise StoreUnavailableError(f"{self._path} has been locked by another process for seconds")

    async def _keep_or_tell(self) -> None:
        try:
            await self._keep()
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailableError(f"{self._path}: {error}") from error

    async def _keep(self) -> None:
        """See to what needs no haste; what may wait for the disk does so in a thread."""
        if sqlite_file.identity(self._path) != self._file:
            await self._begin_anew()
        self._hear()
        now, steady = self._clock.now(), time.monotonic()
        living = sqlite_keeper.alive(self._connection, now - int(DEAD_AFTER * limits.SECOND))
        self._ledger.sweep(living | {self._owner})
        day = limits.day_of(now)
        self._ledger.tidy(day)
        self._marks.append((steady, self._seq))
        old = 0
        while self._marks[0][0] < steady - _KEPT:
            old = self._marks.popleft()[1]
        unsynced, self._unsynced = self._unsynced, False
        await asyncio.to_thread(self._keeper.keep, now, sync=unsynced, old=old, tidy=day != self._day)
        self._day = day

    async def _begin_anew(self) -> None:
        """The file was deleted or replaced in use: spend must not go where nobody finds it."""
        try:
            connection, keeper = await asyncio.to_thread(
                sqlite_opening.open_both, self._path, self._owner, self._clock.now()
            )
        except StoreError as error:
            raise StoreUnavailableError(str(error)) from error
        _log.error("%s was taken away in use: limits and spend begin anew in a new one", self._path)
        if self._file is not None:
            sqlite_opening.never_last(self._file)
        self._let_go()
        self._connection, self._keeper, self._file = connection, keeper, sqlite_file.identity(self._path)
        self._ledger, self._seq = Ledger(), 0
        self._marks.clear()

    async def close(self) -> None:
        """Write what was settled and let go of the file."""
        await self._chores.stop()
        try:
            await self.flush()
        finally:
            await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self._connection.close()
        self._keeper.close()
