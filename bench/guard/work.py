"""The sidecar's own code under the recorded messages: no socket, no Envoy, no other process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.guard import recorded
from zurelay import plan, settings, wire
from zurelay.attempts import WholeProcessor
from zurelay.clock import WallClock
from zurelay.ingress import Ingress
from zurelay.loglines import LogLines
from zurelay.recorder import LogRecorder
from zurelay.relay import ATTEMPTS, ROUTE
from zurelay.store_sqlite import SqliteStore
from zurelay.worker import Worker

_CONFIG = {
    "providers": {"stub": {"base_url": "http://127.0.0.1:1/v1", "format": "openai"}},
    "models": {
        recorded.MODEL: {
            "routes": [{"provider": "stub", "model": recorded.UPSTREAM}],
            "context_window": 100_000,
            "price": {"input": 1, "output": 2},
        }
    },
    "auth": {"require": "none"},
}


class RecordedCall:
    """A call of Envoy's, as the transport gives it to a processor: parsed on reading, answers are bytes."""

    __slots__ = ("_messages", "metadata", "written")

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = iter(messages)
        self.metadata: dict[str, str] = {}
        self.written: list[bytes] = []

    async def read(self) -> wire.Request | None:
        """Give the next message."""
        data = next(self._messages, None)
        return None if data is None else wire.Request.FromString(data)

    async def write(self, data: bytes) -> None:
        """Take an answer."""
        self.written.append(data)


class _Egress(asyncio.Transport):
    """The egress listener as the relay's client sees it: answers a request piece by piece, one a turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, pieces: Sequence[bytes]) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._pieces = iter(pieces)
        self._begun = False

    def write(self, _: bytes | bytearray | memoryview) -> None:
        """Take a part of the request; the first one starts the answer."""
        if not self._begun:
            self._begun = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        piece = next(self._pieces, None)
        if piece is not None:
            self._protocol.data_received(piece)
            self._loop.call_soon(self._next)

    def abort(self) -> None:
        """Say no more."""
        self._pieces = iter(())

    def pause_reading(self) -> None:
        """Never: a piece a turn is never too much."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose Unix connections lead to the recorded stream."""

    pieces: Sequence[bytes] = ()

    async def create_unix_connection(  # type: ignore[override]  # the relay's way of calling it
        self, protocol_factory: Callable[[], asyncio.Protocol], *_: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect."""
        protocol = protocol_factory()
        transport = _Egress(self, protocol, self.pieces)
        protocol.connection_made(transport)
        return transport, protocol


@contextlib.contextmanager
def worker(directory: Path) -> Iterator[Worker]:
    """A worker as the process has one, its store and its log in a directory."""
    with (directory / "log").open("wb") as log:
        lines = LogLines(log)
        made = Worker(egress_socket="egress", egress_token="token", workers=1, recorder=LogRecorder(lines))  # noqa: S106  # opens nothing
        found = settings.parse(msgspec.json.encode(_CONFIG).decode(), environ={}, readable=lambda _: True)
        made.configure(found, (), SqliteStore(str(directory / "zurelay.db"), WallClock()))
        yield made
        lines.wait_until_written()


async def request(worker: Worker) -> list[bytes]:
    """One request with a whole answer: the ingress, then the attempt. Gives what Envoy is told."""
    ingress = RecordedCall(recorded.asked(stream=False))
    await Ingress(worker, ingress).serve()
    attempt = RecordedCall(recorded.answered(ingress.written[0]))
    await WholeProcessor(worker, attempt, first=True).serve()
    return ingress.written + attempt.written


async def stream(worker: Worker) -> list[bytes]:
    """One streamed request, as long as the loop's pieces."""
    ingress = RecordedCall(recorded.asked(stream=True))
    await Ingress(worker, ingress).serve()
    return ingress.written


def pieces(route: str, chunks: int) -> list[bytes]:
    """What the egress listener answers: a stream of so many chunks, each by itself."""
    head = recorded.egress_head({"x-zurelay-model": recorded.MODEL, ROUTE: route, ATTEMPTS: "1"})
    events = [recorded.OPENING, *[recorded.TOKEN] * chunks, recorded.ENDING]
    return [head, *map(recorded.chunked, events), recorded.LAST]


async def route(worker: Worker) -> str:
    """Ask for the route that answers."""
    ingress = RecordedCall(recorded.asked(stream=False))
    await Ingress(worker, ingress).serve()
    return plan.decode(recorded.plan_of(ingress.written[0])).attempts[0].cluster
