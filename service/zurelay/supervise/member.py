"""One worker process as the supervisor sees it: commands in, replies out, in order (`server` is the other end)."""

from __future__ import annotations

import asyncio
import collections
import logging
import time
from collections.abc import Mapping, Sequence

import msgspec

from zurelay.supervise.process import Child
from zurelay.tally import Sample

_log = logging.getLogger("zurelay")


class Command(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What is said to a worker: configure (with both files' texts), drain, leave, finish (in `seconds`), report."""

    op: str
    config: str = ""
    keys: str = ""
    seconds: float = 0


class Reply(msgspec.Struct, kw_only=True, frozen=True):
    """What a worker answers. `problem` is why it couldn't do it; `open` counts calls under way."""

    op: str
    problem: str | None = None
    samples: tuple[Sample, ...] = ()
    open: int = 0


class WorkerGoneError(Exception):
    """The worker ended before it answered, or said that it can't."""


class WorkerRefusedError(Exception):
    """A worker lives, and can't do what it was asked: what it did before, it goes on doing."""


class WorkerFrozenError(Exception):
    """The worker doesn't answer in time."""


class Member:
    """One running worker. Replies come in the order of the commands; one that comes too late is thrown away."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.configured: Command | None = None
        self.samples: tuple[Sample, ...] = ()
        self.open = 0
        self.heard = time.monotonic()
        self._waiting: collections.deque[asyncio.Future[Reply]] = collections.deque()
        self._reader = asyncio.create_task(self._read())
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, name: str, command: Sequence[str], env: Mapping[str, str], cwd: str) -> Member:
        """Start a worker."""
        return cls(await Child.start(name, command, env=env, cwd=cwd))

    @property
    def waiting(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._waiting)

    async def ask(self, command: Command, seconds: float) -> Reply:
        """Say something and wait for the answer."""
        if self._reader.done():
            raise WorkerGoneError(f"{self.child.name} has ended")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self.child.stdin.write(msgspec.json.encode(command) + b"\n")
        try:
            reply = await asyncio.wait_for(future, seconds)
        except TimeoutError:
            raise WorkerFrozenError(f"{self.child.name} doesn't answer within {seconds:g} s") from None
        if reply.problem is not None:
            raise WorkerRefusedError(reply.problem)
        return reply

    async def configure(self, command: Command, seconds: float) -> None:
        """Put a configuration in force, unless it is already."""
        async with self._turn:
            if self.configured is not command:
                await self.ask(command, seconds)
                self.configured = command

    async def ended(self) -> str:
        """Wait for its end, and say how it was."""
        how = await self.child.wait()
        await asyncio.wait({self._reader})  # not to be cancelled with us
        return how

    def _hear(self, reply: Reply) -> None:
        future = self._waiting.popleft()
        self.heard = time.monotonic()
        self.samples = reply.samples or self.samples
        self.open = reply.open
        if not future.done():
            future.set_result(reply)

    async def _read(self) -> None:
        decoder = msgspec.json.Decoder(Reply)
        while line := await self.child.stdout.readline():
            try:
                self._hear(decoder.decode(line))
            except (msgspec.MsgspecError, IndexError):
                _log.error("%s says what no one asked: %r", self.child.name, line[:200])
                self.child.kill()
                break
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(WorkerGoneError(f"{self.child.name} ended before it answered"))
