"""Server-sent events: bytes in, events out, every byte kept (WHATWG HTML, 9.2.5 and 9.2.6).

A block runs to its blank line. Lines end at LF, CR LF or CR, and at nothing else: U+2028 and U+0085 are text.
"""

from __future__ import annotations

import re

import msgspec

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, for silence in a chat stream (SPEC 8)."""
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
"""An event that says nothing, for silence in a messages stream (SPEC 8)."""
DONE = b"data: [DONE]\n\n"
"""The end of a chat stream."""

_BOM = b"\xef\xbb\xbf"
_LF, _CR = 0x0A, 0x0D
# Atomic, so that CR LF is never taken for two line ends.
_BLANK = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_OVERLAP = len(b"\r\n\r")  # the most of a block's end that an earlier chunk can hold


class SseError(Exception):
    """An event is longer than the decoder may hold."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One block of a stream.

    `name` is the event's type, "" if none is given. `data` is its data lines joined by LF; None for a block without any
    (comments, unknown fields, blank lines): no event by the standard, but bytes of the stream. `raw` is the block as
    received, its blank line included. `whole` is False only for what `Decoder.flush` finds.
    """

    name: str
    data: bytes | None
    raw: bytes
    whole: bool = True


class Decoder:
    """Cuts a stream into events, the same ones however the stream is cut into chunks.

    The raw bytes of all events, `flush` included, make up the stream. An event over `limit` bytes is an SseError.
    """

    __slots__ = ("_buffer", "_cr", "_failed", "_limit", "_start")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._start = True  # nothing cut yet: a byte order mark may come
        self._cr = False  # a CR was seen: line ends are no longer LF alone
        self._failed = False

    def feed(self, data: bytes) -> list[Event]:
        """Take a chunk and give the events that it ends. An SseError waits for the next call if events go before it."""
        self._refuse_if_failed()
        self._cr = self._cr or b"\r" in data
        if self._buffer:
            seen = len(self._buffer)
            self._buffer += data
            if self._block_end(self._buffer, 0, max(seen - _OVERLAP, 0)) < 0:
                return self._hold([])
            data = bytes(self._buffer)
            self._buffer.clear()
        events: list[Event] = []
        start = 0
        while 0 < (end := self._block_end(data, start, start)) <= start + self._limit:
            events.append(self._event(data[start:end]))
            start = end
        self._buffer += data[start:] if start else data
        return self._hold(events)

    def flush(self) -> Event | None:
        """Give what stands after the last blank line, at the end of the stream; None if nothing does.

        The standard drops it. A provider may only have forgotten the blank line, or may have been cut off anywhere: the
        caller decides by the data. A blank line that was still waiting for the LF of its CR ends a whole event.
        """
        self._refuse_if_failed()
        raw = bytes(self._buffer)
        self._buffer.clear()
        if not raw:
            return None
        whole = raw.endswith(b"\r") and self._block_end(raw + b" ", 0, 0) > 0
        return self._event(raw, whole=whole)

    def _hold(self, events: list[Event]) -> list[Event]:
        """Keep the rest for the next chunk, within the limit."""
        if len(self._buffer) > self._limit:
            self._failed = True
            self._buffer.clear()
            if not events:
                self._refuse_if_failed()
        return events

    def _refuse_if_failed(self) -> None:
        if self._failed:
            raise SseError(f"An event of the stream is longer than {self._limit} bytes.")

    def _block_end(self, data: bytes | bytearray, start: int, search: int) -> int:
        """Find where the block at `start` ends; -1 if not yet. Before `search` is no blank line but a block's first."""
        first = start + len(_BOM) if self._start and data.startswith(_BOM, start) else start
        if first >= len(data):
            return -1
        if data[first] == _LF:
            return first + 1
        if data[first] == _CR:
            end = first + 2 if data.startswith(b"\n", first + 1) else first + 1
        elif self._cr:
            match = _BLANK.search(data, search)
            end = match.end() if match else -1
        else:
            end = data.find(b"\n\n", search)
            return end + 2 if end >= 0 else -1
        return -1 if end == len(data) and data.endswith(b"\r") else end  # the LF of a CR LF may follow

    def _event(self, raw: bytes, *, whole: bool = True) -> Event:
        if whole and not self._cr and raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2:
            self._start = False
            return Event("", raw[6:-2], raw)
        text = raw.removeprefix(_BOM) if self._start else raw
        self._start = False
        name = ""
        data: list[bytes] = []
        for line in _LINE_END.split(text) if self._cr else text.split(b"\n"):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ").decode(errors="replace")
        return Event(name, b"\n".join(data) if data else None, raw, whole)


def encode(data: bytes, name: str | None = None) -> bytes:
    """Write an event. A CR in the data comes back as LF: the format can't carry it."""
    head = b"" if name is None else _LINE_END.sub(b" ", b"event: " + name.encode()) + b"\n"
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    return head + b"data: " + data + b"\n\n"
