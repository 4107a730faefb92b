"""Cuts a client's bytes into frames (RFC 9113, 3.4 and 4): the preface is checked, header blocks come whole."""

from __future__ import annotations

from collections.abc import Iterator

from zurelay.http2.blocks import Block
from zurelay.http2.frames import HEAD, LARGEST, NUMBER, Code, ConnectionFault, Flag, Kind, read_u32, unpadded

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Frame = tuple[int, int, int, bytes]  # type, flags, stream, payload


class Reader:
    """The bytes of one connection. Padding of data is left on: it counts as sent."""

    __slots__ = ("_block", "_buffer", "_in_frames", "_settled")

    def __init__(self) -> None:
        self._buffer = b""
        self._block: Block | None = None
        self._in_frames = False  # the preface has come
        self._settled = False  # so have the settings that belong to it

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take the next bytes and give the frames that are whole now."""
        buffer = self._buffer + data if self._buffer else data
        at = 0 if self._in_frames else self._preface(buffer)
        while self._in_frames and len(buffer) - at >= HEAD:
            word = read_u32(buffer, at)[0]
            size, kind = word >> 8, word & 0xFF
            if size > LARGEST:
                raise ConnectionFault(Code.FRAME_SIZE, f"a frame of {size} bytes")
            start = at + HEAD
            if len(buffer) - start < size:
                break
            flags, number = buffer[at + 4], read_u32(buffer, at + 5)[0] & NUMBER
            at = start + size
            payload = buffer[start:at]
            if kind == Kind.DATA and self._block is None and self._settled:
                yield kind, flags, number, payload
            elif (whole := self._whole(kind, flags, number, payload)) is not None:
                yield whole
        self._buffer = buffer[at:]

    def _preface(self, buffer: bytes) -> int:
        if not buffer.startswith(PREFACE[: len(buffer)]):
            raise ConnectionFault(Code.PROTOCOL, "no HTTP/2 preface")
        self._in_frames = len(buffer) >= len(PREFACE)
        return len(PREFACE) if self._in_frames else 0

    def _whole(self, kind: int, flags: int, number: int, payload: bytes) -> Frame | None:
        """Join a header block; nothing may come between its pieces (4.3)."""
        if not self._settled:
            if kind != Kind.SETTINGS or flags & Flag.ACK:
                raise ConnectionFault(Code.PROTOCOL, "the preface goes on with something else than settings")
            self._settled = True
        if self._block is not None:
            return self._joined(self._block, kind, flags, number, payload)
        if kind == Kind.CONTINUATION:
            raise ConnectionFault(Code.PROTOCOL, "a continuation of nothing")
        if kind != Kind.HEADERS:
            return kind, flags, number, payload
        block = unpadded(payload, flags)
        if flags & Flag.END_HEADERS:
            return kind, flags, number, block
        self._block = Block(number, flags, block)
        return None

    def _joined(self, block: Block, kind: int, flags: int, number: int, payload: bytes) -> Frame | None:
        if kind != Kind.CONTINUATION or number != block.stream:
            raise ConnectionFault(Code.PROTOCOL, "a header block is cut by another frame")
        block.add(payload)
        if not flags & Flag.END_HEADERS:
            return None
        self._block = None
        return Kind.HEADERS, block.flags, number, block.whole()
