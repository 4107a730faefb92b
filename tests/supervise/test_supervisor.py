import os
import signal
import socket
from pathlib import Path

import httpx
import pytest

from e2e.harness import free_port, until
from supervise.lives import HELLO, Config, Start, gone, is_there


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
