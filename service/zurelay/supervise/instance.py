"""The sidecar's parts put together: workers, Envoy's files, reload, status. What `up` and `sidecar` have in common."""

from __future__ import annotations

import asyncio
import collections
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from zurelay import envoy, http1, otel
from zurelay.supervise import machine
from zurelay.supervise.admin import Admin
from zurelay.supervise.agreement import Agreement
from zurelay.supervise.drain import Drain
from zurelay.supervise.fleet import Fleet, without
from zurelay.supervise.loading import Loaded, secret_variables
from zurelay.supervise.process import package_command
from zurelay.supervise.reload import Reloader
from zurelay.supervise.reporting import Reporting
from zurelay.supervise.rollout import Rollout
from zurelay.supervise.rundir import RunDirectory
from zurelay.supervise.status import Status

# What holds a large body goes back to the system when it is freed. Left to itself, glibc keeps it for the next one, and
# cuts it up meanwhile (mallopt(3), M_MMAP_THRESHOLD).
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
TOKEN_VARIABLE = "ZURELAY_EGRESS_TOKEN"  # noqa: S105  # its name, not its value
_STATUS_SOCKET = "status.sock"
_ENDS = "ends"
_FILES_A_STREAM = 4  # descriptors that Envoy takes for a relayed stream, and one to spare


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How one instance runs. `home` is where relative paths in the configuration start.

    `heap` is Envoy's, in bytes; `status_listen` is where the status is told without Envoy's help.
    """

    home: Path
    authorities: str
    drain_seconds: float
    open_files: int
    heap: int
    status_listen: tuple[str, int] | None = None


class Instance:
    """One instance. `watch` None is a configuration that doesn't change."""

    def __init__(
        self, directory: RunDirectory, loaded: Loaded, shape: Shape, watch: Path | None, load: Callable[[], Loaded]
    ) -> None:
        self.workers = loaded.settings.workers or max(1, machine.cores() // 2)
        self.directory = directory
        self.runtime = envoy.Runtime(
            directory=str(directory.path),
            worker_sockets=tuple(directory.file(f"worker-{number}.sock") for number in range(self.workers)),
            status_socket=directory.file(_STATUS_SOCKET),
            ca_bundle=shape.authorities,
            heap=shape.heap,
            concurrency=max(1, machine.cores() // 2),
            connections=min(10_000, shape.open_files // _FILES_A_STREAM),
            environ=otel.variables(os.environ),
        )
        self.admin = Admin(directory.file(envoy.ADMIN_SOCKET))
        self.fleet = Fleet(self.workers, self._launch)
        self.rollout = Rollout(directory, self.runtime, self.fleet, self.admin)
        self._reloader = Reloader(watch, load, self.rollout) if watch else None
        results = self._reloader.results if self._reloader else collections.Counter[str]()
        self.drain = Drain(self.fleet, self.admin, shape.drain_seconds)
        agreement = Agreement(self.rollout, self.runtime, self.admin)
        self.status = Status(self.fleet, self.rollout, agreement, self.admin, self.drain, results)
        self._server = http1.Server(self.status.handle)
        self._loaded = loaded
        self._shape = shape
        self._token = secrets.token_urlsafe(32)
        self._reporting = Reporting(self.status, lambda: self.rollout.loaded.settings.telemetry, os.environ)
        self._tasks: list[asyncio.Task[None]] = []

    def prepare(self) -> None:
        """Write Envoy's files, and start nothing."""
        self.rollout.write(self._loaded)

    async def start(self) -> None:
        """Write Envoy's files, start the workers, answer for the status, and watch for changes."""
        self.rollout.begin(self._loaded)
        await self._server.listen_unix(self.runtime.status_socket)
        self._tasks.append(asyncio.create_task(self._reporting.run()))
        if self._shape.status_listen is not None:
            await self._listen(*self._shape.status_listen)
        if self._reloader is not None:
            self._tasks.append(asyncio.create_task(self._reloader.run()))

    async def stop(self) -> None:
        """End all of it, the workers last."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reporting.close()
        await self.rollout.stop()
        await self._server.stop()
        await self.fleet.stop()

    async def _listen(self, host: str, port: int) -> None:
        try:
            await self._server.listen(host, port)
        except OSError as error:
            raise machine.PortTakenError(f"--status-listen {host}:{port} can't be listened on: {error}") from None

    def _launch(self, number: int) -> tuple[Sequence[str], Mapping[str, str], str]:
        socket = self.runtime.worker_sockets[number]
        Path(socket).unlink(missing_ok=True)  # left by one that died here
        egress = self.runtime.path(envoy.EGRESS_SOCKET)
        command = package_command("worker", socket, egress, str(self.workers), self.directory.file(_ENDS))
        environ = without(os.environ, secret_variables(self.rollout.loaded.settings))
        return command, {**_MEMORY, **environ, TOKEN_VARIABLE: self._token}, str(self._shape.home)
