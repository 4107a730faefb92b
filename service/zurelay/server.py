"""One worker process: the gRPC server on its address, and the line to the supervisor.

The supervisor writes one JSON object a line to standard input: configure, drain, report. Answers go to standard output.
When the line breaks, the supervisor is gone, and so goes the worker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from zurelay import budgets, envoy, keysfile, limits, settings, stores
from zurelay.claims import Claims
from zurelay.clock import WallClock
from zurelay.families import LIMIT_USED
from zurelay.grpcwire.calls import Method
from zurelay.grpcwire.health import Health
from zurelay.grpcwire.server import Server
from zurelay.log_service import LogService
from zurelay.loglines import LogLines
from zurelay.model import Key, Settings
from zurelay.otel import OtelError, Signal
from zurelay.recorder import LogRecorder
from zurelay.servicer import Processor
from zurelay.store import Store, StoreError, StoreUnavailableError
from zurelay.tally import Sample
from zurelay.telemetry import Sending
from zurelay.worker import Worker

if TYPE_CHECKING:
    from zurelay.grpcwire.over_grpcio import GrpcioServer

_log = logging.getLogger("zurelay")


_SIGNALS = frozenset({Signal.TRACES, Signal.LOGS})  # metrics are the supervisor's to send: it has those of all workers
_LAST_LINES = 1.0  # seconds that log lines may take at the end
_GATHER = 0.01  # seconds that requests which are over wait for others, before spans are made of them
_GARBAGE = 10_000  # objects between two looks for garbage: at the default, 700, they take 2 % of the worker's time
_BUDGETS = 15.0  # seconds between two looks at what is left of budgets


class Command(msgspec.Struct, kw_only=True):
    """What the supervisor says. `config` and `keys` are the files' texts: all workers read the same ones.

    leave: say that others should be asked. finish: take no more calls; those under way have `seconds`.
    """

    op: str
    config: str = ""
    keys: str = ""
    seconds: float = 0


class Reply(msgspec.Struct, kw_only=True):
    """What a worker says."""

    op: str
    problem: str | None = None
    samples: Sequence[Sample] = ()
    open: int = 0


class WorkerServer:
    """The process's one server."""

    def __init__(self, address: str, worker: Worker, recorder: LogRecorder) -> None:
        self._address = address
        self._worker = worker
        self._processor = Processor(worker)
        self._recorder = recorder
        self._sending = Sending(os.environ, _SIGNALS)
        self._finishing: asyncio.Task[None] | None = None
        self._health = Health()
        self._server: Server | GrpcioServer | None = None
        self._store: Store | None = None
        self._place: tuple[str | None, str | None] | None = None
        self._limited: tuple[Key, ...] = ()

    async def run(self) -> None:
        """Serve until the supervisor hangs up."""
        reader = await _standard_input()
        budget = asyncio.create_task(self._watch_budgets())
        while line := await reader.readline():
            reply = await self._obey(msgspec.json.decode(line, type=Command))
            sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
            sys.stdout.buffer.flush()
        budget.cancel()
        self._worker.stopping = True
        if self._server is not None:
            await self._server.stop()
        await _close(self._store)
        self._recorder.send_waiting()
        await asyncio.to_thread(self._sending.close)

    async def _obey(self, command: Command) -> Reply:
        if command.op == "configure":
            return await self._configure(command)
        if command.op == "drain":
            self._worker.draining = True
            self._health.set(serving=False)
            return Reply(op="draining")
        if command.op == "leave":
            self._health.set(serving=False)
            return Reply(op="leaving")
        if command.op == "finish" and self._server is not None and not isinstance(self._server, Server):
            self._worker.stopping = True
            self._finishing = asyncio.create_task(self._server.stop(command.seconds))
            return Reply(op="finishing")
        if command.op == "report":
            return Reply(op="report", samples=self._recorder.samples(), open=self._processor.open)
        return Reply(op="problem", problem=f"no such command: {command.op}")

    async def _configure(self, command: Command) -> Reply:
        try:  # in a thread: a large file takes a second to read, and streams must go on
            found, keys = await asyncio.to_thread(_read, command)
        except settings.SettingsError as error:
            return Reply(op="problem", problem=str(error))
        old = self._store
        try:
            await self._open(found)
        except StoreError as error:
            return Reply(op="problem", problem=str(error))
        try:
            exporter = self._sending.configure(found.telemetry)
        except OtelError as error:
            return Reply(op="problem", problem=str(error))
        self._recorder.configure(found, exporter)
        self._worker.configure(found, keys, self._store)
        self._limited = budgets.limited(keys)
        # What lives as long as the configuration is not looked through again for each hundred requests.
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        if old is not self._store:
            await _close(old)
        await self._listen(envoy.message_limit(found.limits))
        self._health.set(serving=not self._worker.draining)
        return Reply(op="configured")

    async def _listen(self, limit: int) -> None:
        """Listen once there is a configuration: Envoy would ask a worker that isn't ready first of all."""
        if self._server is None:
            methods = [
                *self._processor.methods(),
                *LogService(self._worker).methods(),
                *self._health.methods(),
            ]
            self._server = _transport(self._address, methods, limit, shared=self._worker.workers > 1)
            await self._server.start(self._address)
        elif isinstance(self._server, Server):  # grpcio's is fixed
            self._server.limit = limit

    async def _open(self, found: Settings) -> None:
        """Open the store, unless it is the one that is open."""
        if self._place != stores.place(found.store):
            self._store = await stores.open_store(found.store)
            self._place = stores.place(found.store)

    async def _watch_budgets(self) -> None:
        """Keep the gauges of budgets up to date."""
        while True:
            await asyncio.sleep(_BUDGETS)
            day = limits.day_of(WallClock().now())
            if self._store is None or not self._limited:
                self._recorder.tally.clear(LIMIT_USED)
                continue
            try:
                lines = await self._store.spending(budgets.first_day(day), day)
            except StoreUnavailableError:  # requests that need it say so
                continue
            budgets.count(self._recorder.tally, self._limited, lines, day)


