"""A worker's server without its sockets: Envoy's frames come from memory, and so does what the relay is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hpack

from zurelay.grpcwire.connection import Connection
from zurelay.grpcwire.messages import framed
from zurelay.grpcwire.server import Server
from zurelay.http2.frames import NUMBER, Flag, Kind, Setting, frame, setting
from zurelay.http2.reader import PREFACE
from zurelay.servicer import Processor
from zurelay.worker import Worker

_LIMIT = 1 << 20  # bytes of a message
_WIDE = NUMBER - (1 << 16)  # a window that never counts
_HEADERS = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/envoy.service.ext_proc.v3.ExternalProcessor/Process"),
    (":authority", "sidecar"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
)


class _Memory(asyncio.Transport):
    """A transport that ends in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes."""
        self.written.append(bytes(data))

    def abort(self) -> None:
        """There is nothing to end."""

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


class _Egress(_Memory):
    """The egress listener as the relay's client sees it: answers requests piece by piece, one a turn of the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BufferedProtocol, pieces: Sequence[bytes]
    ) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._answer = pieces
        self._pieces: Iterator[bytes] = iter(())

    def write(self, data: bytes | bytearray | memoryview) -> None:  # noqa: ARG002  # a transport's signature
        """Take a request, which comes in one write, and start its answer."""
        self._pieces = iter(self._answer)
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        piece = next(self._pieces, None)
        if piece is not None:
            memoryview(self._protocol.get_buffer(-1))[: len(piece)] = piece
            self._protocol.buffer_updated(len(piece))
            self._loop.call_soon(self._next)

    def abort(self) -> None:
        """Say no more."""
        self._pieces = iter(())


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose Unix connections lead to an egress listener that answers with `pieces`."""

    pieces: Sequence[bytes] = ()

    async def create_unix_connection(  # type: ignore[override]  # the relay's way of calling it
        self, protocol_factory: Callable[[], asyncio.BufferedProtocol], *_: Any
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect."""
        protocol = protocol_factory()
        transport = _Egress(self, protocol, self.pieces)
        protocol.connection_made(transport)
        return transport, protocol


class Sidecar:
    """One connection of Envoy's to a worker."""

    def __init__(self, worker: Worker) -> None:
        """Connect; in a running loop."""
        self._encoder = hpack.Encoder()
        self._number = -1
        self._transport = _Memory()
        self._connection = Connection(Server(Processor(worker).methods(), _LIMIT))
        self._connection.connection_made(self._transport)
        window = frame(Kind.SETTINGS, 0, 0, setting.pack(Setting.WINDOW, _WIDE))
        self._connection.data_received(PREFACE + window + frame(Kind.UPDATE, 0, 0, _WIDE.to_bytes(4)))

    async def call(self, phase: str, messages: Sequence[bytes]) -> list[bytes]:
        """Make a call to its end, all its messages at once; gives the frames that answer."""
        self._number += 2
        self._transport.written = []
        block = self._encoder.encode([*_HEADERS, ("phase", phase)])
        head = frame(Kind.HEADERS, Flag.END_HEADERS, self._number, block)
        data = b"".join(framed(message) for message in messages)
        self._connection.data_received(head + frame(Kind.DATA, Flag.END_STREAM, self._number, data))
        (task,) = self._connection.tasks
        await task
        await asyncio.sleep(0)  # what was said last is written at the end of a turn
        return self._transport.written


def told(written: Sequence[bytes]) -> list[bytes]:
    """Read the messages out of frames."""
    taken, body = b"".join(written), b""
    while taken:
        size = int.from_bytes(taken[:3])
        if taken[3] == Kind.DATA:
            body += taken[9 : 9 + size]
        taken = taken[9 + size :]
    found = []
    while body:
        size = int.from_bytes(body[1:5])
        found.append(body[5 : 5 + size])
        body = body[5 + size :]
    return found
