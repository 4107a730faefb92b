"""A stream, with what goes wrong on the way: events framed, paced, and cut where the fault says."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

from zurelay.simulate.actions import BREATH, SHORT_BY, Action, Close, End, Hang, Head, Pause, Reset, Send, headers
from zurelay.simulate.faults import Fault
from zurelay.simulate.nouns import Answer, Dialect, Event, Kind, Refusal

_SSE = "text/event-stream; charset=utf-8"
_DONE = b"[DONE]"
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's own header and trailer

Framer = Callable[[Event], bytes]


def streamed(answer: Answer, fault: Fault, dialect: Dialect, pause: float) -> Iterator[Action]:
    """Play a stream with `pause` seconds before each token, unless the fault says another pace."""
    frame = framer(fault)
    length = None
    if fault.short_body:
        length = sum(len(frame(event)) for event in dialect.events(answer)) + SHORT_BY
    yield Head(200, (*headers(fault, _SSE), ("cache-control", "no-cache")), length)
    if fault.reset_after_head:
        yield from (Pause(BREATH), Reset())
    if fault.stall:
        yield Hang()
    if fault.slow_body:
        yield Pause(fault.slow_body)
    body = _body(answer, fault, dialect, pause)
    yield from _zipped(body) if fault.gzip else body


def _body(answer: Answer, fault: Fault, dialect: Dialect, pause: float) -> Iterator[Action]:
    frame = framer(fault)
    first, later = _pace(fault, pause)
    wait = first
    if fault.bom:
        yield Send(b"\xef\xbb\xbf")
    for event in _kept(dialect.events(answer), fault):
        if event.kind is Kind.TOKEN:
            if wait is not None:
                yield Pause(wait)
            wait = later
        yield Send(frame(event))
    yield from _ending(fault, dialect, frame)


def _pace(fault: Fault, pause: float) -> tuple[float | None, float | None]:
    """Give the waits before the first token and before each later one; None is no wait, all in one write."""
    usual = pause if pause and fault.big is None else None
    first = usual if fault.slow_token is None else fault.slow_token
    return first, usual if fault.gap is None else fault.gap


def _kept(events: Iterator[Event], fault: Fault) -> Iterator[Event]:
    """Give the events that go out before the break, if there is one."""
    room = _room(fault)
    for event in events:
        token = event.kind is Kind.TOKEN
        if _dropped(event, fault):
            continue
        if room is not None and (event.kind in (Kind.FINISH, Kind.END) or (token and room == 0)):
            return
        if fault.cut_json and token:
            yield Event(event.kind, event.data[: len(event.data) // 2], event.name)
            return
        if room is not None and token:
            room -= 1
        yield event


def _dropped(event: Event, fault: Fault) -> bool:
    if fault.no_done and event.kind is Kind.END:
        return True
    return fault.first_error or (fault.empty_stream and event.data != _DONE)


def _room(fault: Fault) -> int | None:
    """Count the tokens before the break; None where nothing breaks."""
    if fault.role_then_error:
        return 0
    return next((n for n in (fault.late_error, fault.cut, fault.abort, fault.stall_after) if n is not None), None)


def _ending(fault: Fault, dialect: Dialect, frame: Framer) -> Iterator[Action]:
    if fault.first_error or fault.role_then_error or fault.late_error is not None:
        yield Send(frame(dialect.error_event(simulated_error(fault))))
        if fault.error_done:
            yield Send(frame(Event(Kind.END, _DONE)))
    if fault.stall_after is not None:
        yield Hang()
    if fault.abort is not None:
        yield from (Pause(BREATH), Reset())
    if fault.short_body:
        yield from (Pause(BREATH), Close())
    yield End()


def simulated_error(fault: Fault) -> Refusal:
    """Give the error that a fault puts into an answer of status 200."""
    return Refusal(fault.error, "A simulated error.", fault.code)


def framer(fault: Fault) -> Framer:
    """Make the function that frames events as server-sent events, in the way asked for."""
    line = b"\r\n" if fault.crlf else b"\r" if fault.cr else b"\n"
    colon = b":" if fault.nospace else b": "
    comment = b": a comment" + line * 2 if fault.sse_comments else b""
    inner = b": another" + line if fault.sse_comments else b""

    def frame(event: Event) -> bytes:
        name = b"event%b%b%b" % (colon, event.name.encode(), line) if event.name else b""
        return b"%b%b%bdata%b%b%b%b" % (comment, name, inner, colon, event.data, line, line)

    return frame


def _zipped(actions: Iterable[Action]) -> Iterator[Action]:
    """Compress a body as it goes, each piece so that it can be read at once (RFC 1951's empty stored block)."""
    packer = zlib.compressobj(wbits=_GZIP)
    for action in actions:
        if isinstance(action, Send):
            yield Send(packer.compress(action.data) + packer.flush(zlib.Z_SYNC_FLUSH))
            continue
        if isinstance(action, End):
            yield Send(packer.flush())
        yield action
