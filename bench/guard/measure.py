"""Measures this process's own time for requests, chunks and the yardstick, in small pieces by turns.

A busy machine makes some pieces slower and none faster, so the least of many is what the work costs. Where objects lie
in memory makes a whole process some per cent slower or faster: several are asked, and the least of all counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.guard import reference
from bench.guard.sidecar import Loop
from bench.guard.work import Work, worker
from bench.running import output

_PROCESSES, _FEWEST = 6, 3
_PATIENCE = 12.0  # seconds after which the fewest processes must do
_TURNS = 60
# Each piece takes about two milliseconds: less than the time slice in which a process runs undisturbed.
_REQUESTS, _CHUNKS, _YARDSTICKS = 10, 250, 5


class Least(msgspec.Struct, frozen=True, kw_only=True):
    """The least time, in seconds, of one request, one chunk and the yardstick."""

    request: float
    chunk: float
    yardstick: float


def least(found: Sequence[Least]) -> Least:
    """Take the least of each."""
    return Least(
        request=min(one.request for one in found),
        chunk=min(one.chunk for one in found),
        yardstick=min(one.yardstick for one in found),
    )


async def by_processes() -> Least:
    """Ask several fresh processes, one after another."""
    began = time.monotonic()
    found: list[Least] = []
    while len(found) < _PROCESSES and (len(found) < _FEWEST or time.monotonic() < began + _PATIENCE):
        said = await output("env", "PYTHONHASHSEED=0", sys.executable, "-m", __name__)
        found.append(msgspec.json.decode(said, type=Least))
    return least(found)


def here() -> Least:
    """Measure in this process."""
    loop = Loop()
    with (
        contextlib.closing(loop),
        tempfile.TemporaryDirectory() as directory,
        worker(Path(directory)) as made,
        _undisturbed(),
    ):
        work = loop.run_until_complete(Work.ready(made))
        loop.pieces = work.pieces(_CHUNKS)
        return least([_turn(loop, work) for _ in range(_TURNS)])


def _turn(loop: Loop, work: Work) -> Least:
    return Least(
        request=_timed(lambda: loop.run_until_complete(_requests(work))) / _REQUESTS,
        chunk=_timed(lambda: loop.run_until_complete(work.stream())) / _CHUNKS,
        yardstick=_timed(_yardsticks) / _YARDSTICKS,
    )


async def _requests(work: Work) -> None:
    for _ in range(_REQUESTS):
        await work.request()


def _yardsticks() -> None:
    for _ in range(_YARDSTICKS):
        reference.run()


def _timed(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let neither the collector of garbage nor the thread that writes the log come between."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.setswitchinterval(interval)


if __name__ == "__main__":
    asyncio.set_event_loop(None)
    sys.stdout.buffer.write(msgspec.json.encode(here()))
