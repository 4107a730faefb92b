"""A client's side of HTTP/2, frame by frame, for tests that say what a client must not."""

from __future__ import annotations

import hpack

from zurelay.http2 import Connection, Event
from zurelay.http2.frames import Flag, Kind, Setting, frame, setting
from zurelay.http2.reader import PREFACE

PATH = "/a.B/C"
HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", PATH),
    ("content-type", "application/grpc"),
    ("phase", "ingress"),
]
WHOLE = Flag.END_HEADERS
ALL = 1 << 24  # a window that never counts

Sent = tuple[int, int, int, bytes]


def update(stream: int, size: int) -> bytes:
    return frame(Kind.UPDATE, 0, stream, size.to_bytes(4))


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(Kind.SETTINGS, 0, 0, b"".join(setting.pack(*pair) for pair in pairs))


def window(size: int) -> bytes:
    return settings((Setting.WINDOW, size))


def reset(stream: int, code: int = 8) -> bytes:
    return frame(Kind.RESET, 0, stream, code.to_bytes(4))


def data(stream: int, payload: bytes = b"", *, end: bool = False) -> bytes:
    return frame(Kind.DATA, Flag.END_STREAM if end else 0, stream, payload)


def head(stream: int, headers: list[tuple[str, str]] = HEADERS, flags: int = WHOLE) -> bytes:
    return frame(Kind.HEADERS, flags, stream, hpack.Encoder().encode(headers))


def request(stream: int, body: bytes = b"", *, end: bool = True) -> bytes:
    return head(stream) + (data(stream, body, end=end) if body or end else b"")


def begun(*frames: bytes) -> Connection:
    """A connection whose windows are large, and that has said what it says at first."""
    connection = Connection()
    connection.feed(PREFACE + window(ALL) + update(0, ALL) + b"".join(frames), 0)
    connection.take()
    return connection


def heard(connection: Connection, *frames: bytes, now: float = 0) -> list[Event]:
    return connection.feed(b"".join(frames), now)


def sent(connection: Connection) -> list[Sent]:
    """What goes to the client: type, flags, stream, payload."""
    taken = connection.take()
    found = []
    while taken:
        size = int.from_bytes(taken[:3])
        found.append((taken[3], taken[4], int.from_bytes(taken[5:9]), taken[9 : 9 + size]))
        taken = taken[9 + size :]
    return found


def decoded(block: bytes) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in hpack.Decoder().decode(block)]
