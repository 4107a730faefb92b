"""Answers /readyz, /metrics, /stats/prometheus and /drain for Envoy's status listener, and /livez (SPEC 2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

import msgspec

from zurelay import families, http1, tally
from zurelay.supervise.admin import AdminError
from zurelay.tally import Family, Totals

_log = logging.getLogger("zurelay")

_JSON = (("content-type", "application/json"),)
_PROMETHEUS = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
# A hook of Kubernetes can only GET.
_METHODS = {
    "/livez": ("GET", "HEAD"),
    "/readyz": ("GET", "HEAD"),
    "/metrics": ("GET", "HEAD"),
    "/stats/prometheus": ("GET", "HEAD"),
    "/drain": ("GET", "POST"),
}


class Workers(Protocol):
    """What is asked of the fleet."""

    size: int
    restarts: int

    @property
    def serving(self) -> int:
        """How many workers serve."""

    async def totals(self) -> Totals:
        """Sum what they counted."""


class Rollout(Protocol):
    """What is asked of the rollout."""

    generation: int

    async def disagreements(self) -> list[str]:
        """Say in what Envoy isn't where it should be."""


class Agreement(Protocol):
    """What is asked of the contract with Envoy."""

    async def problems(self) -> list[str]:
        """Say in what Envoy isn't as the sidecar needs it."""


class Admin(Protocol):
    """What is asked of Envoy."""

    async def metrics(self) -> str:
        """Give all statistics as Prometheus reads them."""


class Drain(Protocol):
    """What is asked of the drain."""

    @property
    def begun(self) -> bool:
        """Whether it was asked for."""

    async def run(self) -> bool:
        """Drain, and tell whether it went well."""


class Status:
    """The status of one instance. `reloads` counts reloads by result."""

    def __init__(
        self,
        workers: Workers,
        rollout: Rollout,
        agreement: Agreement,
        admin: Admin,
        drain: Drain,
        reloads: Mapping[str, int],
    ) -> None:
        self._workers = workers
        self._rollout = rollout
        self._agreement = agreement
        self._admin = admin
        self._drain = drain
        self._reloads = reloads

    async def handle(self, request: http1.Request, reply: http1.Reply) -> None:
        """Answer one request."""
        allowed = _METHODS.get(request.path)
        if allowed is None:
            self._say(reply, 404, {"problems": [f"not here: {', '.join(_METHODS)}"]})
        elif request.method not in allowed:
            reply.whole(405, (("allow", ", ".join(allowed)),), b"")
        elif request.path == "/livez":
            self._say(reply, 200, {"live": True})
        elif request.path == "/readyz":
            problems = await self.problems()
            self._say(reply, 503 if problems else 200, {"ready": not problems, "problems": problems})
        elif request.path == "/metrics":
            reply.whole(200, _PROMETHEUS, (await self.metrics()).encode())
        elif request.path == "/stats/prometheus":
            reply.whole(200, _PROMETHEUS, (await self._envoys()).encode())
        else:
            self._say(reply, 200, {"drained": await self._drain.run()})

    async def problems(self) -> list[str]:
        """Say why no request should be sent here."""
        found = ["draining"] if self._drain.begun else []
        if not self._workers.serving:
            found.append(f"none of {self._workers.size} workers serves yet")
        # Before Envoy has all of its files there is nothing to compare.
        return found + (await self._rollout.disagreements() or await self._agreement.problems())

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

    @staticmethod
    def _say(reply: http1.Reply, status: int, value: object) -> None:
        reply.whole(status, _JSON, msgspec.json.encode(value) + b"\n")
