"""One connection of our own server's: what HTTP/2 says is carried out, what calls write goes to the socket."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol, cast

from zurelay import http2
from zurelay.grpcwire.call import OwnCall
from zurelay.grpcwire.calls import Call, CallError, Code, Method

_log = logging.getLogger("zurelay")

_UNWRITTEN = 1 << 16  # bytes that gather before they are written; beyond, calls wait as soon as the socket is full
_LINGER = 1.0  # seconds that a peer has to read why its connection ends
_CONTENT_TYPE = (b"content-type", b"application/grpc")
_UNSUPPORTED = ((b":status", b"415"), (b"content-type", b"text/plain"))  # gRPC over HTTP2, Requests
_NOT_PLAIN = re.compile(rb"[^ -$&-~]")  # what a message's bytes are percent-encoded for
# A call that its client cut hears nothing; else it was we who cancelled it. Envoy asks another worker.
_STOPPED = Code.UNAVAILABLE, "this worker stops"
_MOST_TOLD = 1_000  # bytes of a message


class Host(Protocol):
    """What a connection needs of its server."""

    methods: dict[str, Method[Any]]
    limit: int
    connections: set[Connection]


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, host: Host) -> None:
        self.loop = asyncio.get_running_loop()
        self._host = host
        self._http2 = http2.Connection()
        self._calls: dict[int, tuple[OwnCall[Any], asyncio.Task[None]]] = {}
        self._transport: asyncio.Transport | None = None
        self._flushing = False
        self._full = False  # the socket takes no more for now
        self._over = False
        self._last = 0  # the call that sent last
        self.closed: asyncio.Future[None] = self.loop.create_future()
        host.connections.add(self)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The calls under way."""
        return [task for _, task in self._calls.values()]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio's call)."""
        self._transport = cast("asyncio.Transport", transport)
        if self._over:  # the server has stopped meanwhile
            self._transport.abort()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """End every call (asyncio's call)."""
        self._over = True
        self._host.connections.discard(self)
        self.closed.set_result(None)
        for task in self.tasks:
            task.cancel()

    def pause_writing(self) -> None:
        """Wait with messages (asyncio's call). Who took the last room waits behind all others, else some starve."""
        self._full = True
        if self._last in self._calls:
            self._calls[self._last] = self._calls.pop(self._last)

    def resume_writing(self) -> None:
        """Go on (asyncio's call)."""
        self._full = False
        self._flush_soon()
        self._writable(0)

    def data_received(self, data: bytes) -> None:
        """Carry out what the peer says (asyncio's call)."""
        if self._over:
            return
        try:
            events = self._http2.feed(data, self.loop.time())
        except http2.ConnectionFault as fault:
            _log.error("a gRPC connection is given up: %s", fault)
            self._http2.give_up(fault)
            self.close()
            return
        for event in events:
            self._obey(event)
        self._flush_soon()

    def _obey(self, event: http2.Event) -> None:
        if isinstance(event, http2.Opened):
            self._open(event.stream, event.headers)
            return
        if isinstance(event, http2.Writable):
            self._writable(event.stream)
            return
        found = self._calls.get(event.stream)
        if found is None:
            return
        call, task = found
        if isinstance(event, http2.Received):
            call.received(event.data)
        elif isinstance(event, http2.Ended):
            call.ended()
        else:
            task.cancel()

    def _open(self, number: int, headers: Mapping[str, str]) -> None:
        if headers[":method"] != "POST" or not headers.get("content-type", "").startswith("application/grpc"):
            self._http2.begin(number, *_UNSUPPORTED, end=True)
            self._http2.close(number)
            return
        method = self._host.methods.get(headers[":path"], _NO_METHOD)
        call = OwnCall(self, number, headers, method.parse, self._host.limit)
        task = self.loop.create_task(_serve(method, call))
        self._calls[number] = call, task
        task.add_done_callback(functools.partial(self._end, number, call))

    def _end(self, number: int, call: OwnCall[Any], task: asyncio.Task[None]) -> None:
        """End a call as its task ended. A bug ends this call alone."""
        code, message = _STOPPED if task.cancelled() else _status(task.exception())
        del self._calls[number]
        trailers = [(b"grpc-status", b"%d" % code)]
        if message:
            trailers.append((b"grpc-message", _NOT_PLAIN.sub(_percent, message.encode()[:_MOST_TOLD])))
        if call.begun:
            self._http2.close(number, *trailers)
        else:  # all in one: Trailers-Only
            self._http2.begin(number, _CONTENT_TYPE, *trailers, end=True)
            self._http2.close(number)
        self._flush_soon()

    def _writable(self, number: int) -> None:
        if not number:
            for call, _ in self._calls.values():
                call.writable()
        elif number in self._calls:
            self._calls[number][0].writable()

    def begin(self, number: int) -> None:
        """Begin an answer."""
        self._http2.begin(number, _CONTENT_TYPE)

    def send(self, number: int, data: bytes | memoryview) -> int:
        """Send what there is room for; of much only a piece, as each is held again until the socket has it."""
        if self._full:
            return 0
        self._last = number
        sent = self._http2.send(number, data if len(data) <= _UNWRITTEN else memoryview(data)[:_UNWRITTEN])
        if self._http2.waiting > _UNWRITTEN:
            self._flush()
        else:
            self._flush_soon()
        return sent

    def grant(self, number: int, size: int) -> None:
        """Let more of a call's messages come."""
        self._http2.grant(number, size)
        self._flush_soon()

    def _flush_soon(self) -> None:
        """Write once, after all that can run now has run."""
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write, unless the socket is full: what gathers then is bounded by windows, and by the peer's own frames."""
        self._flushing = False
        if self._transport is not None and not self._full and not self._over and (out := self._http2.take()):
            self._transport.write(out)

    def leave(self) -> None:
        """Take no new calls."""
        self._http2.leave()
        self._flush_soon()

    def close(self) -> None:
        """End the connection, once what is to be said has been read, or not in time."""
        if self._over:
            return
        self._over = True
        if self._transport is None:
            return
        for task in self.tasks:
            task.cancel()
        self._transport.write(self._http2.take())
        self._transport.close()
        self.loop.call_later(_LINGER, self._transport.abort)


async def _serve(method: Method[Any], call: OwnCall[Any]) -> None:
    await method.serve(call)


async def _no_method(_: Call[bytes]) -> None:
    raise CallError(Code.UNIMPLEMENTED, "there is no such method here")


_NO_METHOD = Method[bytes]("", bytes, _no_method)


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def _status(error: BaseException | None) -> tuple[Code, str]:
    """Give what a call ends with, and log what is our mistake."""
    if error is None:
        return Code.OK, ""
    if isinstance(error, CallError):
        _log.warning("a call is refused: %s", error)
        return error.code, str(error)
    _log.error("a call failed", exc_info=error)
    return Code.UNKNOWN, "the call failed: see the log"
