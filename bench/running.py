"""Processes of a run: each bound to us, its output in a file, gone when the run is over."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from zurelay.supervise import bound

_GRACE = 10.0  # seconds to end in
_LAST_WORDS = 15  # lines


class BenchError(Exception):
    """The run can't go on; says why and what to do."""


class Running:
    """A process under way."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, name: str, command: Sequence[str], directory: Path, env: Mapping[str, str]) -> Running:
        """Start a command; what it writes goes to a file, so that nobody's reading slows it."""
        log = directory / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", bound.__file__, str(os.getpid()), *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                cwd=directory,
                env=env,
                process_group=0,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def check(self) -> None:
        """See that it still runs."""
        if self._process.returncode is not None:
            last = self._log.read_text(errors="replace").splitlines()[-_LAST_WORDS:]
            raise BenchError(f"{self.name} ended with status {self._process.returncode}:\n" + "\n".join(last))

    async def stop(self) -> None:
        """Ask it to end, and end it if it doesn't."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _GRACE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def output(*command: str) -> str:
    """Run a command to its end, and give what it writes."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        written, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = written.decode(errors="replace")
    if process.returncode:
        raise BenchError(f"{command[0]} ended with status {process.returncode}:\n{text}")
    return text


_given: set[int] = set()  # servers are started later: a port must not be given twice meanwhile


def free_ports(count: int) -> list[int]:
    """Ask the system for ports that nobody listens on, and that were not given before."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _given:
            _given.add(port)
            found.append(port)
    return found