def _transport(address: str, methods: list[Method[Any]], limit: int, *, shared: bool) -> Server | GrpcioServer:
    """Serve a Unix socket ourselves, HOST:PORT by grpcio (docs/decisions/0008)."""
    if "/" in address:
        return Server(methods, limit)
    from zurelay.grpcwire.over_grpcio import GrpcioServer  # noqa: PLC0415  # it takes longer to load than all the rest

    return GrpcioServer(methods, limit, shared=shared)


async def _close(store: Store | None) -> None:
    """Write what was settled there; what can't be written now is lost."""
    try:
        if store is not None:
            await store.close()
    except StoreUnavailableError as error:
        _log.error("the store is away, so that the last spend is lost: %s", error)


def _read(command: Command) -> tuple[Settings, tuple[Key, ...]]:
    found = settings.parse(command.config, environ=_AnyVariable(), readable=lambda _: True)
    return found, keysfile.bind(keysfile.parse(command.keys), found) if command.keys else ()


class _AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set: secrets are Envoy's to read, the supervisor has checked them."""

    def __getitem__(self, name: str) -> str:
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


async def _standard_input() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 30)
    loop.add_signal_handler(signal.SIGTERM, reader.feed_eof)  # so that the store is closed, whoever ends us
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    return reader


def main(address: str, egress: str, egress_token: str, workers: int, ends: str) -> None:
    """Run one worker in this process; `ends` is the file of the claims, which all workers share."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    lines = LogLines(sys.stderr.buffer)
    recorder = LogRecorder(lines, lambda do: asyncio.get_running_loop().call_later(_GATHER, do))
    worker = Worker(egress=egress, egress_token=egress_token, workers=workers, recorder=recorder, ends=Claims(ends))
    asyncio.run(WorkerServer(address, worker, recorder).run())
    lines.wait_until_written(_LAST_LINES)
