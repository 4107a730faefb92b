"""What every store must do: the same tests on an SQLite file and on a real Redis."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import storing
from brute_window import BruteWindow, steps
from redis_server import MISSING, RedisServer, lacks_redis
from storing import DAY, NOON, Stores, granted, need, refused, scope, spent
from zurelay import limits, money
from zurelay.limits import MINUTE, SECOND, Granted, Kind, Refused, Reservation, Standing
from zurelay.store import Counts, Line, Place, Store

WORKER = Path(__file__).with_name("store_worker.py")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    if lacks_redis():
        pytest.skip(MISSING)
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "redis"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        server.command("FLUSHALL")
        found = Stores(server.url)
    else:
        found = storing.sqlite(tmp_path)
    yield found
    await found.close()


@pytest.fixture
async def store(stores: Stores) -> Store:
    return await stores.open()


async def test_as_many_requests_as_the_limit_pass_in_any_minute(stores: Stores, store: Store) -> None:
    limited = scope(requests_per_minute=3)
    for _ in range(3):
        await granted(store, limited)
        stores.clock.move(10)
    assert 30 * SECOND == (await refused(store, limited)).wait
    stores.clock.at = NOON + MINUTE - 1
    assert 1 == (await refused(store, limited)).wait
    stores.clock.at = NOON + MINUTE
    await granted(store, limited)
    outcome = await refused(store, limited)
    assert (3, 10 * SECOND) == (outcome.used, outcome.wait)


@pytest.mark.parametrize("seed", range(3))
async def test_who_passes_and_when_is_what_brute_force_finds(stores: Stores, store: Store, seed: int) -> None:
    limited = scope(requests_per_minute=4, tokens_per_minute=100)
    brute = BruteWindow(4, 100)
    under_way: list[tuple[Reservation, Any]] = []
    for step in steps(seed, 150):
        stores.clock.at += step.pause
        now = stores.clock.now()
        if step.closes is not None and under_way:
            which, used = step.closes
            reservation, came = under_way.pop(which % len(under_way))
            store.settle(reservation, spent(prompt=used))
            await store.flush()
            brute.close(came, used, now)
        outcome = await store.reserve((limited,), need(step.tokens))
        assert brute.admits(now, step.tokens) is isinstance(outcome, Granted)
        if isinstance(outcome, Granted):
            under_way.append((outcome.reservation, brute.take(now, step.tokens)))
        else:
            assert brute.retry_after(now, step.tokens) == limits.exceeded(outcome).retry_after
        assert brute.standings(now) == (outcome.requests, outcome.tokens)


async def test_two_bursts_at_a_boundary_do_not_both_pass(stores: Stores, store: Store) -> None:
    limited = scope(requests_per_minute=10)
    stores.clock.at = NOON + 59 * SECOND
    for _ in range(10):
        await granted(store, limited)
    stores.clock.at = NOON + 61 * SECOND
    assert 58 * SECOND == (await refused(store, limited)).wait


async def test_a_refused_request_counts_nowhere(store: Store) -> None:
    first, second = scope(requests_per_minute=9), scope("policy:p anyone", requests_per_minute=1)
    await granted(store, first, second)
    for _ in range(9):
        assert "policy:p anyone" == (await refused(store, first, second)).scope.name
    for _ in range(8):
        await granted(store, first)
    await refused(store, first)


async def test_what_a_request_leaves_of_its_tokens_is_free(store: Store) -> None:
    limited = scope(tokens_per_minute=1000)
    reservation = await granted(store, limited, tokens=1000)
    assert (Kind.TOKENS, 1000, 1000, 1) == _facts(await refused(store, limited, tokens=1))
    store.settle(reservation, spent(prompt=200, completion=100))
    await store.flush()
    await granted(store, limited, tokens=700)
    await refused(store, limited, tokens=1)


def _facts(outcome: Refused) -> tuple[Any, ...]:
    return outcome.kind, outcome.limit, outcome.used, outcome.needed


async def test_tokens_beyond_the_reserved_count_once_known(stores: Stores, store: Store) -> None:
    limited = scope(tokens_per_minute=1000)
    reservation = await granted(store, limited, tokens=100)
    stores.clock.move(90)
    store.settle(reservation, spent(prompt=100, completion=800))
    await store.flush()
    assert (800, MINUTE) == ((outcome := await refused(store, limited, tokens=201)).used, outcome.wait)
    await granted(store, limited, tokens=200)
    stores.clock.move(60)
    await granted(store, limited, tokens=1000)


async def test_tokens_wait_until_enough_have_gone(stores: Stores, store: Store) -> None:
    limited = scope(tokens_per_minute=1000)
    for _ in range(250):
        await granted(store, limited, tokens=4)
        stores.clock.move(0.1)
    now = stores.clock.at
    assert NOON + MINUTE - now == (await refused(store, limited, tokens=4)).wait
    assert NOON + 124 * SECOND // 10 + MINUTE - now == (await refused(store, limited, tokens=500)).wait


async def test_more_tokens_than_the_limit_never_fit(store: Store) -> None:
    assert (await refused(store, scope(tokens_per_minute=1000), tokens=1001)).wait is None


async def test_money_is_held_until_it_is_settled(store: Store) -> None:
    limited = scope(usd_per_day="1")
    reservation = await granted(store, limited, usd="0.9")
    outcome = await refused(store, limited, usd="0.2")
    assert (Kind.USD_DAY, Decimal(1), Decimal("0.9"), Decimal("0.2")) == _facts(outcome)
    assert 5 * SECOND == outcome.wait
    store.settle(reservation, spent("0.3"))
    await store.flush()
    assert Decimal("0.3") == (await refused(store, limited, usd="0.71")).used
    await granted(store, limited, usd="0.7")


async def test_a_failed_request_is_free(store: Store) -> None:
    limited = scope(tokens_per_minute=100, usd_per_day="1", usd_per_month="1")
    store.settle(await granted(store, limited, tokens=100, usd="1"), spent(failed=True))
    await store.flush()
    await granted(store, limited, tokens=100, usd="1")


async def test_money_fits_to_the_last_digit(store: Store) -> None:
    limited = scope(usd_per_day="0.3")
    for usd in ("0.1", "0.0999999999999999", "0.1000000000000001"):
        store.settle(await granted(store, limited, usd="0"), spent(usd))
    await store.flush()
    assert Decimal("0.3") == (await refused(store, limited, usd="0.000000000000000001")).used
    await granted(store, limited, usd="0")


async def test_large_amounts_stay_exact(store: Store) -> None:
    limited = scope(usd_per_month="1000000000")
    store.settle(await granted(store, limited), spent("999999999.999999999999999999"))
    await store.flush()
    assert Decimal("999999999.999999999999999999") == (await refused(store, limited, usd="1")).used
    await granted(store, limited, usd="0.000000000000000001")


async def test_a_day_and_a_month_begin_anew(stores: Stores, store: Store) -> None:
    limited = scope(usd_per_day="1", usd_per_month="1.5")
    store.settle(await granted(store, limited, usd="1"), spent("1"))
    await store.flush()
    outcome = await refused(store, limited, usd="0.6")
    assert (Kind.USD_DAY, 12 * 60 * MINUTE) == (outcome.kind, outcome.wait)
    stores.clock.move(12 * 3600)  # December: the month is new too
    store.settle(await granted(store, limited, usd="1"), spent("1"))
    await store.flush()
    stores.clock.move(24 * 3600)
    outcome = await refused(store, limited, usd="0.6")
    assert (Kind.USD_MONTH, Decimal(1), 30 * 24 * 60 * MINUTE) == (outcome.kind, outcome.used, outcome.wait)
    await granted(store, limited, usd="0.5")


async def test_a_request_is_charged_to_the_day_it_began(stores: Stores, store: Store) -> None:
    limited = scope(usd_per_day="1")
    stores.clock.move(12 * 3600 - 1)
    reservation = await granted(store, limited, usd="1")
    stores.clock.move(2)
    await granted(store, limited, usd="1")  # what is held of yesterday's is not held of today's
    store.settle(reservation, spent("0.7"))
    lines = await store.spending("2026-11-01", "2026-12-31")
    assert [(DAY, Decimal("0.7"))] == [(line.place.day, money.usd(line.counts.usd)) for line in lines]


async def test_more_money_than_the_limit_never_fits(store: Store) -> None:
    assert (await refused(store, scope(usd_per_day="1", usd_per_month="5"), usd="1.01")).wait is None


async def test_money_that_is_only_held_is_worth_asking_for_again_soon(store: Store) -> None:
    limited = scope(usd_per_day="1")
    store.settle(await granted(store, limited, usd="0.5"), spent("0.4"))
    await store.flush()
    under_way = await granted(store, limited, usd="0.5")
    for needed, wait, held in (("0.6", 5 * SECOND, True), ("0.7", 12 * 60 * MINUTE, False), ("2", None, False)):
        outcome = await refused(store, limited, usd=needed)
        assert (wait, held, Decimal("0.9")) == (outcome.wait, outcome.held, outcome.used)
    store.settle(under_way, spent("0"))
    await store.flush()
    await granted(store, limited, usd="0.6")


async def test_of_several_limits_the_longest_wait_is_told(store: Store) -> None:
    limited = scope(requests_per_minute=1, usd_per_day="1")
    store.settle(await granted(store, limited, usd="1"), spent("1"))
    await store.flush()
    assert Kind.USD_DAY is (await refused(store, limited, usd="1")).kind


async def test_a_shadow_refuses_nothing_and_tells_what_it_would_have_done(store: Store) -> None:
    real, shadow = scope(requests_per_minute=10), scope("policy:p anyone", enforced=False, requests_per_minute=1)
    first = await store.reserve((real, shadow), need())
    second = await store.reserve((real, shadow), need())
    assert isinstance(first, Granted)
    assert isinstance(second, Granted)
    assert ((), ("key:a", "policy:p anyone")) == (first.shadow, first.reservation.scopes)
    assert [("policy:p anyone", Kind.REQUESTS)] == [(each.scope.name, each.kind) for each in second.shadow]
    assert ("key:a",) == second.reservation.scopes


async def test_a_shadow_alone_refuses_nothing(store: Store) -> None:
    shadow = scope(enforced=False, requests_per_minute=1, usd_per_day="1")
    store.settle(await granted(store, shadow, usd="1"), spent("1"))
    await store.flush()
    outcome = await store.reserve((shadow,), need(usd="1"))
    assert isinstance(outcome, Granted)
    assert [Kind.USD_DAY] == [each.kind for each in outcome.shadow]
    store.settle(outcome.reservation, spent("1"))
    await store.flush()


async def test_standings_tell_the_tightest_scope(stores: Stores, store: Store) -> None:
    key = scope(requests_per_minute=10, tokens_per_minute=1000)
    policy = scope("policy:p anyone", requests_per_minute=5)
    shadow = scope("policy:q anyone", enforced=False, requests_per_minute=2)
    await granted(store, key, tokens=100)
    stores.clock.move(20)
    outcome = await store.reserve((key, policy, shadow), need(tokens=250))
    assert (Standing(5, 4, MINUTE), Standing(1000, 650, MINUTE)) == (outcome.requests, outcome.tokens)
    stores.clock.move(20)
    outcome = await refused(store, key, policy, tokens=900)
    assert (Standing(5, 4, 40 * SECOND), Standing(1000, 650, 40 * SECOND)) == (outcome.requests, outcome.tokens)


async def test_a_refused_caller_has_nothing_left(store: Store) -> None:
    limited = scope(requests_per_minute=1)
    await granted(store, limited)
    assert Standing(1, 0, MINUTE) == (await refused(store, limited)).requests


async def test_without_limits_everything_passes_and_is_counted(store: Store) -> None:
    free = scope()
    outcome = await store.reserve((free,), need(tokens=10**9, usd="1000000"))
    assert Granted(reservation=Reservation(day=DAY, scopes=("key:a",))) == outcome
    store.settle(await granted(store, free), spent("0.8"))
    await store.flush()
    assert Decimal("0.8") == (await refused(store, scope(usd_per_day="1"), usd="0.3")).used


async def test_no_scopes_at_all(store: Store) -> None:
    store.settle(await granted(store), spent("0.5", prompt=3))
    (line,) = await store.spending(DAY, DAY)
    assert (1, 3) == (line.counts.requests, line.counts.prompt)


async def test_limits_may_change_between_two_requests(store: Store) -> None:
    for _ in range(5):
        await granted(store, scope(requests_per_minute=5))
    await refused(store, scope(requests_per_minute=5))
    await granted(store, scope(requests_per_minute=6))
    outcome = await refused(store, scope(requests_per_minute=2))
    assert (6, MINUTE, Standing(2, 0, MINUTE)) == (outcome.used, outcome.wait, outcome.requests)


async def test_a_clock_that_goes_back_lets_nothing_in_sooner_and_blocks_no_one(stores: Stores, store: Store) -> None:
    limited = scope(requests_per_minute=2, tokens_per_minute=100)
    await granted(store, limited, tokens=50)
    stores.clock.move(30)
    await granted(store, limited, tokens=50)
    stores.clock.move(-3600)
    outcome = await refused(store, limited, tokens=50)
    assert (2, MINUTE) == (outcome.requests and outcome.requests.limit, outcome.wait)
    stores.clock.move(60)
    await granted(store, limited, tokens=100)


async def test_a_clock_that_jumps_ahead_frees_what_a_minute_would(stores: Stores, store: Store) -> None:
    limited = scope(requests_per_minute=1, tokens_per_minute=10)
    await granted(store, limited, tokens=10)
    stores.clock.move(3 * 24 * 3600)
    await granted(store, limited, tokens=10)


async def test_two_processes_count_together(stores: Stores, store: Store) -> None:
    other = await stores.open()
    limited = scope(requests_per_minute=4, tokens_per_minute=1000, usd_per_day="1")
    for each in (store, other, store):
        await granted(each, limited, tokens=100, usd="0.25")
    await refused(other, limited, tokens=701)
    await refused(other, limited, usd="0.26")
    await granted(other, limited, tokens=700, usd="0.25")
    await refused(store, limited)


async def test_any_process_may_settle(stores: Stores, store: Store) -> None:
    other = await stores.open()
    limited = scope(tokens_per_minute=1000, usd_per_day="1")
    reservation = await granted(store, limited, tokens=900, usd="0.9")
    sent = msgspec.json.encode(reservation)  # it travels with the request
    other.settle(msgspec.json.decode(sent, type=Reservation), spent("0.1", prompt=90, completion=10))
    await other.flush()
    for each in (store, other):
        assert (100, Decimal("0.1")) == (
            (await refused(each, limited, tokens=901)).used,
            (await refused(each, limited, usd="0.91")).used,
        )


async def test_a_request_that_came_to_nothing_gives_its_money_back(stores: Stores, store: Store) -> None:
    limited = scope(tokens_per_minute=100, usd_per_day="1")
    other = await stores.open()
    reservation = await granted(store, limited, tokens=100, usd="1")
    store.release(reservation)
    store.release(reservation)
    await store.flush()
    for each in (store, other):
        await refused(each, limited, tokens=1)  # tokens go with their minute
    store.settle(await granted(other, limited, usd="0.7"), spent("0.7"))
    await store.flush()
    for each in (store, other):
        assert Decimal("0.7") == (await refused(each, limited, usd="0.4")).used


async def test_what_was_settled_is_not_given_back_again(stores: Stores, store: Store) -> None:
    limited = scope(tokens_per_minute=100, usd_per_day="1")
    other = await stores.open()
    first, second = [await granted(store, limited, tokens=50, usd="0.5") for _ in range(2)]
    store.settle(first, spent("0.25", prompt=20))
    store.release(first)
    store.release(second)  # settled by another process, whose word of it comes later
    await store.flush()
    other.settle(second, spent("0.25", prompt=20))
    await other.flush()
    for each in (store, other):
        assert Decimal("0.5") == (await refused(each, limited, usd="0.6")).used
        assert 40 == (await refused(each, limited, tokens=61)).used


async def test_releasing_what_held_nothing_writes_nothing(store: Store) -> None:
    store.release(await granted(store, scope()))
    await store.flush()
    assert [] == await store.spending("2000-01-01", "9999-12-31")


async def test_what_one_process_wrote_the_next_one_knows(stores: Stores, store: Store) -> None:
    limited = scope(requests_per_minute=2, tokens_per_minute=1000, usd_per_day="1")
    reservation = await granted(store, limited, tokens=900, usd="0.9")
    store.settle(reservation, spent("0.4", prompt=300))
    await stores.close()
    later = await stores.open()
    assert Decimal("0.4") == (await refused(later, limited, usd="0.7")).used
    assert 300 == (await refused(later, limited, tokens=701)).used
    await granted(later, limited, tokens=700, usd="0.6")
    assert Kind.REQUESTS is (await refused(later, limited)).kind


async def test_spend_is_summed_by_day_key_workload_and_model(stores: Stores, store: Store) -> None:
    usage = {"cached": 4, "cache_written": 2, "reasoning": 5}
    for _ in range(3):
        store.settle(
            await granted(store),
            spent("0.1", prompt=10, completion=7, usage=usage, workload="pay/api", ours=Decimal(1)),
        )
    store.settle(await granted(store), spent(None, prompt=1, usage={"estimated": True}, model="llama"))
    store.settle(await granted(store), spent(failed=True, model=""))
    await store.flush()
    stores.clock.move(24 * 3600)
    store.settle(await granted(store), spent("0.2", key='odd "name"\u2028'))
    assert [
        Line(Place(DAY, "a", "", ""), Counts(requests=1, failed=1)),
        Line(Place(DAY, "a", "", "llama"), Counts(requests=1, estimated=1, unpriced=1, prompt=1)),
        Line(
            Place(DAY, "a", "pay/api", "gpt"),
            Counts(
                requests=3,
                prompt=30,
                cached=12,
                cache_written=6,
                completion=21,
                reasoning=15,
                usd=money.units(Decimal("0.3")),
                ours=money.units(Decimal(3)),
            ),
        ),
    ] == await store.spending("2026-01-01", DAY)
    (line,) = await store.spending("2026-12-01", "2026-12-01")
    assert 'odd "name"\u2028' == line.place.key
    assert [] == await store.spending("2026-12-02", "2027-01-01")


async def test_sums_stay_exact_over_many_flushes(store: Store) -> None:
    for _ in range(30):
        store.settle(await granted(store), spent("0.9999999999999999", ours=Decimal("0.000000999999999999")))
        await store.flush()
    (line,) = await store.spending(DAY, DAY)
    assert Decimal("29.999999999999997") == money.usd(line.counts.usd)
    assert Decimal("0.00002999999999997") == money.usd(line.counts.ours)


async def test_flushing_nothing_writes_nothing(store: Store) -> None:
    await store.flush()
    assert [] == await store.spending("2000-01-01", "9999-12-31")


class Model:
    """The rules once more, as plainly as they can be written: lists of all that ever happened."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.tokens: dict[str, list[int]] = {}
        self.held: dict[str, Decimal] = {}
        self.spent = Decimal(0)

    def fits(self, now: int, tokens: int, usd: Decimal) -> bool:
        recent = [at for at in self.requests if at > now - MINUTE]
        counted = sum(count for at, count in self.tokens.values() if at > now - MINUTE)
        return len(recent) < 8 and counted + tokens <= 300 and self.spent + sum(self.held.values()) + usd <= 20

    def reserve(self, name: str, now: int, tokens: int, usd: Decimal) -> None:
        self.requests.append(now)
        self.tokens[name] = [now, tokens]
        self.held[name] = usd

    def settle(self, name: str, now: int, used: int, usd: Decimal) -> None:
        reserved = self.tokens[name][1]
        if used > reserved:
            self.tokens[f"{name} more"] = [now, used - reserved]
        else:
            self.tokens[name][1] = used
        del self.held[name]
        self.spent += usd


