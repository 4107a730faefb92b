import asyncio
import logging

import pytest

from zurelay.supervise import drain as drain_module
from zurelay.supervise.admin import AdminError
from zurelay.supervise.drain import Drain
from zurelay.supervise.polling import until


class Workers:
    """The fleet: what is done to it and to Envoy is kept in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def drain(self) -> None:
        self.events.append("workers drain")


class Envoy:
    """Envoy with these numbers of requests under way, and come so far, at each look; the last ones stay."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.looks = [(0, 0)]
        self.away = False

    async def drain(self) -> None:
        if self.away:
            raise AdminError("away")
        self.workers.events.append("envoy drains")

    async def stats(self, pattern: str) -> dict[str, str]:
        assert pattern == r"^http\.ingress\.downstream_rq_(active|total)$"
        if self.away:
            raise AdminError("away")
        active, total = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        self.workers.events.append(f"{active} active of {total}")
        return {"http.ingress.downstream_rq_active": str(active), "http.ingress.downstream_rq_total": str(total)}


@pytest.fixture(name="workers")
def _workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(drain_module, "_SETTLE", 0.0)
    return Workers()


@pytest.fixture(name="envoy")
def _envoy(workers: Workers) -> Envoy:
    return Envoy(workers)


async def test_what_is_under_way_is_served_before_workers_refuse(workers: Workers, envoy: Envoy) -> None:
    envoy.looks = [(2, 5), (1, 5), (0, 5)]

    assert await Drain(workers, envoy, 10).run()

    assert workers.events == [
        *("envoy drains", "2 active of 5", "1 active of 5", "0 active of 5"),
        *("workers drain", "0 active of 5"),
    ]


async def test_as_long_as_new_requests_come_they_are_served(
    workers: Workers, envoy: Envoy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain_module, "_SETTLE", 0.01)
    envoy.looks = [(0, 1), (0, 2), (0, 3), (0, 3)]

    assert await Drain(workers, envoy, 10).run()

    assert workers.events.index("workers drain") > workers.events.index("0 active of 3") + 1


async def test_who_still_comes_when_the_time_is_nearly_over_is_refused_so_that_others_can_end(
    workers: Workers, envoy: Envoy
) -> None:
    envoy.looks = [(1, 1)]
    drain = asyncio.create_task(Drain(workers, envoy, 0.8).run())

    async def refused() -> bool:
        return "workers drain" in workers.events

    await until(refused, 10)
    assert not drain.done()
    envoy.looks = [(0, 9)]

    assert await drain


async def test_it_has_begun_as_soon_as_it_is_asked_for(workers: Workers, envoy: Envoy) -> None:
    drain = Drain(workers, envoy, 10)
    assert not drain.begun

    task = asyncio.create_task(drain.run())
    await asyncio.sleep(0)

    assert drain.begun
    assert await task


async def test_draining_twice_is_draining_once(workers: Workers, envoy: Envoy) -> None:
    drain = Drain(workers, envoy, 10)

    assert all(await asyncio.gather(drain.run(), drain.run()))
    assert await drain.run()

    assert workers.events.count("envoy drains") == workers.events.count("workers drain") == 1


async def test_draining_goes_on_when_the_one_who_asked_leaves(workers: Workers, envoy: Envoy) -> None:
    envoy.looks = [(1, 1)]
    drain = Drain(workers, envoy, 10)
    asked = asyncio.create_task(drain.run())

    async def under_way() -> bool:
        return bool(workers.events)

    await until(under_way, 10)
    asked.cancel()
    await asyncio.wait({asked})
    envoy.looks = [(0, 1)]

    assert await drain.run()


async def test_it_ends_when_its_time_is_over(workers: Workers, envoy: Envoy, caplog: pytest.LogCaptureFixture) -> None:
    envoy.looks = [(1, 1)]

    with caplog.at_level(logging.INFO):
        assert not await Drain(workers, envoy, 0.1).run()

    assert "workers drain" in workers.events
    assert caplog.messages == [
        "draining, for at most 0.1 s",
        "the time to drain is over, and requests are still under way",
    ]


async def test_without_envoy_the_workers_drain_at_once(workers: Workers, envoy: Envoy) -> None:
    envoy.away = True

    assert not await Drain(workers, envoy, 10).run()

    assert workers.events == ["workers drain"]
