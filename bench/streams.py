"""Our own client for streams: cheap enough not to be what is measured, and exact about bytes.

It counts chunks while they come; everything else about them is looked at afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

import msgspec

from bench.running import BenchError
from bench.servers import PATH
from bench.targets import Target

_TOKEN = b" word"
_ONCE = b"["  # stands once in each chunk; one byte can't be cut in two by a read
_END = b"0\r\n\r\n"
_GOOD = b"HTTP/1.1 200"
_SHOWN = 400  # bytes of what is no stream


class Stream(asyncio.Protocol):
    """One connection. `send` a request, then wait for `opened` (its first token) or `ended`; bytes are not kept."""

    __slots__ = ("_answered", "_ended", "_loop", "_opened", "_sent", "_tail", "_transport", "chunks", "first")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the answer; the connection stays."""
        self._tail = b""
        self._answered = False
        self._sent = 0.0
        self._opened = self._loop.create_future()
        self._ended = self._loop.create_future()
        self.chunks = 0
        self.first = 0.0  # seconds from the request to the first token

    @classmethod
    async def open(cls, target: Target) -> Self:
        """Connect."""
        _, stream = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", target.port)
        return stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio's call)."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # narrows the type of asyncio's own object
        self._transport = transport

    def send(self, request: bytes) -> None:
        """Send a request."""
        if self._transport is None:
            raise BenchError("the stream has no connection")
        self._sent = self._loop.time()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Count what came (asyncio's call)."""
        if not self._answered:  # a piece holds a status line whole: it is the first thing that a server writes
            self._answered = True
            if not data.startswith(_GOOD):
                self._break(ConnectionError(f"not a stream: {data[:_SHOWN].decode(errors='replace')}"))
        self.chunks += data.count(_ONCE)
        if not self.first and _TOKEN in data:
            self.first = self._loop.time() - self._sent
            _done(self._opened)
        self._tail = (self._tail + data[-len(_END) :])[-len(_END) :]
        if self._tail == _END:
            _done(self._ended)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it broke (asyncio's call)."""
        self._break(exc or ConnectionResetError("the stream broke off"))

    def _break(self, error: Exception) -> None:
        for waiting in (self._opened, self._ended):
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # whoever waits sees it; nobody needs to

    async def opened(self) -> None:
        """Wait for the first token."""
        await asyncio.shield(self._opened)

    async def ended(self) -> None:
        """Wait for the end."""
        await asyncio.shield(self._ended)

    def close(self) -> None:
        """Leave, wherever it is."""
        if self._transport is not None:
            self._transport.abort()


def _done(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class KeptStream(Stream):
    """A stream whose response can be looked at when it is over."""

    __slots__ = ("_pieces",)

    def reset(self) -> None:
        """Forget the answer; the connection stays."""
        super().reset()
        self._pieces: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        """Keep what came (asyncio's call)."""
        self._pieces.append(data)
        super().data_received(data)

    async def response(self) -> bytes:
        """Wait for the end, and give the whole response as it came."""
        await self.ended()
        return b"".join(self._pieces)


def request(target: Target, *, tokens: int, gap_us: int) -> bytes:
    """Write a request for a stream of the stub's."""
    asked = {"tokens": tokens, "gap_us": gap_us}
    # Portkey passes only what OpenAI knows, such as metadata; the stub reads its fields wherever they stand.
    body = msgspec.json.encode({**target.chat, "stream": True, **asked, "metadata": asked})
    headers = {"host": "bench", "content-type": "application/json", **target.headers, "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def answer(target: Target, *, tokens: int, gap_us: int = 0) -> bytes:
    """Get one stream's body."""
    stream = await KeptStream.open(target)
    try:
        stream.send(request(target, tokens=tokens, gap_us=gap_us))
        return body_of(await asyncio.wait_for(stream.response(), 60))
    finally:
        stream.close()


def body_of(response: bytes) -> bytes:
    """Take the body out of a whole chunked response (RFC 9112, 7.1)."""
    head, blank, rest = response.partition(b"\r\n\r\n")
    if not blank or not head.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"not a stream: {response[:300]!r}")
    pieces: list[bytes] = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if not length:
            return b"".join(pieces)
        pieces.append(rest[:length])
        if rest[length : length + 2] != b"\r\n":
            raise BenchError("a chunk of the response has not the length that it says")
        rest = rest[length + 2 :]
    raise BenchError("the response has no end")


def lost(found: bytes, expected: bytes) -> int:
    """Count the bytes behind the place where two bodies differ first: 0 is all there, and right."""
    if found == expected:
        return 0
    same = next((place for place, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
    least = min(len(found), len(expected)) if same is None else same
    return max(len(expected), len(found)) - least


def total(streams: Sequence[Stream]) -> int:
    """Count the chunks of all streams so far."""
    return sum(stream.chunks for stream in streams)
