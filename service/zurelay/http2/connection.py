"""One connection, the server's side: bytes in, events out; what goes back gathers in `take`.

Rules: a stream opens with `Opened` and stays, and counts, until its `close`, also when it was cut before: who opens
streams and cuts them again gains nothing. A ConnectionFault is the end; `give_up` says goodbye.
"""

from __future__ import annotations

from zurelay.http2 import frames
from zurelay.http2.blocks import LARGEST_LIST, Blocks
from zurelay.http2.events import Ended, Event, Opened, Received, Reset, Writable
from zurelay.http2.flow import DEFAULT_WINDOW, WINDOW, Calm, Stream, grown
from zurelay.http2.frames import Code, ConnectionFault, Flag, Kind, Setting, StreamFault, read_u32, unpadded
from zurelay.http2.outbox import Bytes, Outbox
from zurelay.http2.reader import Reader

MOST_STREAMS = 16_384  # at once: a thousand relayed requests take three thousand; over it Envoy opens a connection more
_CONNECTION_WINDOW = 1 << 30  # streams bound what is unread; together they never wait
_LARGEST_FRAME_SIZE = (1 << 24) - 1  # that a peer may name (6.5.2)
_MOST_TOLD = 200  # bytes of an explanation


class Connection:
    """The server's side of one connection. Streams are the peer's numbers."""

    __slots__ = ("_blocks", "_calm", "_last", "_leaving", "_out", "_read", "_reader", "_streams")

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._calm = Calm()
        self._out = Outbox()
        self._streams: dict[int, Stream] = {}
        self._reader = Reader()
        self._last = 0
        self._leaving = False
        self._read = 0  # bytes of the connection's window that are used up
        settings = {
            Setting.MOST_STREAMS: MOST_STREAMS,
            Setting.WINDOW: WINDOW,
            Setting.HEADER_LIST: LARGEST_LIST,
        }
        packed = b"".join(frames.setting.pack(name, value) for name, value in settings.items())
        self._out.put(Kind.SETTINGS, 0, 0, packed)
        self._out.number(Kind.UPDATE, 0, _CONNECTION_WINDOW - DEFAULT_WINDOW)

    @property
    def waiting(self) -> int:
        """How many bytes of data wait to be taken."""
        return self._out.size

    def take(self) -> bytes:
        """Give what is to be sent, once; it is taken when the peer has room for it."""
        self._calm.read()
        return self._out.take()

    def feed(self, data: bytes, now: float) -> list[Event]:
        """Take bytes from the peer and say what they mean; `now` is in seconds of any steady clock."""
        self._calm.tick(now)
        events: list[Event] = []
        for kind, flags, number, payload in self._reader.feed(data):
            try:
                self._frame(events, kind, flags, number, payload)
            except StreamFault as fault:
                self._calm.answered()
                self._calm.fault()
                self._cut(events, number, fault.code)
        return events

    def _frame(self, events: list[Event], kind: int, flags: int, number: int, payload: bytes) -> None:
        frames.check(kind, number, len(payload))
        if kind == Kind.DATA:
            self._data(events, flags, number, payload)
        elif kind == Kind.HEADERS:
            self._head(events, number, payload, end=bool(flags & Flag.END_STREAM))
        elif kind == Kind.RESET:
            self._reset(events, number)
        else:
            self._calm.idle()
            self._control(events, kind, flags, number, payload)

    def _cut(self, events: list[Event], number: int, code: int) -> None:
        """Cut a stream; `close` is still to come."""
        self._out.number(Kind.RESET, number, code)
        stream = self._streams.get(number)
        if stream is not None and not stream.gone:
            stream.gone = True
            events.append(Reset(number))

    def _data(self, events: list[Event], flags: int, number: int, payload: bytes) -> None:
        self._read += len(payload)
        if self._read >= _CONNECTION_WINDOW // 2:
            self._out.number(Kind.UPDATE, 0, self._read)
            self._read = 0
        stream = self._stream(number)
        if stream is None:
            self._calm.idle()
            return
        if stream.ended:
            raise StreamFault(Code.STREAM_CLOSED, "data behind the end")
        stream.room -= len(payload)
        if stream.room < 0:
            raise StreamFault(Code.FLOW_CONTROL, "more data than was asked for")
        data = unpadded(payload, flags & Flag.PADDED)
        if len(data) < len(payload):
            self.grant(number, len(payload) - len(data))
        if data:
            events.append(Received(number, data))
        elif not flags & Flag.END_STREAM:
            self._calm.idle()
        if flags & Flag.END_STREAM:
            stream.ended = True
            events.append(Ended(number))

    def _stream(self, number: int) -> Stream | None:
        """Find a stream that is open. One that is over may still be spoken of: the peer doesn't know yet."""
        stream = self._streams.get(number)
        if stream is None and (number > self._last or not number % 2):
            raise ConnectionFault(Code.PROTOCOL, f"stream {number} was never opened")
        return None if stream is None or stream.gone else stream

    def _head(self, events: list[Event], number: int, block: bytes, *, end: bool) -> None:
        if not number % 2:
            raise ConnectionFault(Code.PROTOCOL, f"stream {number} is not a client's to open")
        if number <= self._last:
            self._trailers(events, number, block, end=end)
            return
        self._last = number
        headers = self._blocks.request(block)
        if self._leaving or len(self._streams) >= MOST_STREAMS:
            self._calm.idle()
            self._calm.answered()
            self._out.number(Kind.RESET, number, Code.REFUSED_STREAM)
            return
        stream = self._streams[number] = Stream(self._out.initial)
        events.append(Opened(number, headers))
        if end:
            stream.ended = True
            events.append(Ended(number))

    def _trailers(self, events: list[Event], number: int, block: bytes, *, end: bool) -> None:
        self._blocks.skip(block)
        stream = self._stream(number)
        if stream is None:
            self._calm.idle()
        elif stream.ended:
            raise StreamFault(Code.STREAM_CLOSED, "headers behind the end")
        elif not end:
            raise StreamFault(Code.PROTOCOL, "headers in the middle of a request")
        else:
            stream.ended = True
            events.append(Ended(number))

    def _reset(self, events: list[Event], number: int) -> None:
        stream = self._stream(number)
        if stream is None:
            self._calm.idle()
        else:
            stream.gone = True
            events.append(Reset(number))

    def _control(self, events: list[Event], kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == Kind.UPDATE:
            self._update(events, number, read_u32(payload)[0] & frames.NUMBER)
        elif kind == Kind.SETTINGS:
            self._settings(events, flags, payload)
        elif kind == Kind.PING and not flags & Flag.ACK:
            self._calm.answered()
            self._out.put(Kind.PING, Flag.ACK, 0, payload)
        elif kind == Kind.PUSH:
            raise ConnectionFault(Code.PROTOCOL, "a client promises nothing")

    def _update(self, events: list[Event], number: int, size: int) -> None:
        stream = self._stream(number) if number else None
        fault = StreamFault if number else ConnectionFault
        if not size:
            raise fault(Code.PROTOCOL, "a window's update by nothing")
        try:
            if not number:
                self._out.window = grown(self._out.window, size)
            elif stream is not None:
                stream.window = grown(stream.window, size)
            else:
                return
        except OverflowError as error:
            raise fault(Code.FLOW_CONTROL, str(error)) from error
        events.append(Writable(number))

    def _settings(self, events: list[Event], flags: int, payload: bytes) -> None:
        if len(payload) % frames.setting.size or (flags & Flag.ACK and payload):
            raise ConnectionFault(Code.FRAME_SIZE, f"settings of {len(payload)} bytes")
        if flags & Flag.ACK:
            return
        for name, value in frames.setting.iter_unpack(payload):
            self._obey(events, name, value)
        self._calm.answered()
        self._out.put(Kind.SETTINGS, Flag.ACK, 0, b"")

    def _obey(self, events: list[Event], name: int, value: int) -> None:
        if name == Setting.WINDOW:
            self._resize(value)
            events.append(Writable(0))
        elif name == Setting.TABLE_SIZE:
            self._out.shrink()
        elif name == Setting.PUSH and value > 1:
            raise ConnectionFault(Code.PROTOCOL, f"push is yes or no, not {value}")
        elif name == Setting.FRAME_SIZE and not frames.LARGEST <= value <= _LARGEST_FRAME_SIZE:
            raise ConnectionFault(Code.PROTOCOL, f"no frame may have {value} bytes")

    def _resize(self, window: int) -> None:
        """Change the window that streams begin with, and by as much those of the open ones (6.9.2)."""
        more = window - self._out.initial
        try:
            for stream in self._streams.values():
                stream.window = grown(stream.window, more)
            self._out.initial = grown(0, window)
        except OverflowError as error:
            raise ConnectionFault(Code.FLOW_CONTROL, str(error)) from error

    def grant(self, number: int, size: int) -> None:
        """Let `size` more bytes of a stream come: so many were read."""
        stream = self._streams.get(number)
        if stream is None or stream.ended or stream.gone:
            return
        stream.credit += size
        if stream.credit >= WINDOW // 2:
            self._out.number(Kind.UPDATE, number, stream.credit)
            stream.room += stream.credit
            stream.credit = 0

    def begin(self, number: int, *headers: tuple[bytes, bytes], end: bool = False) -> None:
        """Begin an answer: status 200, unless the first header says another."""
        stream = self._streams.get(number)
        if stream is not None and not stream.gone:
            self._out.head(number, headers, first=True, last=end)

    def send(self, number: int, data: Bytes) -> int:
        """Send bytes of an answer; gives how many went, for the rest there is no room yet."""
        stream = self._streams.get(number)
        if stream is None or stream.gone:
            return len(data)
        return self._out.data(number, stream, data)

    def close(self, number: int, *trailers: tuple[bytes, bytes]) -> None:
        """End an answer, with trailers unless its head was its end, and the request with it if it isn't over (8.1)."""
        stream = self._streams.pop(number, None)
        if stream is None or stream.gone:
            return
        if trailers:
            self._out.head(number, trailers, first=False, last=True)
        if not stream.ended:
            self._out.number(Kind.RESET, number, Code.NO_ERROR)

    def leave(self) -> None:
        """Take no new streams; those that are open come to their end."""
        self._leaving = True
        self._goodbye(Code.NO_ERROR, b"")

    def give_up(self, fault: ConnectionFault) -> None:
        """Say why the connection ends."""
        self._goodbye(fault.code, str(fault).encode()[:_MOST_TOLD])

    def _goodbye(self, code: int, why: bytes) -> None:
        self._out.put(Kind.GOAWAY, 0, 0, self._last.to_bytes(4) + code.to_bytes(4) + why)
