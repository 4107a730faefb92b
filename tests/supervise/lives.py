"""zurelay in processes of its own, for tests of whole lives."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

import httpx

from e2e.harness import Provider, free_port, until
from zurelay import envoy
from zurelay.supervise import machine

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


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: Sequence[int]) -> bool:
    until(lambda: not any(map(is_there, pids)), 10)
    return True


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
        return httpx.post(self.chat, json=HELLO, timeout=10).status_code

    def status_of(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.status}{path}", timeout=20)

    def answers(self, path: str) -> bool:
        try:
            return self.status_of(path).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def ready(self) -> list[str]:
        """What keeps it from being ready; nothing when it is."""
        try:
            answer = self.status_of("/readyz")
        except httpx.TransportError as error:
            return [str(error)]
        if answer.headers["content-type"] != "application/json":
            return [answer.text]
        problems: list[str] = answer.json()["problems"]
        return problems

    @property
    def chat(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/chat/completions"

    def stream(self, client: httpx.Client, fault: str) -> contextlib.AbstractContextManager[httpx.Response]:
        """Ask for a stream that goes like this."""
        return client.stream("POST", self.chat, json={**HELLO, "stream": True, "simulate": fault})


@contextlib.contextmanager
def envoy_in(run: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An Envoy started as in a pod, by the run directory alone."""
    runtime = envoy.Runtime(directory=str(run), worker_sockets=("/x",), status_socket="/y", ca_bundle="/z")
    command = envoy.command(machine.envoy_binary(None, os.environ), runtime, 600)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


class Pod:
    """A sidecar with a status port of its own, and the run directory that it shares with Envoy."""

    def __init__(self, start: Start, config: Config, run: Path, drain_seconds: float = 60.0) -> None:
        self.run = run
        self.port = free_port()
        self.arguments = ("sidecar", "--config", str(config.path), "--run-dir", str(run))
        listen = ("--status-listen", f"127.0.0.1:{self.port}", "--drain-seconds", str(drain_seconds))
        self.sidecar: Zurelay = start(*self.arguments, *listen).ready()

    def ask(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=70)
