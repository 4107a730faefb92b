"""What end-to-end tests stand on: the real gateway as its users start it, and the simulated provider beside it."""

from __future__ import annotations

import asyncio
import os
import pathlib
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

import httpx
import msgspec
import yaml

from zurelay.simulate.server import Config, Record, SimulatedProvider

ZURELAY = (sys.executable, "-m", "zurelay")
_TLS = httpx.create_ssl_context()  # making one takes longer than most requests
T = TypeVar("T")


def free_port() -> int:
    """Ask the system for a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(met: Callable[[], T], seconds: float = 10.0) -> T:
    """Wait for a condition, and give its value; fail when it doesn't become true in time."""
    end = time.monotonic() + seconds
    while not (value := met()):
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(0.02)
    return value


class Provider:
    """The simulated provider, on a thread with a loop of its own so that blocking clients can be tested."""

    def __init__(
        self,
        ssl_context: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        credential: str | None = None,
        port: int = 0,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(_made(Config(token_pause=0, credential=credential)))
        self.port: int = self._call(self._server.start(host, port, ssl_context))

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    @property
    def requests(self) -> list[Record]:
        """What came since the last `reset`."""
        return list(self._server.requests)

    def reset(self) -> None:
        """Forget what came."""
        self._loop.call_soon_threadsafe(self._server.reset)

    def until(self, met: Callable[[Sequence[Record]], bool], seconds: float = 10.0) -> list[Record]:
        """Wait until the requests are as `met` wants them."""
        self._call(self._server.until(met, seconds))
        return self.requests

    def stop(self) -> None:
        """Cut all connections and end the thread."""
        self._call(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


async def _made(config: Config) -> SimulatedProvider:
    return SimulatedProvider(config)


class Gateway:
    """`zurelay up` in a process of its own."""

    def __init__(self, directory: pathlib.Path, config: dict[str, Any], env: dict[str, str] | None = None) -> None:
        self.port, self.status_port = free_port(), free_port()
        self.directory = directory
        self.run_dir = directory / "run"
        self.config = {
            "listen": {"port": self.port, "host": "127.0.0.1"},
            "status": {"port": self.status_port, "host": "127.0.0.1"},
            "auth": {"require": "none"},
            **config,
        }
        self.file = directory / "zurelay.yaml"
        self.write(self.config)
        self.log: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            [*ZURELAY, "up", "--config", str(self.file), "--run-dir", str(self.run_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def write(self, config: dict[str, Any]) -> None:
        """Replace the configuration file at once, as an editor that is careful does."""
        self.config = config
        fresh = self.file.with_suffix(".new")
        fresh.write_text(yaml.safe_dump(config, sort_keys=False))
        fresh.rename(self.file)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log.append(line)
            self._lines.put(line)
        self._lines.put(None)

    def wait_ready(self, seconds: float = 30.0) -> Self:
        """Wait for the line that says so."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.stop()
                raise AssertionError("the gateway did not start:\n" + "".join(self.log))
            if "zurelay is ready" in line:
                return self

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def status_url(self) -> str:
        """Where probes and scrapes go."""
        return f"http://127.0.0.1:{self.status_port}"

    def pids(self, word: str) -> list[int]:
        """Find the children of this gateway whose command line has a word in it."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:  # it ended while we looked
                continue
            if parent == str(self.process.pid) and word in command:
                found.append(int(entry.name))
        return sorted(found)

    @property
    def envoy(self) -> int:
        """Envoy's process id."""
        (pid,) = self.pids("bin/envoy")
        return pid

    @property
    def workers(self) -> list[int]:
        """The workers' process ids."""
        return self.pids("worker")

    def chat(self, body: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send a chat request and read the whole answer."""
        options = {"timeout": 60, "verify": _TLS, **more}
        return httpx.post(
            self.url + "/v1/chat/completions", content=msgspec.json.encode(body), headers=headers, **options
        )

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join(10)
            assert self.process.stdout is not None
            self.process.stdout.close()


def ask(model: str, text: str = "How are you?", **more: Any) -> dict[str, Any]:
    """A chat request's body."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def simulate(**faults: str | list[str]) -> dict[str, Any]:
    """The body field that makes upstream models fail: m1="status:500"."""
    return {"simulate": {"faults": faults}}
