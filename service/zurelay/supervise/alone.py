"""The sidecar by itself, on TCP, for an Envoy that someone else configures: no files, no admin socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from zurelay import http1
from zurelay.model import Listen
from zurelay.supervise import machine, polling, ready, running, starting
from zurelay.supervise.fleet import Fleet, NotConfiguredError, without
from zurelay.supervise.instance import TOKEN_VARIABLE
from zurelay.supervise.loading import Loaded, secret_variables
from zurelay.supervise.process import package_command
from zurelay.supervise.reload import Reloader
from zurelay.supervise.rollout import RefusedError
from zurelay.supervise.running import FailedError, Kill
from zurelay.supervise.starting import Options
from zurelay.supervise.status import Status

_log = logging.getLogger("zurelay")

_START = 60.0
_SETTLE = 5.0  # seconds until an Envoy that watches health asks others
_SHORTEST_TOKEN = 32


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where it listens, where Envoy's egress listener is (HOST:PORT), the token by which that knows us.

    `ends` is the file that the workers share.
    """

    listen: tuple[str, int]
    egress: str
    token: str
    ends: str


class Direct:
    """Puts configurations in force in the workers alone: Envoy's part is its owner's."""

    def __init__(self, fleet: Fleet, loaded: Loaded) -> None:
        self.generation = 1
        self.loaded = loaded
        self._fleet = fleet

    async def change(self, loaded: Loaded) -> None:
        """Put another in force, or raise RefusedError."""
        try:
            await self._fleet.configure(loaded.text, loaded.keys_text)
        except NotConfiguredError as error:
            raise RefusedError(str(error)) from error
        self.loaded = loaded
        self.generation += 1

    async def disagreements(self) -> list[str]:
        """Say nothing: no Envoy is ours to ask."""
        return []


class NoEnvoy:
    """Stands where an Envoy would be asked."""

    async def problems(self) -> list[str]:
        """Find none: `zurelay check --envoy` does."""
        return []

    async def metrics(self) -> str:
        """Give nothing to add."""
        return ""


class Farewell:
    """The drain: readiness and health fail first; then connections are ended, and calls served to their end."""

    def __init__(self, fleet: Fleet, seconds: float) -> None:
        self._fleet = fleet
        self._seconds = seconds
        self._task: asyncio.Task[bool] | None = None

    @property
    def begun(self) -> bool:
        """Whether it was asked for."""
        return self._task is not None

    async def run(self) -> bool:
        """Drain, once; tell whether no call is under way any more."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await asyncio.shield(self._task)

    async def _run(self) -> bool:
        _log.info("draining, for at most %g s", self._seconds)
        settle = min(_SETTLE, self._seconds / 2)
        await self._fleet.leave()
        await asyncio.sleep(settle)
        await self._fleet.finish(self._seconds - settle)
        try:
            await polling.until(self._is_idle, self._seconds - settle)
        except TimeoutError:
            _log.warning("the time to drain is over, and calls are still under way")
            return False
        _log.info("drained")
        return True

    async def _is_idle(self) -> bool:
        return await self._fleet.open() == 0


class Alone:
    """One such sidecar."""

    def __init__(self, options: Options, place: Place, loaded: Loaded, load: Callable[[], Loaded]) -> None:
        self.workers = loaded.settings.workers or max(1, machine.cores() // 2)
        self.fleet = Fleet(self.workers, self._launch)
        self.drain = Farewell(self.fleet, options.drain_seconds)
        self._place = place
        self._config = options.config or Path()
        self._direct = Direct(self.fleet, loaded)
        self._reloader = Reloader(self._config, load, self._direct)
        nobody = NoEnvoy()
        status = Status(self.fleet, self._direct, nobody, nobody, self.drain, self._reloader.results)
        self._server = http1.Server(status.handle)
        self._status_listen = options.status_listen
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the workers, answer for the status, and watch for changes."""
        loaded = self._direct.loaded
        self.fleet.start(loaded.text, loaded.keys_text)
        if self._status_listen is not None:
            await self._server.listen(*self._status_listen)
        self._watcher = asyncio.create_task(self._reloader.run())

    async def stop(self) -> None:
        """End all of it, the workers last."""
        if self._watcher is not None:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        await self._server.stop()
        await self.fleet.stop()

    def _launch(self, number: int) -> tuple[Sequence[str], Mapping[str, str], str]:  # noqa: ARG002  # all share a port
        place = self._place
        command = package_command("worker", written(*place.listen), place.egress, str(self.workers), place.ends)
        environ = without(os.environ, secret_variables(self._direct.loaded.settings))
        return command, {**environ, TOKEN_VARIABLE: place.token}, str(self._config.absolute().parent)


def run_alone(options: Options, listen: tuple[str, int], egress: tuple[str, int]) -> int:
    """Run it until told to stop; gives the exit status."""
    return running.run(lambda kills: _alone(options, listen, egress, kills))


async def _alone(options: Options, listen: tuple[str, int], egress: tuple[str, int], kills: list[Kill]) -> None:
    place = Place(listen=listen, egress=written(*egress), token=_token(), ends=_shared())

    def load() -> Loaded:
        return starting.load(options, None, elsewhere=True)

    loaded = load()
    starting.check_store(options, loaded)
    starting.raise_file_limit()
    machine.check_free(Listen(host=listen[0], port=listen[1]), "--listen")
    alone = Alone(options, place, loaded, load)
    async with contextlib.AsyncExitStack() as stack:
        await running.start(alone, stack, kills)
        await ready.wait_for_workers(alone.fleet, _START)
        running.say(f"zurelay's sidecar is ready on {written(*listen)}")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await alone.drain.run()
            raise


def _shared() -> str:
    """Make a file that needs no file system: a pod's is read-only."""
    if not hasattr(os, "memfd_create"):
        return str(Path(tempfile.mkdtemp(prefix="zurelay-")) / "ends")
    return f"/proc/{os.getpid()}/fd/{os.memfd_create('ends')}"


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE, "")
    if len(token) < _SHORTEST_TOKEN:
        raise FailedError(
            f"{TOKEN_VARIABLE} must hold at least {_SHORTEST_TOKEN} characters, the same for every sidecar of"
            " one Envoy: with it the egress listener knows who calls. `openssl rand -hex 32` makes one."
        )
    return token


def written(host: str, port: int) -> str:
    """Write an address as HOST:PORT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
