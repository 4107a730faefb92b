"""The store in a Redis, which several replicas share. Limits are checked by a script there, one at a time: exact.

What waits to be checked goes together in one call, and what was settled in another. While the server is away nothing
waits for it: reservations fail at once, and what is settled is kept until it is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Awaitable, Sequence
from importlib import resources
from typing import Any, Self, TypeVar, cast

import msgspec
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from zurelay import limits, news, redis_messages
from zurelay.chores import Chores
from zurelay.clock import WallClock
from zurelay.limits import Granted, Need, Refused, Reservation, Scope
from zurelay.redis_messages import Answer
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
)

PREFIX = "{zurelay}:"  # in braces: all keys on one node of a cluster, as one script needs them together
_PATIENCE = 1.0  # seconds for an answer, or a connection
_TOGETHER = 100  # reservations in one call: some milliseconds of the server's time
_MOST_GIVEN_UP = 10_000  # of a server that comes and goes; what older ones hold goes when the day or this process ends


def _script(name: str) -> str:
    return resources.files("zurelay").joinpath("data", name).read_text()


T = TypeVar("T")


class _Waiting(msgspec.Struct, frozen=True):
    request: bytes
    reservation: Reservation
    answer: asyncio.Future[Answer]


class RedisStore:
    """A Store in a Redis. Make it with `open`, in the event loop that uses it."""

    def __init__(self, client: redis.asyncio.Redis, clock: Clock | None) -> None:
        self._client = client
        self._clock = clock or WallClock()
        self._given_time = clock is not None  # else the server's own counts: the replicas' may differ
        self._reserve_script = client.register_script(_script("reserve.lua"))
        self._settle_script = client.register_script(_script("settle.lua"))
        self._owner = secrets.token_hex(6)
        self._numbers = itertools.count(1)
        self._waiting: list[_Waiting] = []
        self._sender: asyncio.Task[None] | None = None
        self._batch = Batch()
        self._unsettled: set[str] = set()
        self._outgoing: tuple[str, Batch] | None = None  # sent, but perhaps not written
        self._flushing = asyncio.Lock()
        self._away: str | None = None
        self._chores = Chores("in Redis")

    @classmethod
    async def open(cls, url: str, clock: Clock | None = None) -> Self:
        """Use the server of a URL; one that is away is waited for while the gateway runs."""
        store = cls(_client(url), clock)
        await store.start()
        return store

    async def start(self) -> None:
        """Say that this process lives, now and from now on, and write what is settled."""
        with contextlib.suppress(StoreUnavailableError):
            await self._beat()
        self._chores.start(FLUSH_EVERY, self.flush)
        self._chores.start(BEAT_EVERY, self._beat)

    async def reserve(self, scopes: Sequence[Scope], need: Need) -> Granted | Refused:
        """Let a request in, or say which limit it doesn't fit in."""
        day = limits.day_of(self._clock.now())
        names = tuple(scope.name for scope in scopes)
        limited = [scope for scope in scopes if scope.limited]
        if not limited:
            return Granted(reservation=Reservation(day=day, scopes=names))
        if self._away is not None:
            raise StoreUnavailableError(self._away)
        name = news.reservation_id(self._owner, next(self._numbers))
        reservation = Reservation(day=day, scopes=names, id=name, tokens=need.tokens)
        answer = await self._ask(redis_messages.request(reservation, limited, need), reservation)
        outcome = redis_messages.outcome(answer, reservation, limited, need)
        if isinstance(outcome, Granted):
            self._unsettled.add(name)
        return outcome

    async def _ask(self, request: bytes, reservation: Reservation) -> Answer:
        waiting = _Waiting(request, reservation, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return await waiting.answer

    async def _send(self) -> None:
        """Send what waits; what comes meanwhile waits for the next call."""
        while self._waiting:
            sent, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            requests = b"[" + b",".join(each.request for each in sent) + b"]"
            told = "the call was given up"
            try:
                answers: list[Answer] = await self._run(self._reserve_script, requests)
                for each, answer in zip(sent, answers, strict=True):
                    if not each.answer.done():
                        each.answer.set_result(answer)
                    elif answer[0]:  # the client left while it waited
                        self._batch.close(each.reservation, 0, self._clock.now())
                sent = []
            except StoreUnavailableError as error:
                told = str(error)
            finally:
                self._give_up(sent, told)

    def _give_up(self, sent: Sequence[_Waiting], told: str) -> None:
        """Let requests go whose answer didn't come. They may be reserved all the same, now or when the server thaws."""
        given_up = self._batch.given_up
        given_up += (each.reservation for each in sent)
        del given_up[:-_MOST_GIVEN_UP]
        for each in sent:
            if not each.answer.done():
                each.answer.set_exception(StoreUnavailableError(told))

    async def _run(self, script: Any, *args: bytes | str) -> Any:
        """Run a script; a server that doesn't answer is away from then on."""
        time = self._clock.now() if self._given_time else 0
        return await self._guarded(script(keys=[PREFIX], args=[time, *args]))

    async def _guarded(self, call: Awaitable[T]) -> T:
        try:
            found = await call
        except (RedisError, OSError) as error:
            self._away = f"Redis: {error}"
            raise StoreUnavailableError(self._away) from error
        self._away = None
        return found

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Take note of what a request came to; it is written within a fifth of a second."""
        self._batch.note(reservation, spent, self._clock.now())
        self._unsettled.discard(reservation.id)

    def release(self, reservation: Reservation) -> None:
        """Give back the money held, if this process has settled nothing; another one's word of it may be on its way."""
        if reservation.id in self._unsettled:
            self._unsettled.discard(reservation.id)
            self._batch.released.append(reservation)

    async def flush(self) -> None:
        """Write what was settled; a batch that failed goes again as it was, before anything else."""
        async with self._flushing:
            while self._outgoing is not None or self._batch:
                if self._outgoing is None:
                    self._outgoing, self._batch = (secrets.token_hex(12), self._batch), Batch()
                name, batch = self._outgoing
                await self._run(self._settle_script, name, redis_messages.batch(batch))
                self._outgoing = None

    async def _beat(self) -> None:
        """Say that this process lives; so it is found out, too, that the server is back."""
        name = f"{PREFIX}o:{self._owner}"
        await self._guarded(self._client.set(name, 1, px=int(DEAD_AFTER * 1000)))

    async def spending(self, first: str, last: str) -> list[Line]:
        """Give the spend of some days, as far as all replicas have written it."""
        await self.flush()
        return await self._guarded(_spending(self._client, first, last))

    async def close(self) -> None:
        """Write what was settled and take leave."""
        await self._chores.stop()
        try:
            await self.flush()
            await self._guarded(self._client.delete(f"{PREFIX}o:{self._owner}"))
        finally:
            await self._client.aclose()


async def read_spending(url: str, first: str, last: str) -> list[Line]:
    """Read the spend of some days from a server, as far as all replicas have written it."""
    async with _client(url) as client:
        try:
            return await _spending(client, first, last)
        except (RedisError, OSError) as error:
            raise StoreError(f"store.redis doesn't answer: {error}") from error


async def _spending(client: redis.asyncio.Redis, first: str, last: str) -> list[Line]:
    found = await client.zrange(f"{PREFIX}usage", cast("Any", f"[{first}"), cast("Any", f"[{last}"), bylex=True)
    days = [day.decode() for day in cast("list[bytes]", found)]
    pipeline = client.pipeline(transaction=False)
    for day in days:
        pipeline.hgetall(f"{PREFIX}usage:{day}")
    hashes = await pipeline.execute()
    return [line for day, fields in zip(days, hashes, strict=True) for line in redis_messages.lines(day, fields)]


def _client(url: str) -> redis.asyncio.Redis:
    try:
        return redis.asyncio.Redis.from_url(
            url,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            retry=Retry(NoBackoff(), 0),  # a reservation that is sent twice would count twice
        )
    except ValueError:  # whose message may show the password
        raise StoreError("store.redis is no URL of a Redis; `zurelay check` says what is wrong with it.") from None