@pytest.mark.parametrize("seed", range(4))
async def test_a_long_random_day_goes_by_the_rules(stores: Stores, store: Store, seed: int) -> None:
    chance, model = random.Random(seed), Model()
    both = (store, await stores.open())
    limited = scope(requests_per_minute=8, tokens_per_minute=300, usd_per_day="20")
    reservations: list[Reservation] = []
    for _ in range(200):
        stores.clock.move(chance.choice((0.0, 0.5, 3.0, 20.0)))
        now, turn = stores.clock.at, chance.choice(both)
        if reservations and chance.random() < 0.4:
            reservation = reservations.pop(chance.randrange(len(reservations)))
            used, usd = chance.randrange(90), Decimal(chance.randrange(100)) / 400
            model.settle(reservation.id, now, used, usd)
            turn.settle(reservation, spent(str(usd), prompt=used))
            await turn.flush()
        else:
            tokens, usd = chance.randrange(1, 80), Decimal(chance.randrange(100)) / 100
            fits = model.fits(now, tokens, usd)
            outcome = await turn.reserve((limited,), need(tokens, str(usd)))
            assert fits == isinstance(outcome, Granted), (now, outcome)
            if isinstance(outcome, Granted):
                model.reserve(outcome.reservation.id, now, tokens, usd)
                reservations.append(outcome.reservation)
    (line,) = await store.spending(DAY, DAY)
    assert model.spent == money.usd(line.counts.usd)


class Worker:
    """Another process, which asks much at once when it is told to."""

    def __init__(self, *words: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, str(WORKER), *words], stdout=pipe, stdin=pipe, text=True)

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def end(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


def test_limits_are_exact_under_parallel_requests_of_several_processes(stores: Stores) -> None:
    limit, each, processes = 150, 100, 3 if stores.where.startswith("unix:") else 2
    workers = [Worker(stores.where, str(limit), str(each)) for _ in range(processes)]
    assert ["ready\n"] * processes == [worker.hear() for worker in workers]
    for worker in workers:
        worker.tell("go")
    counts = [msgspec.json.decode(worker.hear()) for worker in workers]
    assert [0] * processes == [worker.end() for worker in workers]
    for kind in ("requests", "tokens", "usd"):
        assert limit == sum(count[kind] for count in counts)
