"""Drains: readiness fails first, clients are told to go elsewhere, and what is under way is served to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from zurelay.supervise import polling
from zurelay.supervise.admin import AdminError

_log = logging.getLogger("zurelay")

# Seconds without a new request until those who watch readiness send no one here any more: probes come each 5 to 10 s.
_SETTLE = 5.0
# The last seconds, or the last quarter, belong to those who are under way: whoever still comes then is refused.
_LAST = 60.0
_ACTIVE, _TOTAL = (f"http.ingress.downstream_rq_{what}" for what in ("active", "total"))
_STATS = r"^http\.ingress\.downstream_rq_(active|total)$"
_DRAINED = (logging.INFO, "drained")
_NOT_DRAINED = (logging.WARNING, "the time to drain is over, and requests are still under way")


class Workers(Protocol):
    """What is asked of the fleet."""

    async def drain(self) -> None:
        """Let them refuse new requests."""


class Admin(Protocol):
    """What is asked of Envoy."""

    async def stats(self, pattern: str) -> dict[str, str]:
        """Give statistics."""

    async def drain(self) -> None:
        """Let clients go elsewhere."""


class Drain:
    """One instance's drain: whoever asks, and however often, it happens once and takes at most `seconds`."""

    def __init__(self, workers: Workers, admin: Admin, seconds: float) -> None:
        self._workers = workers
        self._admin = admin
        self._seconds = seconds
        self._task: asyncio.Task[bool] | None = None
        self._came = ""  # how many requests had come at the last look
        self._since = 0.0

    @property
    def begun(self) -> bool:
        """Whether it was asked for."""
        return self._task is not None

    async def run(self) -> bool:
        """Drain; tell when no request is under way any more, or (False) that the time for it is over.

        Envoy ends connections with their next answer; requests are served all the while. Only when none came for a
        while do the workers refuse what is still sent.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await asyncio.shield(self._task)

    async def _run(self) -> bool:
        _log.info("draining, for at most %g s", self._seconds)
        end = time.monotonic() + self._seconds
        try:
            await self._admin.drain()
            await self._wait(self._is_quiet, self._seconds - min(_LAST, self._seconds / 4))
            await self._workers.drain()
            idle = await self._wait(self._is_idle, max(0.0, end - time.monotonic()))
        except AdminError as error:
            _log.warning("Envoy can't be drained: %s", error)
            await self._workers.drain()
            return False
        _log.log(*(_DRAINED if idle else _NOT_DRAINED))
        return idle

    @staticmethod
    async def _wait(met: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        try:
            await polling.until(met, seconds)
        except TimeoutError:
            return False
        return True

    async def _is_quiet(self) -> bool:
        """Tell whether nothing is under way, and nothing came for a while."""
        stats = await self._admin.stats(_STATS)
        now, came = time.monotonic(), stats.get(_TOTAL, "0")
        if came != self._came:
            self._came, self._since = came, now
        return stats.get(_ACTIVE, "0") == "0" and now - self._since >= min(_SETTLE, self._seconds / 2)

    async def _is_idle(self) -> bool:
        return (await self._admin.stats(_STATS)).get(_ACTIVE, "0") == "0"
