"""What a store does again and again beside its requests. Trouble is told when it begins and when it is over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from zurelay.store import StoreUnavailableError

_log = logging.getLogger("zurelay")


class Chores:
    """Repeated work of one store, until `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failing: set[int] = set()

    def start(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work every so many seconds."""
        self._tasks.append(asyncio.create_task(self._every(seconds, work, len(self._tasks))))

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]], number: int) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # whatever it is, the work must be tried again
                self._failed(number, error)
            else:
                self._succeeded(number)

    def _failed(self, number: int, error: Exception) -> None:
        if not self._failing:
            unforeseen = None if isinstance(error, StoreUnavailableError) else error
            told = "the store %s fails: %s; what is settled is kept and tried again"
            _log.error(told, self._name, error, exc_info=unforeseen)
        self._failing.add(number)

    def _succeeded(self, number: int) -> None:
        if number in self._failing:
            self._failing.discard(number)
            if not self._failing:
                _log.warning("the store %s is back", self._name)

    async def stop(self) -> None:
        """Let what is being done come to its end."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)
