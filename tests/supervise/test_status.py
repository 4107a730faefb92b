from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from zurelay import http1
from zurelay.supervise.admin import AdminError
from zurelay.supervise.status import Status
from zurelay.tally import Totals


class World:
    """Workers, rollout, Envoy and drain in one; what is done to them is kept in order."""

    def __init__(self) -> None:
        self.size = 2
        self.restarts = 3
        self.serving = 2
        self.generation = 4
        self.wrong: list[str] = []
        self.unlike: list[str] = []
        self.away = False
        self.begun = False
        self.events: list[str] = []

    async def totals(self) -> Totals:
        return {("zurelay.requests", (model, "answered")): (count,) for model, count in (("m", 5.0), ("a", 1.0))}

    async def disagreements(self) -> list[str]:
        return self.wrong

    async def metrics(self) -> str:
        if self.away:
            raise AdminError("away")
        return "envoy_x 1\n"

    async def run(self) -> bool:
        self.events.append("drained")
        return True


class Contract:
    """The contract with Envoy, in which this is wrong."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def problems(self) -> list[str]:
        return self._world.unlike


@pytest.fixture(name="world")
def _world() -> World:
    return World()


@pytest.fixture(name="client")
async def _client(world: World, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    server = http1.Server(Status(world, world, Contract(world), world, world, {"applied": 2, "refused": 1}).handle)
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
        ({"unlike": ["Envoy is 1.39.0"]}, "Envoy is 1.39.0"),
        ({"wrong": ["Envoy is away"], "unlike": ["and can't be asked"]}, "Envoy is away"),
    ],
)
async def test_it_says_why_it_is_not_ready(
    client: httpx.AsyncClient, world: World, facts: dict[str, object], problem: str
) -> None:
    for name, value in facts.items():
        setattr(world, name, value)

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()) == (503, {"ready": False, "problems": [problem]})


async def test_one_serving_worker_is_enough(client: httpx.AsyncClient, world: World) -> None:
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


async def test_metrics_are_ours_alone_while_envoy_is_away(client: httpx.AsyncClient, world: World) -> None:
    world.away = True

    assert (await client.get("/metrics")).text == METRICS


async def test_envoys_metrics_can_be_had_alone(client: httpx.AsyncClient, world: World) -> None:
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
    client: httpx.AsyncClient, world: World, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.headers.get("allow")) == (status, allow)
    assert world.events == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_drain_is_answered_when_it_is_over(client: httpx.AsyncClient, world: World, method: str) -> None:
    answer = await client.request(method, "/drain")

    assert (answer.status_code, answer.json()) == (200, {"drained": True})
    assert world.events == ["drained"]


async def test_readiness_fails_as_soon_as_draining_begins(client: httpx.AsyncClient, world: World) -> None:
    world.begun = True

    assert (await client.get("/readyz")).json() == {"ready": False, "problems": ["draining"]}
    assert (await client.get("/livez")).json() == {"live": True}
