"""A small HTTP/1.1 server shell on asyncio and httptools, for answers that may also stall, be cut, or be reset.

Requests reach the handler whole and bounded, one at a time a connection, in order (RFC 9112). When the client leaves,
the handler is cancelled and `Reply.left` is true.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

from zurelay.http1_messages import Bounds, Reply, Request

__all__ = ["Bounds", "Handler", "Reply", "Request", "Server"]

_logger = logging.getLogger(__name__)
_PIPELINE = 8  # requests waiting on one connection before we stop reading it
_BACKLOG = 4096  # a thousand clients may connect in the same instant
_LINGER = 1.0  # seconds of throwing away what a refused client still sends, so that it gets to read the refusal
_TEXT = (("content-type", "text/plain; charset=utf-8"),)

Handler = Callable[[Request, Reply], Awaitable[None]]


class Server:
    """Listens, and gives each request to the handler."""

    def __init__(self, handler: Handler, bounds: Bounds | None = None) -> None:
        self.handler = handler
        self.bounds = bounds or Bounds()
        self.connections: set[_Connection] = set()
        self._numbers = itertools.count(1)
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int, ssl_context: ssl.SSLContext | None = None) -> int:
        """Listen on TCP; port 0 takes a free one. Gives the port."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connect, host, port, ssl=ssl_context, backlog=_BACKLOG)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def listen_unix(self, path: str) -> None:
        """Listen on a Unix socket."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._connect, path, backlog=_BACKLOG))

    async def stop(self) -> None:
        """Stop listening, cut every connection, and wait for the handlers to end."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        connections = list(self.connections)
        for connection in connections:
            connection.cut()
        await asyncio.gather(*(c.task for c in connections if c.task is not None), return_exceptions=True)

    def _connect(self) -> _Connection:
        return _Connection(self, next(self._numbers))


class _Connection(asyncio.Protocol):
    """One connection: bytes in, requests into a queue, a task that answers them in order."""

    transport: asyncio.Transport

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._number = number
        self._parser = httptools.HttpRequestParser(self)
        self._queue: collections.deque[Request] = collections.deque()
        self._timer: asyncio.TimerHandle | None = None
        self._refusal = 0
        self._head = self._size = 0
        self._in_head = self._begun = self._deaf = False
        self.task: asyncio.Task[None] | None = None
        self.writable = asyncio.Event()
        self.writable.set()
        self._cut = False
        self.left = False

    def cut(self) -> None:
        """Drop the connection now, which cancels its handler, though its client didn't leave."""
        self._cut = True
        self.transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        _logger.debug("connection %d ended: %s", self._number, exc or "closed")
        self.left = not self._cut
        self._server.connections.discard(self)
        self._disarm()
        if self.task is not None:
            self.task.cancel()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._begun = not self._in_head
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._deaf = True  # we stay with HTTP/1.1, as RFC 9110, 7.8 allows
        except httptools.HttpParserError:
            self._refusal = self._refusal or 400
        if self._in_head and not self._begun:  # all of it went into a header that the parser still gathers
            self._count_head(len(data))
        if self._refusal and not self._deaf:
            self._refuse(self._refusal)

    # What httptools calls.

    def on_message_begin(self) -> None:
        self._in_head = self._begun = True
        self._head = self._size = 0
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._arm(self._server.bounds.seconds, self._refuse, 408)

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))
            self._count_head(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        found = {name.lower(): value for name, value in self._headers}
        if int(found.get("content-length") or 0) > self._server.bounds.body:
            self._refusal = self._refusal or 413
        elif found.get("expect", "").lower() == "100-continue" and self.task is None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._server.bounds.body:
            self._refusal = self._refusal or 413
        else:
            self._body.append(data)

    def on_message_complete(self) -> None:
        self._disarm()
        if self._refusal or self._deaf:
            return
        keep_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        request = Request(
            connection=self._number,
            method=self._parser.get_method().decode(),
            target=self._target.decode("latin-1"),
            headers=tuple(self._headers),
            body=b"".join(self._body),
            keep_alive=keep_alive,
            http10=self._parser.get_http_version() == "1.0",
        )
        self._body = []
        self._deaf = not keep_alive
        self._take(request)

    # What we do with it.

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > self._server.bounds.head:
            self._refusal = self._refusal or 431

    def _refuse(self, status: int) -> None:
        self._deaf = True
        self._take(Request(connection=self._number, refusal=status))

    def _take(self, request: Request) -> None:
        self._queue.append(request)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._work())
        elif len(self._queue) == _PIPELINE:
            self.transport.pause_reading()

    async def _work(self) -> None:
        while self._queue and not self.transport.is_closing():
            request = self._queue.popleft()
            if len(self._queue) == _PIPELINE - 1:
                self.transport.resume_reading()
            reply = Reply(self, request)
            await (self._linger(reply, request.refusal) if request.refusal else self._answer(request, reply))
            if reply.closing:
                self.transport.close()
                break
        self.task = None

    async def _answer(self, request: Request, reply: Reply) -> None:
        try:
            await self._server.handler(request, reply)
        except Exception:
            _logger.exception("the handler failed at %s %s", request.method, request.path)
        if reply.status is None and not reply.finished:
            reply.whole(500, _TEXT, b"The server failed to answer. Its log says why.\n")
        elif not reply.finished:
            reply.close()

    async def _linger(self, reply: Reply, status: int) -> None:
        """Refuse, then hear the client out: closing on unread bytes would reset what we just said (RFC 9112, 9.6)."""
        reply.whole(status, _TEXT, b"This request can't be read: see the status.\n")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        await asyncio.sleep(_LINGER)

    def _arm(self, seconds: float, call: Callable[[int], None], status: int) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(seconds, call, status)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
