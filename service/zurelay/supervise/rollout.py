"""Puts a configuration in force without dropping a request: Envoy's files, the workers, and later what is old goes.

A plan that names a cluster which isn't there ends at once (Envoy 1.40). So the clusters of the old and the new catalog
stand side by side from before the workers change until every request that began with the old one has been answered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import msgspec

from zurelay import envoy
from zurelay.envoy import templates
from zurelay.model import Listen
from zurelay.supervise import machine, polling
from zurelay.supervise.admin import Admin, AdminError, EnvoyAwayError
from zurelay.supervise.fleet import Fleet, NotConfiguredError
from zurelay.supervise.loading import Loaded
from zurelay.supervise.rundir import RunDirectory

_log = logging.getLogger("zurelay")

_TAKE = 30.0  # seconds for Envoy to take a file; 6,000 clusters take it 10 (measured)
_WARM = 10.0  # seconds for Envoy to find the addresses of new providers
_MARGIN = 30.0  # seconds after `total` until the clusters of an old catalog go
_FILES = {"cluster_manager.cds": envoy.CLUSTERS_FILE, "listener_manager.lds": envoy.LISTENERS_FILE}
_CLUSTERS, _LISTENERS = _FILES
_WARMING = "cluster_manager.warming_clusters"
_STATS = r"^(cluster_manager\.cds|listener_manager\.lds)\.(version_text|update_rejected)$|\.warming_clusters$"


class RefusedError(Exception):
    """A configuration can't be put in force; the old one stays."""


class NotYetError(RefusedError):
    """Envoy is still looking for new providers; another try may find them."""


