import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervise.making import loaded
from zurelay import envoy
from zurelay.supervise import machine
from zurelay.supervise import rollout as rollout_module
from zurelay.supervise.admin import AdminError, EnvoyAwayError
from zurelay.supervise.fleet import NotConfiguredError
from zurelay.supervise.loading import Loaded
from zurelay.supervise.machine import PortTakenError
from zurelay.supervise.polling import until
from zurelay.supervise.rollout import NotYetError, RefusedError, Rollout
from zurelay.supervise.rundir import RunDirectory


class World:
    """Envoy and the workers, as the rollout sees them; what happens is kept in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[str] = []
        self.warming = 0
        self.away = False
        self.busy = 0
        self.rejects: Callable[[str], bool] = lambda _: False
        self.ignores: Callable[[str], bool] = lambda _: False
        self.can_configure = True
        self.rejected = {"cluster_manager.cds": 0, "listener_manager.lds": 0}
        self.taken = {"cluster_manager.cds": "", "listener_manager.lds": ""}
        self.seen = dict(self.taken)

    # Envoy's admin interface

    async def stats(self, pattern: str) -> dict[str, str]:
        assert pattern
        if self.away:
            raise EnvoyAwayError("away")
        if self.busy:
            self.busy -= 1
            raise AdminError("busy")
        for stat, name in (("cluster_manager.cds", "clusters.json"), ("listener_manager.lds", "listeners.json")):
            text = (self.path / name).read_text()
            version = json.loads(text)["version_info"]
            if version == self.seen[stat] or self.ignores(text):
                continue
            self.seen[stat] = version
            if self.rejects(text):
                self.rejected[stat] += 1
                self.events.append(f"{name} rejected")
            else:
                self.taken[stat] = version
                self.events.append(f"{name}: {' '.join(self.clusters()) if 'clusters' in name else 'changed'}")
        found = {f"{stat}.version_text": version for stat, version in self.taken.items()}
        found |= {f"{stat}.update_rejected": str(count) for stat, count in self.rejected.items()}
        return {**found, "cluster_manager.warming_clusters": str(self.warming)}

    # The fleet

    def start(self, config: str, _keys: str) -> None:
        self.events.append(f"workers: {models(config)}")

    async def configure(self, config: str, _keys: str) -> None:
        if not self.can_configure:
            raise NotConfiguredError("worker 0: it won't")
        self.events.append(f"workers: {models(config)}")

    # What is looked at

    def clusters(self) -> list[str]:
        found = json.loads((self.path / "clusters.json").read_text())["resources"]
        return sorted({cluster["name"].partition("/")[0] for cluster in found if "/" in cluster["name"]})

    def secrets(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("secret.*"))


def models(config: str) -> str:
    return " ".join(sorted(line[2] for line in config.partition("models:")[2].splitlines() if line.startswith("  ")))


@pytest.fixture(name="world")
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(rollout_module, "_TAKE", 0.3)
    monkeypatch.setattr(rollout_module, "_WARM", 0.3)
    monkeypatch.setattr(machine, "check_free", lambda *_: None)
    (tmp_path / "run").mkdir()
    return World(tmp_path / "run")


@pytest.fixture(name="rollout")
def _rollout(world: World) -> Rollout:
    runtime = envoy.Runtime(
        directory=str(world.path),
        worker_sockets=(f"{world.path}/worker-0.sock",),
        status_socket=f"{world.path}/status.sock",
        ca_bundle="/etc/ssl/ca.pem",
    )
    fake: Any = world
    return Rollout(RunDirectory(world.path), runtime, fake, fake)


async def so(met: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return met()

    await until(ask, 10)


async def begin(rollout: Rollout, world: World, config: Loaded) -> None:
    rollout.begin(config)
    await world.stats("all")
    world.events.clear()


async def test_all_files_are_there_before_envoy_starts(rollout: Rollout, world: World, tmp_path: Path) -> None:
    rollout.begin(loaded(tmp_path, key="A_KEY"))

    names = sorted(path.name for path in world.path.iterdir())
    assert names == ["bootstrap.json", "clusters.json", "listeners.json", *world.secrets()]
    assert len(world.secrets()) == 1
    assert world.events == ["workers: m"]
    assert rollout.generation == 1


async def test_new_clusters_are_there_before_the_workers_name_them(
    rollout: Rollout, world: World, tmp_path: Path
) -> None:
    await begin(rollout, world, loaded(tmp_path, "ab"))

    await rollout.change(loaded(tmp_path, "bc"))

    assert world.events == ["clusters.json: a b c", "workers: b c"]
    assert rollout.generation == 2


async def test_old_clusters_go_when_no_request_can_follow_them_any_more(
    rollout: Rollout, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_module, "_MARGIN", 0.0)
    short = "timeouts: {total: 300ms, first_token: 100ms, first_token_high: 100ms, whole: 100ms, whole_high: 100ms}\n"
    await begin(rollout, world, loaded(tmp_path, "ab", key="A_KEY", extra=short))

    await rollout.change(loaded(tmp_path, "b", extra=short))
    assert (world.clusters(), len(world.secrets())) == (["a", "b"], 2)

    await so(lambda: world.clusters() == ["b"])
    await so(lambda: world.secrets() == [])
    await rollout.stop()


async def test_an_old_catalog_keeps_its_time_however_short_the_new_one_is(
    rollout: Rollout, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_module, "_MARGIN", 0.0)
    await begin(rollout, world, loaded(tmp_path, "ab"))

    await rollout.change(loaded(tmp_path, "b", extra="timeouts: {total: 10ms}\n"))
    await asyncio.sleep(0.1)

    assert world.clusters() == ["a", "b"]
    await rollout.stop()


async def test_a_model_that_comes_back_stays(
    rollout: Rollout, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_module, "_MARGIN", 0.2)
    short = "timeouts: {total: 1ms}\n"
    await begin(rollout, world, loaded(tmp_path, "ab", extra=short))
    await rollout.change(loaded(tmp_path, "b", extra=short))
    await rollout.change(loaded(tmp_path, "abc", extra=short))
    await rollout.change(loaded(tmp_path, "ab", extra=short))

    await so(lambda: world.clusters() == ["a", "b"])

    assert world.events[-1] == "workers: a b"
    await rollout.stop()


async def test_workers_wait_for_the_addresses_of_new_providers(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.warming = 3

    change = asyncio.create_task(rollout.change(loaded(tmp_path, "ab")))
    await so(lambda: "clusters.json: a b" in world.events)
    assert "workers: a b" not in world.events
    world.warming = 0
    await change

    assert world.events[-1] == "workers: a b"


async def test_a_provider_without_an_address_is_tried_again_and_holds_up_no_other_change(
    rollout: Rollout, world: World, tmp_path: Path
) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.warming = 3
    with pytest.raises(NotYetError, match=r"no address for a new provider within 0\.3 s"):
        await rollout.change(loaded(tmp_path, "ab"))
    assert world.clusters() == ["a", "b"]
    assert await rollout.disagreements() == []

    world.warming = 0
    await rollout.change(loaded(tmp_path, "ac"))

    assert world.clusters() == ["a", "c"]
    assert world.events[-1] == "workers: a c"


async def test_what_envoy_rejects_is_taken_back(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a", key="A_KEY"))
    before = {path.name: path.read_text() for path in world.path.iterdir()}
    world.rejects = lambda text: '"b/' in text

    with pytest.raises(RefusedError, match="Envoy refuses the configuration"):
        await rollout.change(loaded(tmp_path, "ab", key="B_KEY"))

    assert {name: (world.path / name).read_text() for name in before} == before
    assert not [event for event in world.events if event.startswith("workers")]
    assert (rollout.generation, rollout.loaded.text) == (1, rollout.loaded.text)
    assert list(rollout.loaded.settings.models) == ["a"]


async def test_what_envoy_does_not_take_in_time_is_taken_back(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.ignores = lambda text: '"b/' in text

    with pytest.raises(RefusedError, match=r"hasn't taken clusters\.json within 0\.3 s"):
        await rollout.change(loaded(tmp_path, "ab"))

    assert world.clusters() == ["a"]


async def test_what_the_workers_can_not_take_is_taken_back(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.can_configure = False

    with pytest.raises(RefusedError, match="worker 0: it won't"):
        await rollout.change(loaded(tmp_path, "ab", port=9000))

    assert world.clusters() == ["a"]
    assert '"port_value": 9000' not in (world.path / "listeners.json").read_text()
    assert await rollout.disagreements() == []


async def test_listeners_are_left_alone_when_only_the_catalog_changes(
    rollout: Rollout, world: World, tmp_path: Path
) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    before = (world.path / "listeners.json").stat().st_ino

    await rollout.change(loaded(tmp_path, "ab"))

    assert (world.path / "listeners.json").stat().st_ino == before


async def test_another_port_changes_the_listeners_alone(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))

    await rollout.change(loaded(tmp_path, "a", port=9000))

    assert world.events == ["listeners.json: changed", "workers: a"]


async def test_a_taken_port_is_refused_before_anything_is_written(
    rollout: Rollout, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))

    def taken(listen: Any, setting: str) -> None:
        raise PortTakenError(f"{setting}: port {listen.port} is taken")

    monkeypatch.setattr(machine, "check_free", taken)

    with pytest.raises(RefusedError, match="listen: port 9000 is taken"):
        await rollout.change(loaded(tmp_path, "ab", port=9000))

    assert world.events == []


async def test_the_workers_go_on_without_an_envoy_that_can_be_asked(
    rollout: Rollout, world: World, tmp_path: Path
) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.away = True

    await rollout.change(loaded(tmp_path, "ab"))

    assert world.clusters() == ["a", "b"]
    assert world.events == ["workers: a b"]
    assert await rollout.disagreements() == ["away"]
    assert not await rollout.rejected()


async def test_an_envoy_that_is_busy_with_the_clusters_is_waited_for(
    rollout: Rollout, world: World, tmp_path: Path
) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.warming = 1

    change = asyncio.create_task(rollout.change(loaded(tmp_path, "ab")))
    await so(lambda: world.events == ["clusters.json: a b"])
    world.busy = 2
    await so(lambda: world.busy == 0)
    world.warming = 0
    await change

    assert world.events == ["clusters.json: a b", "workers: a b"]


async def test_an_envoy_that_can_not_answer_gets_no_change(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.busy = 1

    with pytest.raises(RefusedError, match="busy"):
        await rollout.change(loaded(tmp_path, "ab"))

    assert (world.events, world.clusters()) == ([], ["a"])


async def test_envoy_agrees_when_it_has_taken_both_files(rollout: Rollout, world: World, tmp_path: Path) -> None:
    rollout.begin(loaded(tmp_path, "a"))
    world.ignores = lambda text: '"a/' in text

    assert await rollout.disagreements() == ["Envoy hasn't taken clusters.json as it was written; its log may say why"]

    world.ignores = lambda _: False
    assert await rollout.disagreements() == []


async def test_envoy_agrees_while_a_change_is_on_its_way(rollout: Rollout, world: World, tmp_path: Path) -> None:
    await begin(rollout, world, loaded(tmp_path, "a"))
    world.ignores = lambda text: '"b/' in text
    change = asyncio.create_task(rollout.change(loaded(tmp_path, "ab")))
    await so(lambda: world.clusters() == ["a", "b"])

    assert await rollout.disagreements() == []

    world.ignores = lambda _: False
    await change


async def test_a_rejected_start_is_seen(rollout: Rollout, world: World, tmp_path: Path) -> None:
    rollout.begin(loaded(tmp_path, "a"))
    world.rejects = lambda _: True

    assert await rollout.rejected()
