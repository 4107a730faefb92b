"""gRPC's framing of messages (gRPC over HTTP2, Length-Prefixed-Message): bytes in any pieces in, messages out."""

from __future__ import annotations

import collections

from zurelay.grpcwire.calls import CallError, Code

_PREFIX = 5  # bytes before a message: a flag, and its length


class Messages:
    """The messages of one call. No more is held than one message and what came with it."""

    __slots__ = ("_limit", "_missing", "_pieces", "whole")

    def __init__(self, limit: int) -> None:
        self.whole: collections.deque[bytes] = collections.deque()
        self._limit = limit  # bytes of a message
        self._pieces: list[bytes] = []  # of a message that isn't whole
        self._missing = 0  # bytes of it, as far as is known

    def feed(self, data: bytes) -> None:
        """Take the next bytes. CallError where they are no messages that we read."""
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            whole = data if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces = []  # large bodies are not to be held twice
            self._cut(whole)

    def _cut(self, buffer: bytes) -> None:
        at = 0
        self._missing = 0
        while len(buffer) - at >= _PREFIX:
            size = int.from_bytes(buffer[at + 1 : at + _PREFIX])
            if buffer[at]:
                raise CallError(Code.UNIMPLEMENTED, "compressed messages are not read here: send them plain")
            if size > self._limit:
                raise CallError(
                    Code.RESOURCE_EXHAUSTED, f"a message of {size} bytes, where {self._limit} are the limit"
                )
            end = at + _PREFIX + size
            if end > len(buffer):
                self._missing = end - len(buffer)
                break
            self.whole.append(buffer[at + _PREFIX : end])
            at = end
        self._pieces = [buffer[at:]] if at < len(buffer) else []

    def end(self) -> None:
        """There are no more bytes. CallError where a message is cut."""
        if self._pieces:
            raise CallError(Code.INTERNAL, "the last message is cut")


def framed(message: bytes) -> bytes:
    """Put a message's prefix before it."""
    return b"\0" + len(message).to_bytes(4) + message
