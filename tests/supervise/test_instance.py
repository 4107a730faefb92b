from pathlib import Path

import pytest

from supervise.making import loaded
from zurelay.supervise import machine
from zurelay.supervise.instance import Instance, Shape
from zurelay.supervise.rundir import RunDirectory


@pytest.fixture(name="shape")
def _shape(tmp_path: Path) -> Shape:
    return Shape(home=tmp_path, authorities="/ca.pem", drain_seconds=1.0, open_files=20_000, heap=1 << 30)


def made(tmp_path: Path, shape: Shape, extra: str = "") -> Instance:
    config = loaded(tmp_path, key="A_KEY", extra=extra)
    instance = Instance(RunDirectory(tmp_path), config, shape, None, lambda: config)
    instance.rollout._loaded = config
    return instance


@pytest.mark.parametrize(
    ("extra", "cores", "workers"),
    [("", 1, 1), ("", 2, 1), ("", 8, 4), ("workers: auto\n", 4, 2), ("workers: 3\n", 1, 3)],
)
def test_there_is_a_worker_for_two_cores_unless_the_file_says_otherwise(
    tmp_path: Path, shape: Shape, monkeypatch: pytest.MonkeyPatch, extra: str, cores: int, workers: int
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)

    instance = made(tmp_path, shape, extra)

    assert (instance.workers, len(instance.runtime.worker_sockets), instance.fleet.size) == (workers,) * 3


def test_envoy_takes_no_more_clients_than_files_may_be_open(tmp_path: Path, shape: Shape) -> None:
    assert made(tmp_path, shape).runtime.connections == 5_000


def test_envoys_heap_is_as_large_as_it_is_told(tmp_path: Path, shape: Shape) -> None:
    assert made(tmp_path, shape).runtime.heap == 1 << 30


def test_prepared_files_are_those_that_it_would_start_with(tmp_path: Path, shape: Shape) -> None:
    names = ("bootstrap.json", "clusters.json", "listeners.json")
    made(tmp_path, shape).prepare()
    prepared = [(tmp_path / name).read_text() for name in names]

    instance = made(tmp_path, shape)
    instance.prepare()

    assert prepared == [(tmp_path / name).read_text() for name in names]
    assert instance.fleet.pids == ()


def test_a_worker_gets_no_provider_key_and_the_token_by_its_environment(
    tmp_path: Path, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    monkeypatch.setenv("OTHER", "kept")
    instance, another = made(tmp_path, shape), made(tmp_path, shape)

    command, environ, home = instance._launch(0)

    assert "A_KEY" not in environ
    assert environ["OTHER"] == "kept"
    assert environ["MALLOC_MMAP_THRESHOLD_"] == str(1 << 20)
    token = environ["ZURELAY_EGRESS_TOKEN"]
    assert len(token) >= 32
    assert token not in " ".join(command)
    assert token != another._launch(0)[1]["ZURELAY_EGRESS_TOKEN"]
    assert command[-5:-2] == ["worker", f"{tmp_path}/worker-0.sock", f"{tmp_path}/egress.sock"]
    assert command[-2:] == [str(instance.workers), f"{tmp_path}/ends"]
    assert home == str(tmp_path)


def test_a_socket_that_was_left_behind_goes(tmp_path: Path, shape: Shape) -> None:
    (tmp_path / "worker-0.sock").touch()

    made(tmp_path, shape)._launch(0)

    assert not (tmp_path / "worker-0.sock").exists()
