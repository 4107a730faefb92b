"""One call on our own connection: messages in, messages out, and the peer's room in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from zurelay.grpcwire.calls import CallError, Code
from zurelay.grpcwire.messages import Messages, framed

T = TypeVar("T")


class Line(Protocol):
    """What a call needs of its connection; calls are numbers there."""

    loop: asyncio.AbstractEventLoop

    def begin(self, number: int) -> None:
        """Begin the answer."""

    def send(self, number: int, data: bytes | memoryview) -> int:
        """Send what there is room for; gives how many bytes went."""

    def grant(self, number: int, size: int) -> None:
        """Let so many more bytes come."""


class OwnCall(Generic[T]):
    """A `Call`."""

    __slots__ = (
        "_ended",
        "_fault",
        "_line",
        "_messages",
        "_number",
        "_parse",
        "_reader",
        "_withheld",
        "_writer",
        "begun",
        "metadata",
    )

    def __init__(
        self, line: Line, number: int, metadata: Mapping[str, str], parse: Callable[[bytes], T], limit: int
    ) -> None:
        self.metadata = metadata
        self.begun = False
        self._line = line
        self._number = number
        self._parse = parse
        self._messages = Messages(limit)
        self._withheld = 0  # bytes that were not granted again: messages wait to be read
        self._ended = False
        self._fault: CallError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    async def read(self) -> T | None:
        """Give the next message, waiting for it; None when there are no more."""
        whole = self._messages.whole
        while not whole:
            if self._fault is not None:
                raise self._fault
            if self._ended:
                return None
            self._reader = self._line.loop.create_future()
            await self._reader
        message = whole.popleft()
        if not whole and self._withheld:
            self._line.grant(self._number, self._withheld)
            self._withheld = 0
        try:
            return self._parse(message)
        except Exception as error:  # parsers differ in what they raise, and all mean the same
            raise CallError(Code.INTERNAL, f"a message that can't be read: {error}") from error

    async def write(self, message: bytes) -> None:
        """Send a message; waits only while the peer has no room."""
        if not self.begun:
            self.begun = True
            self._line.begin(self._number)
        data: bytes | memoryview = framed(message)
        sent = self._line.send(self._number, data)
        if sent < len(data):
            await self._send(memoryview(data)[sent:])

    async def _send(self, rest: memoryview) -> None:
        while rest:
            if sent := self._line.send(self._number, rest):
                rest = rest[sent:]
                continue
            self._writer = self._line.loop.create_future()
            await self._writer

    def received(self, data: bytes) -> None:
        """Take bytes of messages."""
        if self._fault is not None:
            return
        try:
            self._messages.feed(data)
        except CallError as error:
            self._fault = error
        if self._messages.whole or self._fault is not None:
            self._withheld += len(data)
            _wake(self._reader)
        else:  # a message may be larger than the window, and must get in
            self._line.grant(self._number, len(data))

    def ended(self) -> None:
        """There are no more messages."""
        self._ended = True
        try:
            self._messages.end()
        except CallError as error:
            self._fault = self._fault or error
        _wake(self._reader)

    def writable(self) -> None:
        """There is room."""
        _wake(self._writer)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