class Rollout:
    """What is in force, and how it changes. `admin` is the way to Envoy's own view."""

    def __init__(self, directory: RunDirectory, runtime: envoy.Runtime, fleet: Fleet, admin: Admin) -> None:
        self.generation = 0
        self._directory = directory
        self._runtime = runtime
        self._fleet = fleet
        self._admin = admin
        self._loaded: Loaded | None = None
        self._clusters: list[Any] = []  # those of the catalog in force
        self._old: dict[str, tuple[Any, float]] = {}  # clusters that no new plan names, and when they may go
        self._turn = asyncio.Lock()
        self._before: dict[str, str] = {}  # the files' versions before a change that is under way
        self._pruner: asyncio.Task[None] | None = None

    @property
    def loaded(self) -> Loaded:
        """The configuration in force."""
        assert self._loaded is not None  # noqa: S101  # `begin` comes first
        return self._loaded

    def begin(self, loaded: Loaded) -> None:
        """Start the workers, and write all files before Envoy starts."""
        self._loaded = loaded
        self._fleet.start(loaded.text, loaded.keys_text)
        self.write(loaded)

    def write(self, loaded: Loaded) -> None:
        """Write all files, for an Envoy that starts afterwards."""
        self._directory.write(envoy.BOOTSTRAP_FILE, envoy.bootstrap(self._runtime))
        self._write_secrets(loaded)
        self._clusters = self._make_clusters(loaded)
        self._directory.write(envoy.CLUSTERS_FILE, self._with_old(self._clusters))
        self._directory.write(envoy.LISTENERS_FILE, envoy.listeners(loaded.settings, self._runtime))
        self.generation = 1

    async def change(self, loaded: Loaded) -> None:
        """Put another configuration in force, or raise RefusedError."""
        async with self._turn:
            self._before = self._versions()
            try:
                clusters = await asyncio.to_thread(self._make_clusters, loaded)
                await self._change(loaded, clusters)
            except NotYetError:
                raise
            except Exception:
                self._restore()
                raise
            finally:
                self._before = {}
            self._loaded, self._clusters = loaded, clusters
            self.generation += 1
            if self._pruner is None or self._pruner.done():
                self._pruner = asyncio.create_task(self._prune())

    async def disagreements(self) -> list[str]:
        """Say which of its files Envoy hasn't taken; none is agreement."""
        try:
            stats = await self._admin.stats(_STATS)
        except AdminError as error:
            return [str(error)]
        wanted = self._versions()
        return [
            f"Envoy hasn't taken {name} as it was written; its log may say why"
            for stat, name in _FILES.items()
            if stats.get(f"{stat}.version_text") not in (wanted[stat], self._before.get(stat))
        ]

    async def rejected(self) -> bool:
        """Tell whether Envoy said no to a file."""
        try:
            stats = await self._admin.stats(_STATS)
        except AdminError:
            return False
        return any(stats.get(f"{stat}.update_rejected", "0") != "0" for stat in _FILES)

    async def stop(self) -> None:
        """Leave things as they are."""
        if self._pruner is not None:
            self._pruner.cancel()
            await asyncio.wait({self._pruner})

    async def _change(self, loaded: Loaded, clusters: list[Any]) -> None:
        self._check_ports(loaded)
        self._write_secrets(loaded)
        until = time.monotonic() + max(each.settings.timeouts.total for each in (self.loaded, loaded)) + _MARGIN
        await self._take(_CLUSTERS, await asyncio.to_thread(self._both, clusters, until))
        await self._warm()
        await self._take(_LISTENERS, envoy.listeners(loaded.settings, self._runtime))
        try:
            await self._fleet.configure(loaded.text, loaded.keys_text)
        except NotConfiguredError as error:
            raise RefusedError(str(error)) from error

    def _restore(self) -> None:
        self._write_secrets(self.loaded)
        self._directory.write(envoy.CLUSTERS_FILE, self._both(self._clusters, time.monotonic()))
        self._directory.write(envoy.LISTENERS_FILE, envoy.listeners(self.loaded.settings, self._runtime))

    def _check_ports(self, loaded: Loaded) -> None:
        before = {(listen.host, listen.port) for listen in _addresses(self.loaded).values()}
        for setting, listen in _addresses(loaded).items():
            if (listen.host, listen.port) in before:
                continue
            try:
                machine.check_free(listen, setting)
            except machine.PortTakenError as error:
                raise RefusedError(str(error)) from error

    def _write_secrets(self, loaded: Loaded) -> None:
        for name, text in envoy.secrets(loaded.settings).items():
            self._directory.write(name, text)

    def _both(self, new: list[Any], until: float) -> str:
        """Write a catalog's clusters, and behind them those that only the ones before it have."""
        before = {cluster["name"]: (cluster, until) for cluster in self._clusters}
        names = {cluster["name"] for cluster in new}
        self._old = {name: old for name, old in {**before, **self._old}.items() if name not in names}
        return self._with_old(new)

    def _make_clusters(self, loaded: Loaded) -> list[Any]:
        found: list[Any] = msgspec.json.decode(envoy.clusters(loaded.settings, self._runtime))["resources"]
        return found

    def _with_old(self, clusters: list[Any]) -> str:
        return templates.discovery([*clusters, *(cluster for cluster, _ in self._old.values())])

    async def _take(self, stat: str, text: str) -> None:
        """Write a file and wait until Envoy has taken it."""
        name, version = _FILES[stat], _version(text)
        try:
            rejected = (await self._admin.stats(_STATS)).get(f"{stat}.update_rejected")
            if self._directory.write(name, text):
                await polling.until(lambda: self._has_taken(stat, version, rejected), _TAKE)
        except EnvoyAwayError as error:
            self._directory.write(name, text)
            _log.warning("Envoy takes %s when it is back: %s", name, error)
        except AdminError as error:
            raise RefusedError(str(error)) from error
        except TimeoutError:
            raise RefusedError(f"Envoy hasn't taken {name} within {_TAKE:g} s; its log may say why") from None

    async def _has_taken(self, stat: str, version: str, rejected: str | None) -> bool:
        stats = await self._stats()
        if stats and stats.get(f"{stat}.update_rejected") != rejected:
            raise RefusedError("Envoy refuses the configuration; its log says why")
        return stats.get(f"{stat}.version_text") == version

    async def _warm(self) -> None:
        """Wait until the addresses of new providers are known: a cluster can't be used before."""
        try:
            await polling.until(self._is_warm, _WARM)
        except EnvoyAwayError as error:
            _log.warning("new providers aren't waited for: %s", error)
        except TimeoutError:
            raise NotYetError(f"no address for a new provider within {_WARM:g} s; it is tried again") from None

    async def _is_warm(self) -> bool:
        return (await self._stats()).get(_WARMING) == "0"

    async def _stats(self) -> dict[str, str]:
        """Ask Envoy; while it takes thousands of clusters it can't answer, and there is nothing to tell."""
        try:
            return await self._admin.stats(_STATS)
        except EnvoyAwayError:
            raise
        except AdminError:
            return {}

    def _versions(self) -> dict[str, str]:
        return {stat: _version(self._directory.written(name) or "{}") for stat, name in _FILES.items()}

    async def _prune(self) -> None:
        """Remove old clusters, each when its time has come, and the secrets that went with them."""
        while self._old:
            first = min(until for _, until in self._old.values())
            await asyncio.sleep(max(0.0, first - time.monotonic()))
            async with self._turn:
                now = time.monotonic()
                self._old = {name: old for name, old in self._old.items() if old[1] > now}
                self._directory.write(envoy.CLUSTERS_FILE, self._with_old(self._clusters))
        wanted = envoy.secrets(self.loaded.settings)
        for name in self._directory.names:
            if name.startswith("secret.") and name not in wanted:
                self._directory.remove(name)


def _addresses(loaded: Loaded) -> dict[str, Listen]:
    return {"listen": loaded.settings.listen, "status": loaded.settings.status}


def _version(text: str) -> str:
    return str(msgspec.json.decode(text).get("version_info", ""))
