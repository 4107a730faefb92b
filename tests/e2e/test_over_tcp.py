"""A worker that serves HOST:PORT, by grpcio, to an Envoy that shares no socket with it (docs/decisions/0008)."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import yaml

from e2e.conftest import catalog
from e2e.harness import ZURELAY, Provider, ask, free_port, simulate, until
from envoy_testbed import AUTHORITIES, binary
from zurelay import envoy, settings


class Worker:
    """One worker process, told what the supervisor would tell it."""

    def __init__(self, address: str, egress: str, ends: str, config: str) -> None:
        self.process = subprocess.Popen(
            [*ZURELAY, "worker", address, egress, "1", ends],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "ZURELAY_EGRESS_TOKEN": "token-of-this-test"},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode({"op": "configure", "config": config}) + b"\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline()) == {
            "op": "configured",
            "problem": None,
            "samples": [],
            "open": 0,
        }

    def stop(self) -> int:
        """Hang up, as a supervisor that ends; its exit status."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()
            return self.process.wait(10)


def over_tcp(bootstrap: str, port: int) -> str:
    """Lead Envoy's cluster of workers to a port."""
    config = json.loads(bootstrap)
    (cluster,) = (one for one in config["static_resources"]["clusters"] if one["name"] == "sidecar")
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoint["endpoint"]["address"] = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return json.dumps(config)


@pytest.fixture(scope="module")
def url(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("tcp")
    port, status_port, grpc_port = free_port(), free_port(), free_port()
    config: dict[str, Any] = {
        "listen": {"port": port},
        "status": {"port": status_port},
        "auth": {"require": "none"},
        "store": {"sqlite": str(directory / "zurelay.db")},
        **catalog(provider.port),
    }
    text = yaml.safe_dump(config, sort_keys=False)
    read = settings.parse(text, environ={}, readable=lambda _: True)
    runtime = envoy.Runtime(
        directory=str(directory),
        worker_sockets=(str(directory / "nobody.sock"),),
        status_socket=str(directory / "status.sock"),
        ca_bundle=AUTHORITIES,
    )
    (directory / envoy.BOOTSTRAP_FILE).write_text(over_tcp(envoy.bootstrap(runtime), grpc_port))
    (directory / envoy.CLUSTERS_FILE).write_text(envoy.clusters(read, runtime))
    (directory / envoy.LISTENERS_FILE).write_text(envoy.listeners(read, runtime))
    worker = Worker(f"127.0.0.1:{grpc_port}", runtime.path(envoy.EGRESS_SOCKET), runtime.path("ends"), text)
    log = (directory / "envoy.log").open("wb")
    running = subprocess.Popen(envoy.command(binary(), runtime, 600), stdout=log, stderr=log)
    until(lambda: answers(f"http://127.0.0.1:{status_port}/healthz"))
    yield f"http://127.0.0.1:{port}/v1/chat/completions"
    assert running.poll() is None, pathlib.Path(log.name).read_text()
    running.terminate()
    running.wait(10)
    log.close()
    assert worker.stop() == 0


def answers(place: str) -> bool:
    try:
        return httpx.get(place).status_code == 200
    except httpx.TransportError:
        return False


def test_answers_come_whole_after_a_fallback(url: str) -> None:
    answer = httpx.post(url, json=ask("trio", **simulate(m1="status:500")), timeout=30)
    assert (200, "3") == (answer.status_code, answer.headers["x-zurelay-attempts"])
    assert answer.json()["model"] == "trio"


def test_streams_are_relayed_after_a_fallback(url: str) -> None:
    answer = httpx.post(url, json=ask("trio", stream=True, **simulate(m1="status:500")), timeout=30)
    assert (200, "3") == (answer.status_code, answer.headers["x-zurelay-attempts"])
    assert answer.text.endswith("data: [DONE]\n\n")


def test_a_large_body_passes(url: str) -> None:
    answer = httpx.post(url, json=ask("spare", "x" * (3 << 20)), timeout=30)
    assert answer.status_code == 200
