"""The relay's HTTP/1.1 client to the egress listener: one request at a time on a connection.

httptools parses; the protocol only queues. Closing the connection cancels the provider's request (Envoy resets it); one
whose answer came to its end serves the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httptools
import msgspec

_LINGER = 1.0  # seconds that an answer may take to end behind its last event
_MOST_IDLE = 128  # connections that wait for their next request
_MOST_QUEUED = 1 << 20  # bytes: reading pauses here until the relay has caught up
# What is read at once, of one call after the other: as much of a hundred streams in flood keeps all else waiting for
# some hundredths of a second, and Envoy gives up a worker that is silent for one. The calls share the room, as what
# stands there is parsed before the next one reads.
_READ = memoryview(bytearray(32 << 10))


class Answer(msgspec.Struct, frozen=True):
    """The head of the answer."""

    status: int
    headers: dict[str, str]


class End(msgspec.Struct, frozen=True):
    """The answer is over; `clean` when its framing said so."""

    clean: bool


Event = Answer | bytes | End


class Egress:
    """The way to the egress listener, by the path of its Unix socket, or HOST:PORT."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: list[EgressCall] = []

    async def open(self, target: str, headers: Mapping[str, str], body: bytes) -> EgressCall:
        """Send a request, on a connection that is there or a new one; `target` is its path."""
        call = self._idle.pop() if self._idle else await self._connect()
        call.send(target, headers, body)
        return call

    async def _connect(self) -> EgressCall:
        loop = asyncio.get_running_loop()
        if "/" in self._address:
            _, call = await loop.create_unix_connection(self._made, self._address)
        else:
            host, _, port = self._address.rpartition(":")
            _, call = await loop.create_connection(self._made, host.strip("[]"), int(port))
        return call

    def _made(self) -> EgressCall:
        return EgressCall(self._idle)


class EgressCall(asyncio.BufferedProtocol):
    """One request under way. `next` gives what has come, or nothing when `deadline` passes.

    `again` is set where the connection has served before: it may have been closed just as the request went out.
    """

    def __init__(self, idle: list[EgressCall]) -> None:
        self.again = False
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._headers: dict[str, str] = {}
        self._events: list[Event] = []
        self._queued = 0
        self._paused = False
        self._over = False
        self._lasts = False  # the answer is over, and the connection isn't
        self._left = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def send(self, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Begin a request."""
        assert self._transport is not None  # noqa: S101  # it is connected
        self._events = []
        self._headers = {}  # trailers of the answer before
        self._over = self._lasts = self._left = False
        lines = [f"POST {target} HTTP/1.1", "host: egress", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._transport.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio's call)."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # narrows the type of asyncio's own object
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        """Give the place for what comes (asyncio's call)."""
        return _READ

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what came (asyncio's call)."""
        if self._lasts:
            self._spoil()
            return
        try:
            self._parser.feed_data(_READ[:nbytes])
        except httptools.HttpParserError:
            self._finish(clean=False)
            self._spoil()
        if self._queued > _MOST_QUEUED and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Note the end (asyncio's call)."""
        self._lasts = False
        if self in self._idle:
            self._idle.remove(self)
        self._finish(clean=False)
        self._wake()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header (httptools' call)."""
        self._headers[name.decode("latin-1").lower()] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        """Note the head (httptools' call); 1xx heads announce another."""
        status = self._parser.get_status_code()
        if self._over:
            self._spoil()
        elif status >= 200:  # noqa: PLR2004  # RFC 9110, 15.2
            self._events.append(Answer(status, self._headers))
        self._headers = {}

    def on_body(self, data: bytes) -> None:
        """Note bytes (httptools' call)."""
        if self._left or self._over:
            return
        self._queued += len(data)
        self._events.append(data)

    def on_message_complete(self) -> None:
        """Note the end (httptools' call)."""
        if self._parser.get_status_code() >= 200 and not self._over:  # noqa: PLR2004  # RFC 9110, 15.2
            self._lasts = self._parser.should_keep_alive()
            self._finish(clean=True)

    def _finish(self, *, clean: bool) -> None:
        if not self._over:
            self._over = True
            self._events.append(End(clean))
            if self._left:
                self._park()

    def _spoil(self) -> None:
        """Serve no more: it says what nobody asked for."""
        self._lasts = False
        self.close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, deadline: float) -> list[Event]:
        """Give the events that have come, waiting for one until `deadline` (the loop's time); bytes are joined."""
        if not self._events:
            self._waiter = self._loop.create_future()
            self._arm(deadline)
            await self._waiter
            self._waiter = None
        found, self._events, self._queued = _joined(self._events), [], 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return found

    def _arm(self, deadline: float) -> None:
        """Keep one timer that fires at or before the deadline: most waits end by data and never move it."""
        self._due = deadline
        if self._timer is None or self._timer.when() > deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._loop.time() >= self._due:
            self._wake()
        elif self._waiter is not None:
            self._arm(self._due)

    def close(self) -> None:
        """End the request, wherever it is: the provider's is cancelled."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """All that counts has come: let the answer end by itself, so that the connections stay of use."""
        if self._over:
            self._park()
            return
        self._left = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_LINGER, self.close)

    def _park(self) -> None:
        """Keep the connection for the next request."""
        if not self._lasts or len(self._idle) >= _MOST_IDLE:
            self.close()
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        self._queued = 0
        self.again = True
        self._idle.append(self)


def _joined(events: list[Event]) -> list[Event]:
    if len(events) < 2:  # noqa: PLR2004  # nothing to join
        return events
    found: list[Event] = []
    pieces: list[bytes] = []
    for event in events:
        if isinstance(event, bytes):
            pieces.append(event)
            continue
        if pieces:
            found.append(b"".join(pieces))
            pieces = []
        found.append(event)
    if pieces:
        found.append(b"".join(pieces))
    return found
