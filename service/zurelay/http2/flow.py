"""What may be sent: flow control (RFC 9113, 5.2), and a bound on what brings nothing."""

from __future__ import annotations

from zurelay.http2.frames import NUMBER, Code, ConnectionFault

DEFAULT_WINDOW = 65_535
WINDOW = 1 << 20  # bytes of a stream that may come unread

# Frames that carry nothing (pings, settings, updates, priorities, empty data, unknown ones) in one second. A peer at
# work sends some; one that sends nothing else keeps us busy for nothing (CVE-2019-9511 to 9518).
MOST_IDLE = 100_000
# Answers to such frames that the peer has not read yet.
MOST_UNREAD = 1_000
# Streams in which the peer broke the protocol: it may err, but not for a living (CVE-2025-8671).
MOST_FAULTS = 100


class Stream:
    """One stream's counters, between its opening and its `close`."""

    __slots__ = ("credit", "ended", "gone", "room", "window")

    def __init__(self, window: int) -> None:
        self.window = window  # what we may send; negative where the peer took back what it had given
        self.room = WINDOW  # what the peer may send
        self.credit = 0  # what was read, and not told yet
        self.ended = False  # by the peer
        self.gone = False  # cut: its work may still be under way, so that it counts, but nobody hears of it


def grown(window: int, size: int) -> int:
    """Give a window that was raised."""
    if window + size > NUMBER:
        raise OverflowError(f"a window of {window + size} bytes")
    return window + size


class Calm:
    """Counts what a peer does that brings it nothing."""

    __slots__ = ("_faults", "_idle", "_since", "_unread")

    def __init__(self) -> None:
        self._since = 0.0
        self._idle = 0
        self._unread = 0
        self._faults = 0

    def tick(self, now: float) -> None:
        """Take the passing of time, in seconds of any steady clock."""
        if now >= self._since + 1:
            self._since = now
            self._idle = 0

    def idle(self) -> None:
        """A frame carried nothing."""
        self._idle += 1
        if self._idle > MOST_IDLE:
            raise ConnectionFault(Code.CALM, "a flood of frames that carry nothing")

    def answered(self) -> None:
        """A frame wanted an answer."""
        self._unread += 1
        if self._unread > MOST_UNREAD:
            raise ConnectionFault(Code.CALM, "the answers to its frames are not read")

    def fault(self) -> None:
        """A stream was cut for its peer's fault."""
        self._faults += 1
        if self._faults > MOST_FAULTS:
            raise ConnectionFault(Code.CALM, "too many streams that break the protocol")

    def read(self) -> None:
        """The peer took what was written."""
        self._unread = 0
