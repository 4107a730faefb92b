"""What is to be sent: frames gather until they are taken, data no more than the peer's windows hold."""

from __future__ import annotations

from zurelay.http2.blocks import literal
from zurelay.http2.flow import DEFAULT_WINDOW, Stream
from zurelay.http2.frames import LARGEST, Flag, Kind, frame, frame_head

Bytes = bytes | memoryview

_OK = b"\x88"  # `:status: 200` (RFC 7541, appendix A)
_EMPTY_TABLE = b"\x20"  # the table has no room any more (RFC 7541, 6.3)


class Outbox:
    """Frames on their way out. `window` is the connection's, `initial` the one that streams begin with."""

    __slots__ = ("_out", "_shrunk", "initial", "size", "window")

    def __init__(self) -> None:
        self._out: list[Bytes] = []
        self._shrunk = False
        self.size = 0  # bytes of data that wait here
        self.window = DEFAULT_WINDOW
        self.initial = DEFAULT_WINDOW

    def take(self) -> bytes:
        """Give what is to be sent, once."""
        out = b"".join(self._out)
        self._out.clear()
        self.size = 0
        return out

    def put(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """Send a frame that no window counts."""
        self._out.append(frame(kind, flags, number, payload))

    def number(self, kind: int, number: int, value: int) -> None:
        """Send a frame that says a number: a window's update, or why a stream is cut."""
        self._out.append(frame(kind, 0, number, value.to_bytes(4)))

    def shrink(self) -> None:
        """Say at the next headers that we need no table: the peer made it smaller (RFC 7541, 4.2)."""
        self._shrunk = True

    def head(self, number: int, headers: tuple[tuple[bytes, bytes], ...], *, first: bool, last: bool) -> None:
        """Send headers: `first` begins an answer with status 200 where no `:status` says otherwise, `last` ends it."""
        block = b"".join(literal(name, value) for name, value in headers)
        if first and headers[0][0] != b":status":
            block = _OK + block
        if self._shrunk:
            block, self._shrunk = _EMPTY_TABLE + block, False
        self.put(Kind.HEADERS, Flag.END_HEADERS | (Flag.END_STREAM if last else 0), number, block)

    def data(self, number: int, stream: Stream, data: Bytes) -> int:
        """Send what there is room for; gives how many bytes went."""
        room = min(len(data), stream.window, self.window)
        if room <= 0:
            return 0
        stream.window -= room
        self.window -= room
        self.size += room
        if room <= LARGEST:
            self._out += frame_head(Kind.DATA, 0, number, room), data if room == len(data) else data[:room]
            return room
        for start in range(0, room, LARGEST):
            piece = data[start : min(start + LARGEST, room)]
            self._out += frame_head(Kind.DATA, 0, number, len(piece)), piece
        return room
