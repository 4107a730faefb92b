"""Notices that the configuration file or the keys file changed, and puts what they say in force (SPEC 13).

Files are read once a second and compared: that sees an edit, a rename over the file and a swapped symlink (Kubernetes
replaces `..data`) alike, on every file system, where notifications of the system miss some.
"""

from __future__ import annotations

import asyncio
import collections
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from zurelay.supervise.loading import Loaded, LoadError
from zurelay.supervise.rollout import RefusedError

_log = logging.getLogger("zurelay")

_LOOK = 1.0
_STILL = 0.25  # seconds without a change: an editor may write in pieces
_RETRY = 5  # looks until what was refused is tried again: a missing secret may have come, a name may resolve


class Rollout(Protocol):
    """What puts configurations in force."""

    @property
    def loaded(self) -> Loaded:
        """The one in force."""

    async def change(self, loaded: Loaded) -> None:
        """Put another in force, or raise RefusedError."""


class Reloader:
    """Watches one configuration. `results` counts what became of its changes: applied or refused."""

    def __init__(self, path: Path, load: Callable[[], Loaded], rollout: Rollout) -> None:
        self.results: collections.Counter[str] = collections.Counter(applied=0, refused=0)
        self._path = path
        self._load = load
        self._rollout = rollout
        self._complaint = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        seen = self._read()
        looks = 0
        while True:
            await asyncio.sleep(_LOOK)
            looks += 1
            if self._read() != seen:
                await self._settled()
            elif not (self._complaint and looks % _RETRY == 0):
                continue
            # What is read before the attempt is what the next look is compared with: no change falls between.
            seen = self._read()
            await self._attempt()

    def _read(self) -> list[bytes | str]:
        """Read the watched files; what can't be read is told by its error."""
        keys = self._rollout.loaded.settings.auth.keys
        return [_content(path) for path in (self._path, *([Path(keys)] if keys else []))]

    async def _settled(self) -> None:
        """Wait for the end of writing, but not for ever."""
        for _ in range(8):
            before = self._read()
            await asyncio.sleep(_STILL)
            if self._read() == before:
                return

    async def _attempt(self) -> None:
        """Put what the files say in force. Nothing that goes wrong here may end the watch, or the service."""
        old = self._rollout.loaded
        try:
            loaded = await asyncio.to_thread(self._load)
            if loaded == old:
                if self._complaint:
                    _log.info("%s: says again what is in force", self._path)
                self._complaint = ""
                return
            await self._rollout.change(loaded)
        except (LoadError, RefusedError) as error:
            self._refuse(str(error))
            return
        except Exception as error:  # noqa: BLE001  # see above
            _log.exception("a fault of zurelay's own")
            self._refuse(f"a fault of zurelay's own: {error!r}")
            return
        self._complaint = ""
        self.results["applied"] += 1
        _log.info("%s: the change is in force", self._path)
        for line in need_restart(old, loaded):
            _log.warning("%s: %s", self._path, line)

    def _refuse(self, complaint: str) -> None:
        if complaint == self._complaint:
            return
        self._complaint = complaint
        self.results["refused"] += 1
        _log.error("%s: the change is refused, what was in force stays", self._path)
        for line in complaint.splitlines():
            _log.error("%s", line)


def need_restart(old: Loaded, new: Loaded) -> list[str]:
    """Name what changed and isn't taken up while running."""
    names = ("workers", "telemetry")
    return [
        f"{name} changed: it takes effect at the next start"
        for name in names
        if getattr(old.settings, name) != getattr(new.settings, name)
    ]


def _content(path: Path) -> bytes | str:
    try:
        return path.read_bytes()
    except OSError as error:
        return str(error)
