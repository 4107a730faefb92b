"""Sees that Envoy is what the sidecar needs, at its start and after each change: readiness waits for it (SPEC 2)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Protocol

import msgspec

from zurelay import contract, envoy
from zurelay.model import Settings
from zurelay.supervise.admin import Admin, AdminError
from zurelay.supervise.loading import Loaded

_log = logging.getLogger("zurelay")

_UPTIME = "server.uptime"
_UPTIME_ALONE = r"^server\.uptime$"
# Seconds that two calculations of an Envoy's start may differ by: its uptime is told in whole ones.
_SAME_START = 2.0
# Paths aren't compared: every Envoy has its own.
_SOMEWHERE = envoy.Runtime(directory="/run", worker_sockets=("/run/w",), status_socket="/run/s", ca_bundle="/run/ca")


class Rollout(Protocol):
    """What is asked of the rollout."""

    generation: int

    @property
    def loaded(self) -> Loaded:
        """The configuration in force."""


class Agreement:
    """One instance's. What was found good is looked at again when Envoy or the configuration is another."""

    def __init__(self, rollout: Rollout, runtime: envoy.Runtime, admin: Admin) -> None:
        self._rollout = rollout
        self._runtime = runtime
        self._admin = admin
        self._good: tuple[int, float] | None = None  # generation, and when Envoy started
        self._told: list[str] = []
        self._looking: asyncio.Task[list[str]] | None = None

    async def problems(self) -> list[str]:
        """Name every difference; none is agreement. A new one is logged once.

        With thousands of clusters it may take longer than a probe waits: the next one gets what this one began.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> list[str]:
        try:
            started = time.monotonic() - float((await self._admin.stats(_UPTIME_ALONE)).get(_UPTIME, "0"))
            if self._is_good(started):
                return []
            generation = self._rollout.generation
            found = await compare(self._rollout.loaded.settings, self._runtime, self._admin)
        except (AdminError, contract.NotEnvoyError) as error:
            return [str(error)]
        self._good = None if found else (generation, started)
        self._tell(found)
        return found

    def _is_good(self, started: float) -> bool:
        if self._good is None:
            return False
        generation, before = self._good
        return generation == self._rollout.generation and abs(started - before) < _SAME_START

    def _tell(self, found: list[str]) -> None:
        for problem in found:
            if problem not in self._told:
                _log.error("Envoy isn't as the sidecar needs it: %s", problem)
        if self._told and not found:
            _log.info("Envoy is as the sidecar needs it")
        self._told = found


async def compare(settings: Settings, runtime: envoy.Runtime | None, admin: Admin) -> list[str]:
    """Ask an Envoy about itself, and compare. Without a `runtime` it is someone else's, who knows where workers are."""
    return await asyncio.to_thread(_compare, settings, runtime, await admin.about())


def _compare(settings: Settings, runtime: envoy.Runtime | None, answers: list[str]) -> list[str]:
    try:
        found = contract.envoy(*map(msgspec.json.decode, answers))
    except msgspec.DecodeError as error:
        raise contract.NotEnvoyError(f"what answers isn't an Envoy's admin interface: {error}") from None
    return contract.problems(wanted(settings, runtime), found)


def wanted(settings: Settings, runtime: envoy.Runtime | None) -> contract.Wanted:
    """Say what we would write ourselves."""
    run = runtime or _SOMEWHERE
    boot = msgspec.json.decode(envoy.bootstrap(run))
    (sidecar,) = (cluster for cluster in boot["static_resources"]["clusters"] if cluster["name"] == "sidecar")
    if runtime is None:
        del sidecar["load_assignment"]
    return contract.Wanted.of(
        listeners=_resources(envoy.listeners(settings, run)),
        clusters=[one for one in _resources(envoy.clusters(settings, run)) if not envoy.is_collector(one["name"])],
        sidecar=sidecar,
        message_limit=envoy.message_limit(settings.limits),
    )


def _resources(text: str) -> list[Any]:
    found: list[Any] = msgspec.json.decode(text)["resources"]
    return found
