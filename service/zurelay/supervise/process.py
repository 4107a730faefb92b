"""Child processes: started so that none outlives the supervisor, heard line by line, and ended by their own id."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from zurelay.supervise import bound

_log = logging.getLogger("zurelay")
_TAIL = 20  # lines kept for the message about a child that failed
_LONGEST_LINE = 64 << 10
_REPLY = 16 << 20  # a worker's answer is one line

Sink = Callable[[str], None]


class Child:
    """One child process. Its output goes to `sink` line by line, or its standard streams are a line to talk on."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, sink: Sink | None) -> None:
        self.name = name
        self._process = process
        self._tail: collections.deque[str] = collections.deque(maxlen=_TAIL)
        self._spoke = asyncio.Condition()
        self._silent = sink is None
        self._listener = asyncio.create_task(self._listen(process.stdout, sink)) if sink and process.stdout else None

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        sink: Sink | None = None,
    ) -> Child:
        """Start a command. Without a `sink`, `read` and `write` are its standard streams; its errors go to ours.

        It has a process group of its own: Ctrl-C reaches the supervisor alone, which ends the others in order.
        """
        pipe, nothing, merged = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL, asyncio.subprocess.STDOUT
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", bound.__file__, str(os.getpid()), *command),
            stdin=nothing if sink else pipe,
            stdout=pipe,
            stderr=merged if sink else None,
            env=env,
            cwd=cwd,
            process_group=0,
            limit=_REPLY,
        )
        return cls(name, process, sink)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it hasn't ended yet."""
        return self._process.returncode is None

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines that it wrote."""
        return tuple(self._tail)

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Where a child without a sink reads."""
        assert self._process.stdin is not None  # noqa: S101  # a child with a sink has no line to talk on
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Where a child without a sink writes."""
        assert self._process.stdout is not None  # noqa: S101  # always piped
        return self._process.stdout

    async def says(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Wait for a line that matches; None when it ended without."""
        async with self._spoke:
            while True:
                found = next(filter(None, map(pattern.search, self._tail)), None)
                if found is not None or self._silent:
                    return found
                await self._spoke.wait()

    async def wait(self) -> str:
        """Wait until it has ended, and say how."""
        status = await self._process.wait()
        if self._listener is not None:
            await asyncio.wait({self._listener})  # not to be cancelled with us
        return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"

    def kill(self) -> None:
        """End it now."""
        self._signal(signal.SIGKILL)

    async def end(self, grace: float) -> None:
        """Ask it to end, and end it after `grace` seconds."""
        if not self.running:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.wait(), grace)
        except TimeoutError:
            _log.warning("%s (process %d) didn't end within %g s and is killed", self.name, self.pid, grace)
            self.kill()
            await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        # Not by the process' own methods: they ask first whether it has ended, and its status would be lost to asyncio.
        if self.running:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    async def _listen(self, stream: asyncio.StreamReader, sink: Sink) -> None:
        rest = b""
        while chunk := await stream.read(_LONGEST_LINE):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            await self._hear(lines, sink)
        self._silent = True
        await self._hear([rest] if rest else [], sink)

    async def _hear(self, lines: list[bytes], sink: Sink) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace")
            self._tail.append(text)
            sink(text)
        async with self._spoke:
            self._spoke.notify_all()


def prefixed(name: str) -> Sink:
    """Make a sink that writes each line to standard error behind a name."""

    def write(line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads any more: that is no reason to end
            sys.stderr.write(f"{name:8} | {line}\n")
            sys.stderr.flush()

    return write


def package_command(*arguments: str) -> list[str]:
    """Give the command that runs this package in a process of its own; -P keeps the working directory off its path."""
    return [sys.executable, "-P", "-m", "zurelay", *arguments]
