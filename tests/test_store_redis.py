"""The Redis store's own: a server that is away, comes back, freezes or forgets; and what processes leave there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

from redis_server import MISSING, RedisServer, lacks_redis
from storing import DAY, Stores, granted, need, refused, scope, spent
from zurelay import money, redis_messages, store_redis
from zurelay.limits import Granted, Reservation
from zurelay.store import StoreError, StoreUnavailableError
from zurelay.store_redis import RedisStore

pytestmark = pytest.mark.skipif(lacks_redis(), reason=MISSING)

LIMITED = scope(requests_per_minute=1000, tokens_per_minute=100_000, usd_per_day="1")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    found.start()
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_redis, "_PATIENCE", 0.3)


@pytest.fixture
async def stores(server: RedisServer) -> AsyncIterator[Stores]:
    found = Stores(server.url)
    yield found
    await found.close()


@pytest.fixture
async def store(stores: Stores) -> RedisStore:
    return cast("RedisStore", await stores.open())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # it comes about in another process
            await asyncio.sleep(0.01)


def back(store: RedisStore) -> bool:
    return store._away is None


async def usage(store: RedisStore) -> Decimal:
    return money.usd(sum(line.counts.usd for line in await store.spending(DAY, DAY)))


async def test_a_server_that_is_away_at_the_start_is_waited_for(
    tmp_path: Path,
) -> None:
    server = RedisServer(tmp_path)
    store = await RedisStore.open(server.url)
    with pytest.raises(StoreUnavailableError):
        await granted(store, LIMITED)
    server.start()
    await until(lambda: back(store))
    await granted(store, LIMITED)
    await store.close()
    server.stop()


async def test_a_server_that_goes_and_comes_back_has_all_that_was_settled(
    server: RedisServer, store: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    reservation = await granted(store, LIMITED, usd="0.5")
    server.stop()
    with pytest.raises(StoreUnavailableError):
        await granted(store, LIMITED)
    for _ in range(100):
        store.settle(reservation, spent("0.001"))
    with pytest.raises(StoreUnavailableError):
        await store.flush()
    await until(lambda: "fails" in caplog.text)
    server.start()  # and knows nothing any more: neither scripts nor figures
    await until(lambda: back(store))
    assert Decimal("0.1") == await usage(store)
    await granted(store, LIMITED)
    await until(lambda: "is back" in caplog.text)
    assert ["ERROR", "WARNING"] == [record.levelname for record in caplog.records]


async def test_nothing_waits_for_a_server_that_is_known_to_be_away(server: RedisServer, store: RedisStore) -> None:
    server.stop()
    with pytest.raises(StoreUnavailableError):
        await granted(store, LIMITED)
    sent = store._sender
    for _ in range(100):
        with pytest.raises(StoreUnavailableError):
            await granted(store, LIMITED)
    assert sent is store._sender  # nothing was sent
    server.start()
    await until(lambda: back(store))


async def test_unlimited_requests_pass_while_the_server_is_away(server: RedisServer, store: RedisStore) -> None:
    server.stop()
    store.settle(await granted(store, scope()), spent("0.1"))
    with pytest.raises(StoreUnavailableError):
        await store.flush()
    assert "" == (await granted(store, scope())).id
    server.start()
    await until(lambda: back(store))
    assert Decimal("0.1") == await usage(store)


async def test_a_frozen_server_is_away_until_it_thaws(server: RedisServer, store: RedisStore) -> None:
    server.freeze()
    with pytest.raises(StoreUnavailableError):
        await granted(store, LIMITED)
    store.settle(await granted(store, scope()), spent("0.1"))
    server.thaw()
    await until(lambda: back(store))
    assert Decimal("0.1") == await usage(store)


async def test_a_batch_whose_answer_was_lost_counts_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store._run
    lost = 0

    async def deaf(script: object, *args: bytes | str) -> object:
        nonlocal lost
        answer = await run(script, *args)
        if lost < 2:
            lost += 1
            raise StoreUnavailableError("the answer was lost")
        return answer

    monkeypatch.setattr(store, "_run", deaf)
    store.settle(await granted(store, scope()), spent("0.1"))
    await until(lambda: lost == 2)
    store.settle(await granted(store, scope()), spent("0.02"))
    assert Decimal("0.12") == await usage(store)


async def test_what_a_dead_process_held_is_given_back(server: RedisServer, stores: Stores, store: RedisStore) -> None:
    other = cast("RedisStore", await stores.open())
    await granted(other, LIMITED, usd="0.5")
    await granted(store, LIMITED, usd="0.3")
    await refused(store, LIMITED, usd="0.6")
    stores.clock.move(2)
    await refused(store, LIMITED, usd="0.6")
    await other._chores.stop()
    server.command("DEL", f"{store_redis.PREFIX}o:{other._owner}")  # as it goes by itself six seconds later
    stores.clock.move(2)
    await granted(store, LIMITED, usd="0.6")
    await refused(store, LIMITED, usd="0.2")


async def test_a_sign_of_life_goes_by_itself(server: RedisServer, store: RedisStore) -> None:
    left = int(server.command("PTTL", f"{store_redis.PREFIX}o:{store._owner}").strip(b":\r\n"))
    assert 0 < left <= 6000


async def test_whoever_leaves_while_it_waits_holds_nothing(server: RedisServer, store: RedisStore) -> None:
    limited = scope(usd_per_day="1", tokens_per_minute=100)
    server.freeze()
    waiting = asyncio.create_task(store.reserve((limited,), need(100, "1")))
    await until(lambda: store._sender is not None)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    server.thaw()
    assert store._sender is not None
    await store._sender
    await store.flush()
    await granted(store, limited, tokens=100, usd="1")


ONCE = scope(requests_per_minute=1, tokens_per_minute=100, usd_per_day="1", usd_per_month="1")


async def test_a_reservation_that_was_made_after_its_answer_was_given_up_holds_nothing(
    server: RedisServer, store: RedisStore
) -> None:
    await granted(store, scope("key:b", requests_per_minute=1))  # from now on the server has the script
    server.freeze()
    with pytest.raises(StoreUnavailableError):
        await granted(store, ONCE, tokens=100, usd="1")
    server.thaw()
    await until(lambda: back(store))
    await store.flush()
    await granted(store, ONCE, tokens=100, usd="1")
    await refused(store, ONCE, tokens=100, usd="1")


async def test_a_server_that_freezes_again_and_again_holds_nothing_in_the_end(
    server: RedisServer, store: RedisStore
) -> None:
    many = scope(requests_per_minute=50, tokens_per_minute=500, usd_per_day="5")
    await granted(store, scope("key:b", requests_per_minute=1))
    for _ in range(3):
        server.freeze()
        asked = await asyncio.gather(
            *(store.reserve((many,), need(10, "0.1")) for _ in range(40)), return_exceptions=True
        )
        assert {StoreUnavailableError} == set(map(type, asked))
        server.thaw()
        await until(lambda: back(store))
    await store.flush()
    outcomes = await asyncio.gather(*(store.reserve((many,), need(10, "0.1")) for _ in range(60)))
    assert 50 == sum(isinstance(outcome, Granted) for outcome in outcomes)


async def test_a_reservation_that_comes_after_it_was_given_up_holds_nothing(store: RedisStore) -> None:
    late = Reservation(day=DAY, scopes=(ONCE.name,), id="gone.1", tokens=100)
    store._batch.given_up.append(late)
    await store.flush()
    (answer,) = await store._run(store._reserve_script, b"[%s]" % redis_messages.request(late, [ONCE], need(100, "1")))
    assert 0 == answer[0]
    await granted(store, ONCE, tokens=100, usd="1")


async def test_what_was_given_up_is_kept_to_a_bound(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_redis, "_MOST_GIVEN_UP", 3)

    async def away(*_: object) -> object:
        raise StoreUnavailableError("the answer was lost")

    with monkeypatch.context() as lost:
        lost.setattr(store, "_run", away)
        for _ in range(5):
            with pytest.raises(StoreUnavailableError):
                await granted(store, ONCE)
        assert ["3", "4", "5"] == [each.id.partition(".")[2] for each in store._batch.given_up]


async def test_requests_that_wait_together_go_together(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = store._run, []

    async def counted(script: object, *args: bytes | str) -> object:
        calls.append(script)
        return await run(script, *args)

    monkeypatch.setattr(store, "_run", counted)
    await asyncio.gather(*(granted(store, LIMITED) for _ in range(250)))
    assert 3 <= calls.count(store._reserve_script) <= 4


async def test_a_broken_script_leaves_no_one_waiting(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def short(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(store, "_run", short)
    with pytest.raises(StoreUnavailableError):
        await granted(store, LIMITED)
    assert store._sender is not None
    with pytest.raises(ValueError, match="shorter"):
        await store._sender


async def test_without_a_clock_of_ours_the_servers_counts(server: RedisServer) -> None:
    store = await RedisStore.open(server.url)
    limited = scope(requests_per_minute=1)
    begun = time.time_ns() // 1000
    await granted(store, limited)
    ((_, at),) = cast(
        "list[tuple[bytes, float]]", await store._client.zrange(f"{store_redis.PREFIX}q:key:a", 0, -1, withscores=True)
    )
    assert begun <= int(at) <= time.time_ns() // 1000
    assert 0 < ((await refused(store, limited)).wait or 0) <= 60_000_000
    await store.close()


async def test_all_that_is_kept_has_an_end(store: RedisStore) -> None:
    limited = scope(requests_per_minute=9, tokens_per_minute=9, usd_per_day="1", usd_per_month="1")
    store.settle(await granted(store, limited, tokens=1, usd="0.1"), spent("0.1", prompt=5))
    await store.flush()
    keys = cast("list[bytes]", await store._client.keys("*"))
    assert 8 <= len(keys)
    forever = [key for key in keys if await store._client.ttl(key) < 0]
    assert [f"{store_redis.PREFIX}usage".encode()] == forever  # a list of days


async def test_spend_is_read_from_a_running_server(server: RedisServer, store: RedisStore) -> None:
    store.settle(await granted(store, scope()), spent("0.1"))
    await store.flush()
    (line,) = await store_redis.read_spending(server.url, "2026-01-01", "2026-12-31")
    assert Decimal("0.1") == money.usd(line.counts.usd)


async def test_reading_from_a_server_that_is_away_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="doesn't answer"):
        await store_redis.read_spending(f"unix://{tmp_path}/none.sock", "2026-01-01", "2026-12-31")


async def test_a_url_that_is_none_stops_the_start() -> None:
    with pytest.raises(StoreError, match="zurelay check"):
        await RedisStore.open("http://127.0.0.1")


async def test_closing_takes_leave(server: RedisServer) -> None:
    store = await RedisStore.open(server.url)
    store.settle(await granted(store, scope()), spent("0.1"))
    await store.close()
    assert b":0" == server.command("EXISTS", f"{store_redis.PREFIX}o:{store._owner}").strip()
    assert 1 == len(await store_redis.read_spending(server.url, "2000-01-01", "9999-12-31"))
