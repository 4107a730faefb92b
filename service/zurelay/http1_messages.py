"""What an HTTP/1.1 server hands to a handler: the `Request`, whole, and the `Reply`, which can be cut and reset too."""

from __future__ import annotations

import asyncio
import email.utils
import http
import socket
import struct
from collections.abc import Iterable
from typing import Protocol

import msgspec

_FULL = 32 << 10  # bytes worth a write of their own
_NO_BODY = frozenset({204, 304})  # RFC 9110, 6.4.1
_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}


class Wire(Protocol):
    """What a reply needs of its connection."""

    transport: asyncio.Transport
    writable: asyncio.Event
    left: bool


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most of a request that is held, in bytes, and the seconds that it may take to arrive."""

    head: int = 64 << 10
    body: int = 64 << 20
    seconds: float = 60.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, whole. `connection` counts the server's connections from 1; `refusal` is a status for a bad one."""

    connection: int
    method: str = ""
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    keep_alive: bool = False
    http10: bool = False
    refusal: int = 0

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Find the first header of this lower-case name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Reply:
    """The answer to one request: `start`, `send`, `finish`, or `whole`; or a bad end by `close` or `reset`."""

    __slots__ = ("_chunked", "_missing", "_out", "_request", "_size", "_wire", "closing", "finished", "sent", "status")

    def __init__(self, wire: Wire, request: Request) -> None:
        self._wire = wire
        self._request = request
        self._out: list[bytes] = []
        self._size = 0
        self._chunked = False
        self._missing = 0
        self.closing = not request.keep_alive
        self.status: int | None = None
        self.finished = False
        self.sent = 0

    @property
    def left(self) -> bool:
        """Whether the client went before the end."""
        return self._wire.left and not self.finished

    @property
    def full(self) -> bool:
        """Whether it is time to `drain`."""
        return self._size >= _FULL

    @property
    def transport(self) -> asyncio.Transport:
        """The connection itself, for what this class can't do."""
        return self._wire.transport

    def start(self, status: int, headers: Iterable[tuple[str, str]] = (), *, length: int | None = None) -> None:
        """Begin an answer; without a length the body is chunked, or for HTTP/1.0 ends with the connection."""
        self.status = status
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}", f"date: {email.utils.formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        bodyless = self._request.method == "HEAD" or status in _NO_BODY
        if length is not None:
            lines.append(f"content-length: {length}")
            self._missing = 0 if bodyless else length
        elif self._request.http10:
            self.closing = True
        elif not bodyless:
            lines.append("transfer-encoding: chunked")
            self._chunked = True
        if self.closing:
            lines.append("connection: close")
        self._put("\r\n".join([*lines, "\r\n"]).encode("latin-1"))

    def send(self, data: bytes) -> None:
        """Add to the body; it waits in memory for `flush`, `drain` or an end."""
        if not data or self._request.method == "HEAD":
            return
        self.sent += len(data)
        self._missing -= len(data)
        self._put(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def flush(self) -> None:
        """Hand to the socket what has gathered, in one write."""
        if self._out:
            self._wire.transport.write(b"".join(self._out))
            self._out.clear()
            self._size = 0

    async def drain(self, seconds: float = 0) -> None:
        """Flush, wait so long (0 lets others run), and longer while the client reads too slowly."""
        self.flush()
        await asyncio.sleep(seconds)
        await self._wire.writable.wait()

    def finish(self) -> None:
        """End the answer properly; one that is shorter than its length can only end with the connection."""
        if self._chunked:
            self._put(b"0\r\n\r\n")
        self.closing = self.closing or self._missing > 0
        self.flush()
        self.finished = True

    def whole(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """Answer at once."""
        self.start(status, headers, length=len(body))
        self.send(body)
        self.finish()

    def close(self) -> None:
        """End the connection (FIN) after what was sent, whatever is missing."""
        self.flush()
        self.finished = self.closing = True

    def reset(self) -> None:
        """End the connection by a TCP reset, which a linger time of zero makes of a close (socket(7), SO_LINGER)."""
        self.flush()
        self.finished = True
        sock = self._wire.transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._wire.transport.abort()

    def _put(self, data: bytes) -> None:
        self._out.append(data)
        self._size += len(data)
