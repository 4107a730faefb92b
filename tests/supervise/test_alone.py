"""`zurelay sidecar --listen` and an Envoy that knows it by `zurelay envoy-config` alone."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from e2e.harness import free_port, until
from supervise.lives import HELLO, Config, Start, Zurelay, gone
from zurelay.cli import main
from zurelay.supervise import machine
from zurelay.supervise.alone import written

TOKEN = {"ZURELAY_EGRESS_TOKEN": "0123456789abcdef0123456789abcdef"}


class Elsewhere:
    """An Envoy with its own configuration, and a sidecar of two workers on TCP."""

    def __init__(self, start: Start, config: Config, directory: Path) -> None:
        self.config = config
        self.grpc, self.egress, self.admin, self.port = (free_port() for _ in range(4))
        self._envoy = self._start_envoy(directory)
        listen = ("--listen", f"127.0.0.1:{self.grpc}", "--egress", f"127.0.0.1:{self.egress}")
        status = ("--status-listen", f"127.0.0.1:{self.port}", "--drain-seconds", "6")
        self.sidecar: Zurelay = start("sidecar", "--config", str(config.path), *listen, *status, env=TOKEN).ready()
        until(lambda: config.ask() == 200)

    def _start_envoy(self, directory: Path) -> subprocess.Popen[bytes]:
        places = ("--sidecar", f"127.0.0.1:{self.grpc}", "--egress", f"127.0.0.1:{self.egress}")
        done = CliRunner().invoke(main, ["envoy-config", "--config", str(self.config.path), *places])
        assert done.exit_code == 0, done.output
        made = json.loads(done.stdout)
        made["admin"]["address"]["socket_address"]["port_value"] = self.admin
        file = directory / "envoy.json"
        file.write_text(json.dumps(made))
        command = [machine.envoy_binary(None, os.environ), "-c", str(file), "--disable-hot-restart", "-l", "warning"]
        process = subprocess.Popen([*command, "--concurrency", "2"], stderr=subprocess.DEVNULL)
        until(self._is_up)
        return process

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.admin}/ready").status_code == 200
        except httpx.TransportError:
            return False

    def status(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=20)

    def stop(self) -> None:
        self._envoy.terminate()
        self._envoy.wait(10)


@pytest.fixture(name="elsewhere")
def _elsewhere(start: Start, config: Config, tmp_path: Path) -> Iterator[Elsewhere]:
    found = Elsewhere(start, config, tmp_path)
    yield found
    found.stop()


def test_one_life_from_start_to_end(elsewhere: Elsewhere, config: Config) -> None:
    """One start for many claims: starting is what costs here."""
    sidecar = elsewhere.sidecar
    assert sidecar.out == [f"zurelay's sidecar is ready on 127.0.0.1:{elsewhere.grpc}\n"]
    assert len(sidecar.children()) == 2
    assert elsewhere.status("/readyz").json() == {"ready": True, "problems": []}
    assert "zurelay_workers_alive 2\n" in elsewhere.status("/metrics").text
    with httpx.Client(timeout=30) as client:
        # A stream goes by the egress listener, on TCP as well.
        with config.stream(client, "tokens:3") as stream:
            assert [line for line in stream.iter_lines() if line][-1] == "data: [DONE]"

        # What it needs is there, by the same command that a person uses.
        url = f"http://127.0.0.1:{elsewhere.admin}"
        checked = CliRunner().invoke(main, ["check", str(config.path), "--envoy", url])
        assert (checked.exit_code, checked.stderr) == (0, "")

        # A change that needs nothing of Envoy is taken up.
        config.path.write_text(config.path.read_text().replace("{m: {", "{m: {aliases: [n], "))
        until(lambda: httpx.post(config.chat, json={**HELLO, "model": "n"}, timeout=10).status_code == 200)

        # Told to end, it serves a stream to its end.
        with config.stream(client, "tokens:12+gap:0.4") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: {")
            children = sidecar.children()
            sidecar.process.terminate()
            until(lambda: elsewhere.status("/readyz").json()["problems"] == ["draining"])
            assert [line for line in lines if line][-1] == "data: [DONE]"
    assert sidecar.ended() == 0
    assert gone(children)
    said = [json.loads(line).get("message") for line in sidecar.err[-2:]]  # a worker's last line may come behind it
    assert "drained" in said
    assert config.ask() == 503


def test_a_change_that_is_refused_leaves_the_old_one(elsewhere: Elsewhere, config: Config) -> None:
    config.path.write_text(config.path.read_text().replace("context_window", "window"))

    until(lambda: any("is refused" in line for line in elsewhere.sidecar.err))
    assert config.ask() == 200


@pytest.mark.parametrize(
    ("env", "arguments", "status", "said"),
    [
        ({"ZURELAY_EGRESS_TOKEN": "short"}, ("--egress", "a:1"), 1, "must hold at least 32 characters"),
        (TOKEN, (), 2, "--listen and --egress go together"),
        (TOKEN, ("--egress", "a:1", "--run-dir", "/tmp/x"), 2, "either --run-dir"),
    ],
)
def test_what_is_missing_is_told(
    env: dict[str, str], arguments: tuple[str, ...], status: int, said: str, config: Config
) -> None:
    command = [sys.executable, "-m", "zurelay", "sidecar", "--config", str(config.path), "--listen", "127.0.0.1:9000"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **env}
    )

    assert done.returncode == status
    assert said in done.stderr


@pytest.mark.parametrize(("host", "port", "text"), [("::", 1, "[::]:1"), ("a.b", 2, "a.b:2")])
def test_an_address_is_written_as_it_is_read(host: str, port: int, text: str) -> None:
    assert written(host, port) == text
