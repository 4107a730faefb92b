"""The contract with a real Envoy: what it tells of itself is what we wrote, and what was written otherwise is named."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from envoy_testbed import Change, Testbed, key, provider, settings
from supervise.making import loaded
from zurelay import contract, envoy
from zurelay.cli import main
from zurelay.model import Format, Identity, IdentityMode, Settings
from zurelay.supervise import agreement
from zurelay.supervise.admin import Admin, AdminError
from zurelay.supervise.agreement import Agreement

FLAG = "envoy.reloadable_features.grpc_side_stream_flow_control"


def given() -> Settings:
    return settings(
        provider("p", "http://127.0.0.1:9/v1", api_key=key("p"), headers={"x-team": "50%"}),
        provider("q", "https://127.0.0.1:9/v1", format=Format.ANTHROPIC, api_key=key("q")),
        identity=Identity(mode=IdentityMode.FORWARDED, trusted=("10.0.0.0/8",)),
    )


def compared(bed: Testbed) -> list[str]:
    admin = Admin(bed.runtime.path(envoy.ADMIN_SOCKET))
    return asyncio.run(agreement.compare(given(), bed.runtime, admin))


def test_envoy_tells_back_what_we_wrote(tmp_path: Path) -> None:
    with Testbed(tmp_path, given()) as bed:
        assert compared(bed) == []


def no_flag(name: str, config: Any) -> None:
    if name == envoy.BOOTSTRAP_FILE:
        del config["layered_runtime"]


def other_sockets(name: str, config: Any) -> None:
    if name == envoy.BOOTSTRAP_FILE:
        (place,) = config["static_resources"]["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"]
        place["endpoint"]["address"]["pipe"]["path"] = "/elsewhere/worker-7.sock"


def of_listener(number: int, change: Callable[[Any], Any]) -> Change:
    def changed(name: str, config: Any) -> None:
        if name == envoy.LISTENERS_FILE:
            change(config["resources"][number]["filter_chains"][0]["filters"][0]["typed_config"])

    return changed


def of_streams(name: str, config: Any) -> None:
    if name == envoy.CLUSTERS_FILE:
        (found,) = (each for each in config["resources"] if each["name"] == "p.stream")
        found["circuit_breakers"]["thresholds"][0]["max_retries"] = 3
        (options,) = found["typed_extension_protocol_options"].values()
        options["http_filters"][0]["typed_config"]["processing_mode"]["response_body_mode"] = "BUFFERED"


def no_q(name: str, config: Any) -> None:
    if name == envoy.CLUSTERS_FILE:
        config["resources"] = [each for each in config["resources"] if each["name"] != "q.whole"]


def first_route(manager: Any) -> Any:
    return manager["route_config"]["virtual_hosts"][0]["routes"][0]


WRONG: dict[str, tuple[Change, list[str]]] = {
    "the runtime flag": (no_flag, [f"runtime: {FLAG} is unset, must be false"]),
    "the workers' sockets": (other_sockets, ["cluster sidecar: load_assignment.endpoints.0.lb_endpoints lacks "]),
    "a timeout": (
        of_listener(0, lambda manager: manager.update(stream_idle_timeout="300s")),
        ["listener ingress: stream_idle_timeout is 300s, must be at least 600s"],
    ),
    "a body mode": (
        of_listener(1, lambda m: m["http_filters"][0]["typed_config"]["processing_mode"].update(request_body_mode=2)),
        ["listener egress, ext_proc: processing_mode.request_body_mode is BUFFERED, must be unset"],
    ),
    "a buffer": (
        of_listener(0, lambda manager: first_route(manager).update(request_body_buffer_limit=4096)),
        ["listener ingress, route: request_body_buffer_limit is 4096, must be at least 68157440"],
    ),
    "a namespace": (
        of_listener(
            0,
            lambda m: m["http_filters"][0]["typed_config"]["metadata_options"].update(
                receiving_namespaces={"untyped": ["zurelay"]}
            ),
        ),
        ["listener ingress, ext_proc: metadata_options.receiving_namespaces.typed lacks zurelay"],
    ),
    "an attempt": (
        of_streams,
        [
            "cluster p.stream: circuit_breakers.thresholds.0.max_retries is 3, must be at least 1000000",
            "cluster p.stream, ext_proc: processing_mode.response_body_mode is BUFFERED, must be STREAMED",
        ],
    ),
    "a cluster": (no_q, ["cluster q.whole: not there; a plan that names it ends"]),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_what_was_written_otherwise_is_named(change: Change, said: list[str], tmp_path: Path) -> None:
    with Testbed(tmp_path, given(), change) as bed:
        found = compared(bed)

    assert len(found) == len(said), found
    for problem, start in zip(found, said, strict=True):
        assert problem.startswith(start)


CONFIG = """\
providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}
models: {m: {context_window: 1000, routes: [{provider: p, model: m}]}}
auth: {require: none}
"""


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    file = tmp_path / "zurelay.yaml"
    file.write_text(CONFIG)
    return file


@pytest.fixture(scope="module", name="bed")
def _bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    with Testbed(tmp_path_factory.mktemp("bed"), given()) as bed:
        yield bed


def test_the_command_compares_an_envoy_of_someone_elses(bed: Testbed, file: Path) -> None:
    url = f"unix:{bed.runtime.path(envoy.ADMIN_SOCKET)}"

    done = CliRunner().invoke(main, ["check", str(file), "--envoy", url])
    as_json = CliRunner().invoke(main, ["check", str(file), "--envoy", url, "--json"])

    assert done.exit_code == as_json.exit_code == 1
    missing = "cluster m/p.first: not there; a plan that names it ends"
    assert f"{url}: {missing}" in done.stderr.splitlines()
    told = json.loads(as_json.stdout)
    assert told["ok"] is False
    assert {"file": url, "line": 0, "path": "", "message": missing} in told["problems"]


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("http://127.0.0.1:9", 1, "http://127.0.0.1:9: Envoy's admin interface http://127.0.0.1:9: "),
        ("unix:/nowhere.sock", 1, "unix:/nowhere.sock: Envoy's admin socket /nowhere.sock: "),
        ("unix:", 2, "'unix:' is neither http://HOST:PORT nor unix:PATH"),
        ("https://localhost:1", 2, "is neither http://HOST:PORT nor unix:PATH"),
        ("http://localhost:x", 2, "is neither http://HOST:PORT nor unix:PATH"),
        ("http://localhost:1/stats", 2, "is neither http://HOST:PORT nor unix:PATH"),
    ],
)
def test_an_envoy_that_cannot_be_asked_is_told(file: Path, url: str, status: int, said: str) -> None:
    done = CliRunner().invoke(main, ["check", str(file), "--envoy", url])

    assert done.exit_code == status
    assert said in done.stderr


def test_something_else_that_answers_is_told(bed: Testbed, file: Path) -> None:
    url = f"http://127.0.0.1:{bed.status_port}"

    done = CliRunner().invoke(main, ["check", str(file), "--envoy", url])

    assert done.exit_code == 1
    assert "Envoy answers 404 to GET /server_info" in done.stderr


class World:
    """The rollout and Envoy in one."""

    def __init__(self, directory: Path) -> None:
        self.loaded = loaded(directory)
        self.generation = 1
        self.uptime = "5"
        self.asked = 0
        self.away = False
        self.told = asyncio.Event()
        self.told.set()
        self.answers = ['{"version": "a/1.39.0/b"}', '{"entries": {}}', '{"configs": []}']

    async def stats(self, pattern: str) -> dict[str, str]:
        assert pattern == r"^server\.uptime$"
        if self.away:
            raise AdminError("away")
        return {"server.uptime": self.uptime}

    async def about(self) -> list[str]:
        self.asked += 1
        await self.told.wait()
        return self.answers


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> World:
    return World(tmp_path)


def made(world: World) -> Agreement:
    runtime = envoy.Runtime(directory="/r", worker_sockets=("/r/w",), status_socket="/r/s", ca_bundle="/ca")
    fake: Any = world
    return Agreement(fake, runtime, fake)


async def test_a_difference_is_told_each_time_and_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        one = made(world)
        first, second = await one.problems(), await one.problems()

    assert first == second
    assert first[0].startswith("Envoy is 1.39.0, must be 1.40.x")
    assert world.asked == 2
    assert len(caplog.messages) == len(first)
    assert caplog.messages[0].startswith("Envoy isn't as the sidecar needs it: Envoy is 1.39.0")


async def test_what_was_good_is_looked_at_again_only_when_something_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "problems", lambda *_: [])
    one = made(world)

    assert [await one.problems(), await one.problems(), world.asked] == [[], [], 1]
    world.generation = 2
    assert [await one.problems(), await one.problems(), world.asked] == [[], [], 2]
    world.uptime = "1"  # another Envoy
    assert [await one.problems(), await one.problems(), world.asked] == [[], [], 3]


async def test_a_look_goes_on_when_the_one_who_asked_has_left(world: World) -> None:
    one = made(world)
    world.told.clear()
    impatient = asyncio.create_task(one.problems())
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait({impatient})
    world.told.set()

    assert (await one.problems())[0].startswith("Envoy is 1.39.0")
    assert world.asked == 1


async def test_an_envoy_that_is_away_or_babbles_is_no_agreement(world: World) -> None:
    world.answers[0] = "<html>"
    assert (await made(world).problems())[0].startswith("what answers isn't an Envoy's admin interface: ")
    world.away = True
    assert await made(world).problems() == ["away"]
