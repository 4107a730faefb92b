"""A Redis server of one's own, on a Unix socket in a folder: started, stopped, frozen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

BINARY = shutil.which("redis-server")
MISSING = "redis-server is not installed (Debian's package redis-server)"


def lacks_redis() -> bool:
    """Whether tests on a real Redis must be left out; where one is required they run, and fail without it."""
    return BINARY is None and not os.environ.get("ZURELAY_REQUIRE_REDIS")


class RedisServer:
    """One server without persistence, at `url`."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [str(BINARY), *options], cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            try:
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False

    def command(self, *words: str) -> bytes:
        """Send one command; give the answer as it comes, for short ones."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(self._socket))
            coded = [word.encode() for word in words]
            parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in coded)
            connection.sendall(b"*%d\r\n%s" % (len(coded), parts))
            return connection.recv(1 << 16)

    def freeze(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill it; what it knew is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process
