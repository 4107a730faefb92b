"""Answers /readyz, /metrics, /stats/prometheus and /drain, which Envoy's status listener passes on (SPEC 2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

import msgspec

from zurelay import families, http1, tally
from zurelay.supervise import polling
from zurelay.supervise.admin import AdminError
from zurelay.tally import Family, Totals

_log = logging.getLogger("zurelay")

_JSON = (("content-type", "application/json"),)
_PROMETHEUS = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
# A hook of Kubernetes can only GET.
_METHODS = {
    "/readyz": ("GET", "HEAD"),
    "/metrics": ("GET", "HEAD"),
    "/stats/prometheus": ("GET", "HEAD"),
    "/drain": ("GET", "POST"),
}
_ACTIVE = "http.ingress.downstream_rq_active"
_ACTIVE_ALONE = r"^http\.ingress\.downstream_rq_active$"
# Seconds until those who watch readiness send no one here any more: probes come each 5 to 10 s.
_SETTLE = 5.0


class Workers(Protocol):
    """What is asked of the fleet."""

    size: int
    restarts: int

    @property
    def serving(self) -> int:
        """How many workers serve."""

    async def totals(self) -> Totals:
        """Sum what they counted."""

    async def drain(self) -> None:
        """Let them refuse new requests."""


class Rollout(Protocol):
    """What is asked of the rollout."""

    generation: int

    async def disagreements(self) -> list[str]:
        """Say in what Envoy isn't where it should be."""


class Admin(Protocol):
    """What is asked of Envoy."""

    async def stats(self, pattern: str) -> dict[str, str]:
        """Give statistics."""

    async def metrics(self) -> str:
        """Give all statistics as Prometheus reads them."""

    async def drain(self) -> None:
        """Let clients go elsewhere."""


class Status:
    """The status of one instance. `reloads` counts reloads by result."""

    def __init__(
        self, workers: Workers, rollout: Rollout, admin: Admin, reloads: Mapping[str, int], drain_seconds: float
    ) -> None:
        self.draining = False
        self._workers = workers
        self._rollout = rollout
        self._admin = admin
        self._reloads = reloads
        self._drain_seconds = drain_seconds
        self._drain: asyncio.Task[bool] | None = None

    async def handle(self, request: http1.Request, reply: http1.Reply) -> None:
        """Answer one request."""
        allowed = _METHODS.get(request.path)
        if allowed is None:
            self._say(reply, 404, {"problems": [f"not here: {', '.join(_METHODS)}"]})
        elif request.method not in allowed:
            reply.whole(405, (("allow", ", ".join(allowed)),), b"")
        elif request.path == "/readyz":
            problems = await self.problems()
            self._say(reply, 503 if problems else 200, {"ready": not problems, "problems": problems})
        elif request.path == "/metrics":
            reply.whole(200, _PROMETHEUS, (await self.metrics()).encode())
        elif request.path == "/stats/prometheus":
            reply.whole(200, _PROMETHEUS, (await self._envoys()).encode())
        else:
            self._say(reply, 200, {"drained": await self.drain()})

    async def problems(self) -> list[str]:
        """Say why no request should be sent here."""
        found = ["draining"] if self.draining else []
        if not self._workers.serving:
            found.append(f"none of {self._workers.size} workers serves yet")
        return found + await self._rollout.disagreements()

    async def totals(self) -> Totals:
        """Give our own metrics, all workers and this process together."""
        own: dict[Family, float] = {
            families.WORKERS: self._workers.size,
            families.WORKERS_ALIVE: self._workers.serving,
            families.WORKER_RESTARTS: self._workers.restarts,
            families.CONFIG_GENERATION: self._rollout.generation,
        }
        found = await self._workers.totals()
        found.update({(family.name, ()): (value,) for family, value in own.items()})
        for result, count in self._reloads.items():
            found[families.CONFIG_RELOADS.name, (result,)] = (count,)
        return found

    async def metrics(self) -> str:
        """Give our metrics and Envoy's in Prometheus' text format."""
        return tally.exposition(families.FAMILIES, await self.totals()) + await self._envoys()

    async def _envoys(self) -> str:
        try:
            return await self._admin.metrics()
        except AdminError as error:
            _log.warning("metrics without Envoy's: %s", error)
            return ""

    async def drain(self) -> bool:
        """Let clients go elsewhere; tell when no request is under way, or that the time for it is over.

        Readiness fails first, then Envoy ends connections with their next answer; requests are served all the while.
        Only when none came for a while do the workers refuse what is still sent.
        """
        if self._drain is None:
            self.draining = True
            self._drain = asyncio.create_task(self._drain_all())
        return await asyncio.shield(self._drain)

    async def _drain_all(self) -> bool:
        _log.info("draining, for at most %g s", self._drain_seconds)
        try:
            await self._admin.drain()
            async with asyncio.timeout(self._drain_seconds):
                await asyncio.sleep(min(_SETTLE, self._drain_seconds))
                await polling.until(self._is_quiet, self._drain_seconds)
                await self._workers.drain()
                await polling.until(self._is_quiet, self._drain_seconds)
        except AdminError as error:
            _log.warning("Envoy can't be drained: %s", error)
            await self._workers.drain()
            return False
        except TimeoutError:
            _log.warning("requests are still under way after %g s of draining", self._drain_seconds)
            await self._workers.drain()
            return False
        _log.info("drained")
        return True

    async def _is_quiet(self) -> bool:
        return (await self._admin.stats(_ACTIVE_ALONE)).get(_ACTIVE, "0") == "0"

    @staticmethod
    def _say(reply: http1.Reply, status: int, value: object) -> None:
        reply.whole(status, _JSON, msgspec.json.encode(value) + b"\n")
