import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

import httpx
import pytest

from e2e.harness import Provider, free_port, until
from zurelay import envoy
from zurelay.supervise import machine, supervisor
from zurelay.supervise.supervisor import Options

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Zurelay:
    """A command in a process of its own, with all that it writes, and all the processes that it starts."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zurelay", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=lambda: self.out.extend(self.process.stdout or ()), daemon=True),
            threading.Thread(target=lambda: self.err.extend(self.process.stderr or ()), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def ready(self) -> Self:
        until(lambda: "ready" in "".join(self.out) or self.process.poll() is not None, 60)
        assert self.process.poll() is None, "".join(self.err)
        return self

    def children(self) -> list[int]:
        """Every process that it started, by their parent."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == self.process.pid:
                found.append(int(entry.name))
        return sorted(found)

    def child(self, word: str) -> int:
        """The first child whose command line has a word in it."""
        return next(pid for pid in self.children() if word in Path(f"/proc/{pid}/cmdline").read_text())

    def ended(self, seconds: float = 30.0) -> int:
        """Wait for its end; gives the exit status when all that it wrote is here."""
        status = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(10)
        return status

    def clear(self) -> None:
        """Leave nothing of it, whatever the test came to."""
        self.process.kill()
        self.ended()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Start(Protocol):
    def __call__(self, *arguments: str, env: dict[str, str] | None = None) -> Zurelay: ...


@pytest.fixture(name="start")
def _start() -> Iterator[Start]:
    started: list[Zurelay] = []

    def start(*arguments: str, env: dict[str, str] | None = None) -> Zurelay:
        started.append(Zurelay(*arguments, env=env))
        return started[-1]

    yield start
    for each in started:
        each.clear()


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: Sequence[int]) -> bool:
    until(lambda: not any(map(is_there, pids)), 10)
    return True


@pytest.fixture(scope="module", name="provider")
def _provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.stop()


class Config:
    """A configuration file whose ports are free."""

    def __init__(self, directory: Path, provider: Provider) -> None:
        self.port, self.status = free_port(), free_port()
        self.path = directory / "zurelay.yaml"
        self.path.write_text(
            f"listen: {{port: {self.port}}}\n"
            f"status: {{port: {self.status}}}\n"
            "workers: 2\n"
            f'providers: {{p: {{base_url: "http://127.0.0.1:{provider.port}/v1", format: openai}}}}\n'
            "models: {m: {context_window: 1000, routes: [{provider: p, model: m}]}}\n"
            "auth: {require: none}\n"
        )

    def ask(self) -> int:
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        return httpx.post(url, json=HELLO, timeout=10).status_code

    def status_of(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.status}{path}", timeout=20)


@pytest.fixture(name="config")
def _config(tmp_path: Path, provider: Provider) -> Config:
    return Config(tmp_path, provider)


@pytest.mark.parametrize(
    ("given", "ports"),
    [
        pytest.param({}, (8080, 8081), id="as the demo says"),
        pytest.param({"port": 9000}, (9000, 9001), id="the demo moves both"),
        pytest.param({"status_port": 9}, (8080, 9), id="one alone"),
        pytest.param({"port": 9000, "status_port": 9}, (9000, 9), id="each where it was told"),
    ],
)
def test_the_command_line_says_where_to_listen(given: dict[str, int], ports: tuple[int, int]) -> None:
    settings = supervisor._load(Options(**given), None).settings  # type: ignore[arg-type]  # ports alone are given

    assert (settings.listen.port, settings.status.port) == ports


def test_a_configurations_status_port_stays_when_its_other_port_is_moved(config: Config) -> None:
    settings = supervisor._load(Options(config=config.path, port=9000), None).settings

    assert (settings.listen.port, settings.status.port) == (9000, config.status)


def test_one_life_from_start_to_end(start: Start, config: Config, tmp_path: Path) -> None:
    """One start for many claims: starting is what costs here."""
    run = tmp_path / "run"
    zurelay = start("up", "--config", str(config.path), "--run-dir", str(run)).ready()
    children = zurelay.children()

    # It says where it is, and it is there.
    assert zurelay.out[0] == f"zurelay is ready on http://127.0.0.1:{config.port}\n"
    assert len(children) == 3
    assert config.ask() == 200
    assert config.status_of("/healthz").text == "ok\n"
    assert config.status_of("/readyz").json() == {"ready": True, "problems": []}
    metrics = config.status_of("/metrics").text
    assert "zurelay_workers_alive 2\n" in metrics
    assert 'zurelay_requests_total{model="m",outcome="answered"} 1\n' in metrics
    assert "envoy_http_downstream_rq_total" in metrics

    # Its directory is for itself.
    ports = ("--port", str(free_port()), "--status-port", str(free_port()))
    second = start("up", "--config", str(config.path), "--run-dir", str(run), *ports)
    assert second.ended() == 1
    assert "another zurelay runs here" in "".join(second.err)

    # A worker that dies is replaced.
    dead = zurelay.child("worker-1.sock")
    os.kill(dead, signal.SIGKILL)
    until(lambda: "zurelay_workers_alive 2\n" in config.status_of("/metrics").text and not is_there(dead))
    assert config.ask() == 200
    assert "zurelay_worker_restarts_total 1\n" in config.status_of("/metrics").text

    # Draining fails readiness, then refuses.
    assert config.status_of("/drain").json() == {"drained": True}
    assert config.status_of("/readyz").json() == {"ready": False, "problems": ["draining"]}
    assert config.ask() == 503

    # It ends all that it started, frozen or not.
    children = zurelay.children()
    os.kill(zurelay.child("worker-0.sock"), signal.SIGSTOP)
    zurelay.process.terminate()
    assert zurelay.ended() == 0
    assert gone(children)
    assert (run / "clusters.json").exists()


