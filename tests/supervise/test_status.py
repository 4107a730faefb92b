import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from zurelay import http1
from zurelay.supervise import status as status_module
from zurelay.supervise.admin import AdminError
from zurelay.supervise.polling import until
from zurelay.supervise.status import Status
from zurelay.tally import Totals


class World:
    """Workers, rollout and Envoy in one; what is done to them is kept in order."""

    def __init__(self) -> None:
        self.size = 2
        self.restarts = 3
        self.serving = 2
        self.generation = 4
        self.wrong: list[str] = []
        self.away = False
        self.active = ["0"]
        self.events: list[str] = []

    async def totals(self) -> Totals:
        return {("zurelay.requests", (model, "answered")): (count,) for model, count in (("m", 5.0), ("a", 1.0))}

    async def disagreements(self) -> list[str]:
        return self.wrong

    async def metrics(self) -> str:
        self.check()
        return "envoy_x 1\n"

    async def stats(self, pattern: str) -> dict[str, str]:
        self.check()
        active = self.active.pop(0) if len(self.active) > 1 else self.active[0]
        self.events.append(f"{active} active")
        assert pattern == r"^http\.ingress\.downstream_rq_active$"
        return {"http.ingress.downstream_rq_active": active}

    def check(self) -> None:
        if self.away:
            raise AdminError("away")


class Workers(World):
    async def drain(self) -> None:
        self.events.append("workers drain")


class Envoy(World):
    def __init__(self, world: World) -> None:
        self.__dict__ = world.__dict__

    async def drain(self) -> None:
        self.check()
        self.events.append("envoy drains")


@pytest.fixture(name="world")
def _world(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(status_module, "_SETTLE", 0.01)
    return Workers()


def made(world: Workers, drain_seconds: float = 10.0) -> Status:
    return Status(world, world, Envoy(world), {"applied": 2, "refused": 1}, drain_seconds)


@pytest.fixture(name="client")
async def _client(world: Workers, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    server = http1.Server(made(world).handle)
    path = str(tmp_path / "status.sock")
    await server.listen_unix(path)
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path), base_url="http://status") as client:
        yield client
    await server.stop()


async def test_it_is_ready_when_workers_serve_and_envoy_agrees(client: httpx.AsyncClient) -> None:
    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"ready": True, "problems": []})


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"serving": 0}, "none of 2 workers serves yet"),
        ({"wrong": ["Envoy hasn't taken clusters.json"]}, "Envoy hasn't taken clusters.json"),
    ],
)
async def test_it_says_why_it_is_not_ready(
    client: httpx.AsyncClient, world: Workers, facts: dict[str, object], problem: str
) -> None:
    for name, value in facts.items():
        setattr(world, name, value)

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()) == (503, {"ready": False, "problems": [problem]})


async def test_one_serving_worker_is_enough(client: httpx.AsyncClient, world: Workers) -> None:
    world.serving = 1

    assert (await client.get("/readyz")).status_code == 200


METRICS = """\
# HELP zurelay_requests_total Requests that had a plan, by the model that answered and how they ended.
# TYPE zurelay_requests_total counter
zurelay_requests_total{model="a",outcome="answered"} 1
zurelay_requests_total{model="m",outcome="answered"} 5
# HELP zurelay_workers Worker processes wanted.
# TYPE zurelay_workers gauge
zurelay_workers 2
# HELP zurelay_workers_alive Workers that serve.
# TYPE zurelay_workers_alive gauge
zurelay_workers_alive 2
# HELP zurelay_worker_restarts_total Workers that were replaced.
# TYPE zurelay_worker_restarts_total counter
zurelay_worker_restarts_total 3
# HELP zurelay_config_generation Configurations put in force.
# TYPE zurelay_config_generation gauge
zurelay_config_generation 4
# HELP zurelay_config_reloads_total Changes of the configuration, by what became of them.
# TYPE zurelay_config_reloads_total counter
zurelay_config_reloads_total{result="applied"} 2
zurelay_config_reloads_total{result="refused"} 1
"""


async def test_metrics_are_ours_and_envoys(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text == METRICS + "envoy_x 1\n"


async def test_metrics_are_ours_alone_while_envoy_is_away(client: httpx.AsyncClient, world: Workers) -> None:
    world.away = True

    assert (await client.get("/metrics")).text == METRICS


async def test_envoys_metrics_can_be_had_alone(client: httpx.AsyncClient, world: Workers) -> None:
    assert (await client.get("/stats/prometheus")).text == "envoy_x 1\n"

    world.away = True

    assert (await client.get("/stats/prometheus")).text == ""


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 404, None),
        ("GET", "/readyz/", 404, None),
        ("HEAD", "/readyz", 200, None),
        ("POST", "/readyz", 405, "GET, HEAD"),
        ("HEAD", "/drain", 405, "GET, POST"),
        ("DELETE", "/drain", 405, "GET, POST"),
    ],
)
async def test_other_paths_and_methods_do_nothing(
    client: httpx.AsyncClient, world: Workers, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.headers.get("allow")) == (status, allow)
    assert world.events == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_draining_serves_what_is_under_way_before_workers_refuse(
    client: httpx.AsyncClient, world: Workers, method: str
) -> None:
    world.active = ["2", "1", "0"]

    answer = await client.request(method, "/drain")

    assert (answer.status_code, answer.json()) == (200, {"drained": True})
    assert world.events == ["envoy drains", "2 active", "1 active", "0 active", "workers drain", "0 active"]


async def test_readiness_fails_as_soon_as_draining_begins(world: Workers) -> None:
    world.active = ["1"]
    status = made(world)
    drain = asyncio.create_task(status.drain())
    await asyncio.sleep(0)

    assert await status.problems() == ["draining"]

    world.active = ["0"]
    assert await drain


async def test_draining_twice_is_draining_once(world: Workers) -> None:
    status = made(world)

    assert all(await asyncio.gather(status.drain(), status.drain()))

    assert world.events.count("envoy drains") == 1


async def test_draining_goes_on_when_the_one_who_asked_leaves(world: Workers) -> None:
    world.active = ["1"]
    status = made(world)
    asked = asyncio.create_task(status.drain())

    async def under_way() -> bool:
        return bool(world.events)

    await until(under_way, 10)
    asked.cancel()
    await asyncio.wait({asked})

    world.active = ["0"]

    assert await status.drain()


async def test_draining_ends_when_its_time_is_over(world: Workers) -> None:
    world.active = ["1"]

    assert not await made(world, drain_seconds=0.1).drain()

    assert world.events[-1] == "workers drain"


async def test_without_envoy_the_workers_drain_at_once(world: Workers) -> None:
    world.away = True

    assert not await made(world).drain()

    assert world.events == ["workers drain"]
