"""HTTP/2's frames (RFC 9113, 4 and 6): their numbers, how they are written, and what is wrong with them."""

from __future__ import annotations

import struct

HEAD = 9  # bytes: length, type, flags, stream
LARGEST = 16_384  # bytes of a frame: the default, which we don't raise (6.5.2)
NUMBER = 0x7FFFFFFF  # the bits of a stream's number or a window's size; the first is reserved

read_u32 = struct.Struct(">I").unpack_from
setting = struct.Struct(">HI")
_write_head = struct.Struct(">IBI").pack  # length and type are one word
_PRIORITY_SIZE = 5


class Kind:
    """Types of frames (6). Plain numbers: an enum's would be looked at for each frame."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RESET = 3
    SETTINGS = 4
    PUSH = 5
    PING = 6
    GOAWAY = 7
    UPDATE = 8
    CONTINUATION = 9


class Flag:
    """Flags of frames."""

    END_STREAM = 0x1
    ACK = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Setting:
    """What a side may ask of the other (6.5.2)."""

    TABLE_SIZE = 0x1
    PUSH = 0x2
    MOST_STREAMS = 0x3
    WINDOW = 0x4
    FRAME_SIZE = 0x5
    HEADER_LIST = 0x6


class Code:
    """Why a stream or a connection ends (7)."""

    NO_ERROR = 0x0
    PROTOCOL = 0x1
    FLOW_CONTROL = 0x3
    STREAM_CLOSED = 0x5
    FRAME_SIZE = 0x6
    REFUSED_STREAM = 0x7
    COMPRESSION = 0x9
    CALM = 0xB  # ENHANCE_YOUR_CALM: nothing is wrong but how much of it there is


class ConnectionFault(Exception):
    """The peer broke the protocol so that its connection can't be used any more (5.4.1)."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class StreamFault(Exception):
    """The peer broke the protocol in one stream; the others go on (5.4.2)."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def frame_head(kind: int, flags: int, stream: int, size: int) -> bytes:
    """Write the head of a frame."""
    return _write_head(size << 8 | kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Write a frame."""
    return frame_head(kind, flags, stream, len(payload)) + payload


def unpadded(payload: bytes, flags: int) -> bytes:
    """Take padding and priority off (6.1, 6.2)."""
    start, end = 0, len(payload)
    if flags & Flag.PADDED:
        if not payload:
            raise ConnectionFault(Code.FRAME_SIZE, "padding without a length")
        start, end = 1, end - payload[0]
    if flags & Flag.PRIORITY:
        start += _PRIORITY_SIZE
    if start > end:
        raise ConnectionFault(Code.PROTOCOL, "more padding than frame")
    return payload[start:end] if start or end < len(payload) else payload


# Frames that belong to no stream, and the sizes of those that have one.
_OF_THE_CONNECTION = frozenset({Kind.SETTINGS, Kind.PING, Kind.GOAWAY})
_OF_A_STREAM = frozenset({Kind.DATA, Kind.HEADERS, Kind.PRIORITY, Kind.RESET, Kind.PUSH, Kind.CONTINUATION})
_SIZES = {Kind.RESET: 4, Kind.PING: 8, Kind.UPDATE: 4}
_LEAST_GOAWAY = 8


def check(kind: int, stream: int, size: int) -> None:
    """See that a frame stands where it may, and has the size that it must have."""
    if (stream and kind in _OF_THE_CONNECTION) or (not stream and kind in _OF_A_STREAM):
        raise ConnectionFault(Code.PROTOCOL, f"a frame of type {kind} for stream {stream}")
    if _SIZES.get(kind, size) != size or (kind == Kind.GOAWAY and size < _LEAST_GOAWAY):
        raise ConnectionFault(Code.FRAME_SIZE, f"a frame of type {kind} and {size} bytes")
    if kind == Kind.PRIORITY and size != _PRIORITY_SIZE:
        raise StreamFault(Code.FRAME_SIZE, f"a priority of {size} bytes")
