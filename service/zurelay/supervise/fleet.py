"""The worker processes: one to a socket, each with the configuration in force, replaced when it crashes or freezes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from zurelay import tally
from zurelay.families import GAUGES
from zurelay.supervise.member import Command, Member, WorkerFrozenError, WorkerGoneError, WorkerRefusedError
from zurelay.tally import Totals

_log = logging.getLogger("zurelay")

_CONFIGURE = 10.0  # seconds: a large catalog takes one
_REPORT = 2.0
_DRAIN = 5.0
_WATCH = 2.0  # seconds between two looks at a worker
_FROZEN = 12.0  # of silence; a body of 64 MiB holds a worker for 2 s (measured)
_SETTLED = 30.0  # a worker that lived so long isn't in a crash loop
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 10.0
_GRACE = 3.0  # seconds to end in

Launch = Callable[[int], tuple[Sequence[str], Mapping[str, str], str]]
"""Gives the command, the environment and the working directory of worker number i."""


class NotConfiguredError(Exception):
    """A worker couldn't take the configuration; the old one stays in force."""


class Fleet:
    """All workers. `restarts` counts those that were replaced."""

    def __init__(self, size: int, launch: Launch) -> None:
        self.size = size
        self.restarts = 0
        self.draining = False
        self._launch = launch
        self._members: dict[int, Member] = {}
        self._command: Command | None = None
        self._past: Totals = {}
        self._changed = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []

    @property
    def serving(self) -> int:
        """How many workers have a configuration and run."""
        return sum(member.configured is not None and member.child.running for member in self._members.values())

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the workers."""
        return tuple(member.child.pid for _, member in sorted(self._members.items()))

    def start(self, config: str, keys: str) -> None:
        """Start all workers with a configuration; `serving` says when they are ready."""
        self._command = Command(op="configure", config=config, keys=keys)
        self._keepers = [asyncio.create_task(self._keep(number)) for number in range(self.size)]

    async def configure(self, config: str, keys: str) -> None:
        """Put a new configuration in force in every worker. One tries it first: were it to crash, the others stay."""
        old, new = self._command, Command(op="configure", config=config, keys=keys)
        if old == new:
            return
        for member in list(self._members.values()):
            if await self._try(member, new, trial=True):
                break
        self._command = new
        await asyncio.gather(*(self._try(member, new) for member in list(self._members.values())))

    async def _try(self, member: Member, command: Command, *, trial: bool = False) -> bool:
        """Configure one worker, or end it; only a trial blames the configuration."""
        try:
            await member.configure(command, _CONFIGURE)
        except WorkerFrozenError as error:
            _log.warning("%s: it is replaced", error)
            member.child.kill()
            return False
        except WorkerRefusedError as error:
            if trial:  # it still serves by what was in force, and so do the others
                raise NotConfiguredError(str(error)) from error
            member.child.kill()
            _log.warning("%s can't take the configuration and is replaced: %s", member.child.name, error)
            return False
        except WorkerGoneError as error:
            member.child.kill()
            if trial:
                raise NotConfiguredError(str(error)) from error
            _log.warning("%s: it is replaced", error)
            return False
        return True

    async def drain(self) -> None:
        """Let every worker refuse new requests; those under way are served to their end."""
        self.draining = True
        await self._tell_all(Command(op="drain"))

    async def leave(self) -> None:
        """Let every worker say that others should be asked; it serves on."""
        await self._tell_all(Command(op="leave"))

    async def finish(self, seconds: float) -> None:
        """Let every worker take no more calls; those under way have `seconds`."""
        await self._tell_all(Command(op="finish", seconds=seconds))

    async def open(self) -> int:
        """Count the calls under way."""
        await self._ask_all(Command(op="report"), _REPORT)
        return sum(member.open for member in self._members.values())

    async def _tell_all(self, command: Command) -> None:
        for outcome in await self._ask_all(command, _DRAIN):
            if outcome is not None:
                _log.warning("%s: it can't be told to %s", outcome, command.op)

    async def totals(self) -> Totals:
        """Sum what the workers have counted, those that ended included."""
        await self._ask_all(Command(op="report"), _REPORT)
        living = [member.samples for member in self._members.values()]
        return tally.total([tally.samples(self._past), *living], GAUGES)

    async def stop(self) -> None:
        """End every worker."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(member.child.end(_GRACE) for member in self._members.values()))

    def kill(self) -> None:
        """End every worker now."""
        for member in self._members.values():
            member.child.kill()

    async def _ask_all(self, command: Command, seconds: float) -> list[Exception | None]:
        return await asyncio.gather(*(self._ask(member, command, seconds) for member in list(self._members.values())))

    async def _ask(self, member: Member, command: Command, seconds: float) -> Exception | None:
        try:
            await member.ask(command, seconds)
        except (WorkerFrozenError, WorkerGoneError, WorkerRefusedError) as error:
            return error
        return None

    async def _keep(self, number: int) -> None:
        """Keep one worker running for as long as the fleet does."""
        delay = 0.0
        while True:
            began = time.monotonic()
            how = await self._live(number)
            lived = time.monotonic() - began
            self.restarts += 1
            delay = 0.0 if lived > _SETTLED else delay
            _log.error("worker %d %s after %.1f s; the next starts in %g s", number, how, lived, delay)
            await asyncio.sleep(delay)
            delay = min(max(2 * delay, _FIRST_DELAY), _LONGEST_DELAY)

    async def _live(self, number: int) -> str:
        """Start one worker, see it through its life, and say how it ended."""
        member = await Member.start(f"worker {number}", *self._launch(number))
        self._members[number] = member
        watch = asyncio.create_task(self._watch(member))
        try:
            return await member.ended()
        finally:
            watch.cancel()
            if not member.child.running:
                left = [sample for sample in member.samples if sample.family not in GAUGES]
                self._past = tally.total([tally.samples(self._past), left])
                del self._members[number]

    async def _watch(self, member: Member) -> None:
        """Configure a new worker, then see that it goes on answering."""
        while member.configured is not self._command and self._command is not None:
            if not await self._try(member, self._command):
                return
        if self.draining:
            await self._ask(member, Command(op="drain"), _DRAIN)
        while time.monotonic() - member.heard < _FROZEN:
            await asyncio.sleep(_WATCH)
            if not member.waiting:
                await self._ask(member, Command(op="report"), _REPORT)
        _log.error("%s is frozen (no answer for %g s): it is replaced", member.child.name, _FROZEN)
        member.child.kill()


def without(environ: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    """Give an environment without some variables: provider keys are Envoy's alone."""
    return {name: value for name, value in environ.items() if name not in names}