def test_the_demo_answers_and_nothing_outlives_a_killed_supervisor(start: Start, tmp_path: Path) -> None:
    port, status = free_port(), free_port()
    ports = ("--port", str(port), "--status-port", str(status))
    zurelay = start("up", *ports, "--run-dir", str(tmp_path / "run")).ready()
    children = zurelay.children()
    assert len(children) >= 3
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={**HELLO, "model": "gpt-6-sol"})
    assert answer.json()["model"] == "gpt-6-sol"
    assert httpx.get(f"http://127.0.0.1:{status}/readyz").status_code == 200

    os.kill(zurelay.child("worker-0.sock"), signal.SIGSTOP)  # a frozen one can't notice anything by itself
    zurelay.process.kill()

    assert gone(children)


def test_an_envoy_that_dies_ends_all_and_says_so(start: Start, config: Config) -> None:
    zurelay = start("up", "--config", str(config.path)).ready()
    children = zurelay.children()

    os.kill(zurelay.child("bootstrap.json"), signal.SIGKILL)

    assert zurelay.ended() == 1
    assert "zurelay  | envoy ended by SIGKILL, so nothing can go on." in "".join(zurelay.err)
    assert gone(children)


def test_a_second_signal_does_not_wait(start: Start, config: Config) -> None:
    zurelay = start("up", "--config", str(config.path)).ready()
    children = zurelay.children()
    os.kill(zurelay.child("worker-0.sock"), signal.SIGSTOP)  # it would be waited for

    zurelay.process.send_signal(signal.SIGINT)
    until(lambda: len(zurelay.children()) < len(children))
    zurelay.process.send_signal(signal.SIGINT)

    assert zurelay.ended() == 130
    assert gone(children)


@pytest.mark.parametrize("which", ["port", "status"])
def test_a_taken_port_is_named_and_nothing_is_left(start: Start, config: Config, which: str) -> None:
    port: int = getattr(config, which)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()

        zurelay = start("up", "--config", str(config.path))

        assert zurelay.ended() == 1
        assert zurelay.out == []
        assert f"port {port} of 127.0.0.1 can't be listened on: Address already in use." in "".join(zurelay.err)


def test_problems_of_the_configuration_are_all_told_and_nothing_starts(start: Start, config: Config) -> None:
    config.path.write_text(config.path.read_text().replace("openai", "opnai").replace("context_window", "window"))

    zurelay = start("up", "--config", str(config.path))

    assert zurelay.ended() == 1
    lines = [line for line in zurelay.err if "zurelay.yaml: line" in line]
    assert len(lines) == len(zurelay.err) == 3


@pytest.mark.parametrize(
    ("binary", "message"),
    [
        ("/nowhere/envoy", "/nowhere/envoy: no such program, or not executable"),
        ("false", "envoy ended with status 1, so nothing can go on."),
    ],
)
def test_an_envoy_that_does_not_run_is_told(start: Start, config: Config, binary: str, message: str) -> None:
    zurelay = start("up", "--config", str(config.path), env={"ZURELAY_ENVOY": binary})

    assert zurelay.ended() == 1
    assert message in "".join(zurelay.err)


def test_the_sidecar_serves_an_envoy_that_comes_later(start: Start, config: Config, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sidecar = start("sidecar", "--config", str(config.path), "--run-dir", str(run)).ready()
    assert sidecar.out == [f"zurelay's sidecar is ready in {run}\n"]
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(run / "status.sock"))) as client:
        problems = client.get("http://status/readyz").json()["problems"]
    assert [re.sub(": .*", "", problem) for problem in problems] == ["Envoy's admin socket " + str(run / "admin.sock")]

    binary = machine.envoy_binary(None, os.environ)
    runtime = envoy.Runtime(directory=str(run), worker_sockets=("/x",), status_socket="/y", ca_bundle="/z")
    with subprocess.Popen(envoy.command(binary, runtime, 600), stderr=subprocess.DEVNULL) as other:
        try:
            until(lambda: _status(config) == 200)
            assert config.ask() == 200
            config.path.write_text(config.path.read_text().replace("{m: {", "{m: {aliases: [n], "))
            until(lambda: sidecar.err[-1:] and "the change is in force" in sidecar.err[-1])
            assert sidecar.err[-1].startswith('{"time":')
        finally:
            other.terminate()
    children = sidecar.children()
    sidecar.process.terminate()

    assert sidecar.ended() == 0
    assert gone(children)


def _status(config: Config) -> int:
    try:
        return config.status_of("/readyz").status_code
    except httpx.TransportError:
        return 0
