"""SPEC 11 at its word: exact over all processes that share a store, and kill -9 costs a second of spend at most."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import pathlib
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Self

import httpx
import pytest

from e2e.harness import Gateway, Provider, ask, until
from e2e.keys import bearer, usage, write_keys
from e2e.test_limits import PRICE, USED, priced
from redis_server import MISSING, RedisServer, lacks_redis
from zurelay import money, sqlite_file

LIMIT = 100
PARALLEL = 200
CLIENTS = 4
KILLS, WORKERS = 20, 5
USD = Decimal("0.002")  # what USED costs at PRICE


def started(directory: pathlib.Path, provider: Provider, keys: dict[str, Any], **settings: Any) -> Gateway:
    auth = write_keys(directory, **keys)
    return Gateway(directory, priced(provider.port) | {"auth": auth} | settings)


@contextlib.contextmanager
def sharing(kind: str, provider: Provider, factory: pytest.TempPathFactory) -> Iterator[list[Gateway]]:
    """Gateways that share one store: two workers and a file, or three with a worker each and a Redis."""
    keys = {"exact": {"limits": {"requests_per_minute": LIMIT}}}
    with contextlib.ExitStack() as stack:
        if kind == "sqlite":
            gateways = [started(factory.mktemp("g"), provider, keys, workers=2)]
        else:
            redis = RedisServer(factory.mktemp("r"))
            stack.callback(redis.stop)
            redis.start()
            one_each = {"workers": 1, "store": {"redis": redis.url}}
            gateways = [started(factory.mktemp("g"), provider, keys, **one_each) for _ in range(3)]
        for gateway in gateways:
            stack.callback(gateway.stop)
        yield [gateway.wait_ready() for gateway in gateways]


async def burst(gateways: list[Gateway], count: int) -> list[httpx.Response]:
    """Send requests to all at once, every other one streamed."""
    async with contextlib.AsyncExitStack() as stack:
        limits = httpx.Limits(max_connections=None)
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=gateway.url, timeout=60, limits=limits))
            for gateway in gateways
        ]
        return await asyncio.gather(
            *(
                clients[number % len(clients)].post(
                    "/v1/chat/completions", json=ask("solo", stream=number % 2 == 0), headers=bearer("exact")
                )
                for number in range(count)
            )
        )


@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("redis", marks=pytest.mark.skipif(lacks_redis(), reason=MISSING))]
)
async def test_as_many_pass_as_the_limit_says_and_no_more(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    with sharing(kind, provider, tmp_path_factory) as gateways:
        provider.reset()
        begun = time.monotonic()
        answers = await burst(gateways, PARALLEL)
        answers += await burst(gateways, PARALLEL // 4)
        assert time.monotonic() - begun < 60, "the first have left the window: nothing can be told"
        passed = [answer for answer in answers if answer.status_code == 200]
        assert {200: LIMIT, 429: len(answers) - LIMIT} == collections.Counter(each.status_code for each in answers)
        assert len(provider.requests) == LIMIT
        left = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in passed]
        assert sorted(left) == list(range(LIMIT))
        waits = {int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429}
        assert max(waits) <= 60


class Load:
    """Threads that ask all the time; when each answer came is told by key."""

    def __init__(self, gateway: Gateway, key: str) -> None:
        self.key = key
        self.answered: dict[str, list[float]] = collections.defaultdict(list)
        self._url = gateway.url + "/v1/chat/completions"
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def over_a_second(self, key: str) -> None:
        """Ask with a key until its first answer is over a second old."""
        self.key = key
        until(lambda: self.answered[key])
        until(lambda: time.monotonic() - self.answered[key][0] > 1.1)

    def _ask(self) -> None:
        body = ask("solo", simulate={"faults": {"m1": USED}})
        with httpx.Client(timeout=30) as client:
            while not self._over.is_set():
                key = self.key
                answer = client.post(self._url, json=body, headers=bearer(key))
                if answer.status_code == 200:
                    self.answered[key].append(time.monotonic())


def kill_oldest(gateway: Gateway) -> float:
    """Kill a worker, once all are there; tell when."""
    until(lambda: len(gateway.workers) == WORKERS, 20)
    oldest, at = gateway.workers[0], time.monotonic()
    os.kill(oldest, signal.SIGKILL)
    until(lambda: oldest not in gateway.workers)
    return at


def demand_whole(directory: pathlib.Path, key: str, row: dict[str, Any]) -> None:
    """Each of a key's records is there with all of its parts.

    Requests whose end died with the worker that was told of it count as neither answered nor failed.
    """
    answered, rest = divmod(row["prompt"], 1000)
    assert (0, 100 * answered) == (rest, row["completion"])
    assert 0 <= row["requests"] - row["failed"] - answered <= CLIENTS
    assert Decimal(row["usd"]) == answered * USD
    connection = sqlite3.connect(directory / "zurelay.db")
    assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    periods = connection.execute("SELECT DISTINCT period FROM spent WHERE length(period) = 7").fetchall()
    spent = sum(sqlite_file.read_spent(connection, f"key:{key}", period) for (period,) in periods)
    connection.close()
    assert money.usd(spent) == answered * USD


def test_a_worker_killed_twenty_times_under_load_loses_a_second_at_most(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert {"input": 1, "output": 10} == PRICE
    directory = tmp_path_factory.mktemp("killed")
    names = [f"kill-{chr(ord('a') + number)}" for number in range(KILLS)]
    keys: dict[str, Any] = {name: {"limits": {"usd_per_month": 1000}} for name in names}
    # So many workers that none dies often: who dies again and again is started again later and later.
    gateway = started(directory, provider, keys, workers=WORKERS).wait_ready()
    killed: dict[str, float] = {}
    try:
        with Load(gateway, names[0]) as load:
            for name in names:
                load.over_a_second(name)
                killed[name] = kill_oldest(gateway)
        needed = {name: sum(answer <= at - 1 for answer in load.answered[name]) for name, at in killed.items()}
        assert 0 == gateway.stop(), "".join(gateway.log)  # the workers that live have written all by then
        rows = usage(gateway)
        assert {} == {name: rows[name] for name, count in needed.items() if rows[name]["requests"] < count}
        for name in names:
            demand_whole(directory, name, rows[name])
        gateway = started(directory, provider, keys, workers=1).wait_ready()
        assert 200 == gateway.chat(ask("solo"), bearer(names[0])).status_code
    finally:
        gateway.stop()
