"""Runs until told to stop: signals, children, and what is said meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from zurelay.store import StoreError
from zurelay.supervise import demo, machine, ready, rundir
from zurelay.supervise.loading import LoadError
from zurelay.supervise.process import Child

_log = logging.getLogger("zurelay")

_GRACE = 5.0
_INTERRUPTED = 130  # as shells count an end by SIGINT


class FailedError(Exception):
    """It can't start, or can't go on; says why and what to do."""


_PROBLEMS = (
    FailedError,
    LoadError,
    StoreError,
    demo.SimulatorError,
    machine.NoEnvoyError,
    machine.PortTakenError,
    ready.NotReadyError,
    rundir.RunDirectoryError,
)

Kill = Callable[[], None]


class Killable(Protocol):
    """Workers."""

    def kill(self) -> None:
        """End all now."""


class Startable(Protocol):
    """What is started, and ends with what it started."""

    @property
    def fleet(self) -> Killable:
        """Its workers."""

    async def start(self) -> None:
        """Start it."""

    async def stop(self) -> None:
        """End it."""


def run(main: Callable[[list[Kill]], Awaitable[None]]) -> int:
    """Run until told to stop; gives the exit status."""
    try:
        return asyncio.run(_until_told(main))
    except _PROBLEMS as error:
        for line in str(error).splitlines():
            _log.error("%s", line)
        return 1


async def _until_told(main: Callable[[list[Kill]], Awaitable[None]]) -> int:
    """Run until a signal: the first ends all in order, the second at once."""
    kills: list[Kill] = []
    task = asyncio.ensure_future(main(kills))
    forced = False

    def told() -> None:
        nonlocal forced
        if task.cancelling():
            forced = True
            for kill in kills:
                kill()
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
            loop.add_signal_handler(number, told)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return _INTERRUPTED if forced else 0


async def start(instance: Startable, stack: contextlib.AsyncExitStack, kills: list[Kill]) -> None:
    """Start an instance, and see that it ends with the stack."""
    stack.push_async_callback(instance.stop)
    kills.append(instance.fleet.kill)
    await instance.start()


async def child(starting: Awaitable[Child], stack: contextlib.AsyncExitStack, kills: list[Kill]) -> Child:
    """Start a child, and see that it ends with the stack."""
    started = await starting
    stack.push_async_callback(started.end, _GRACE)
    kills.append(started.kill)
    return started


def say(*lines: str) -> None:
    """Say it on standard output, where scripts wait for it."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def set_up_logging(*, as_json: bool) -> None:
    """Let the supervisor's own lines go where those of its children go: prefixed like theirs, or JSON like Envoy's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if as_json else logging.Formatter("zurelay  | %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": record.created, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
