"""An answer and a fault, made a list of actions: what goes over the wire is decided here and carried out by server.py.

A fault that speaks of streams has a likeness in an answer that isn't streamed, so each can be asked of both.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator

from zurelay.simulate.actions import (
    BREATH,
    SHORT_BY,
    Action,
    Close,
    End,
    Hang,
    Head,
    Pause,
    Reset,
    Send,
    finished,
    headers,
)
from zurelay.simulate.faults import Fault
from zurelay.simulate.nouns import Answer, Dialect, Refusal
from zurelay.simulate.streams import simulated_error, streamed

_JSON = "application/json"
_HTML = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works</h1></body></html>\n"
_NOT_JSON = b"upstream connect error or disconnect before headers\n"


def before(fault: Fault) -> Iterator[Action]:
    """Play what happens before any answer; `Hang`, `Reset` or `Close` here leave no room for one."""
    if fault.slow_head:
        yield Pause(fault.slow_head)
    if fault.hang:
        yield Hang()
    if fault.reset:
        yield Reset()
    if fault.close:
        yield Close()


def refusal(fault: Fault, dialect: Dialect, tokens: int, fields: Collection[str]) -> Refusal | None:
    """Give the error that a fault asks for instead of an answer."""
    if fault.status is not None:
        return Refusal(fault.status, f"A simulated error of status {fault.status}.", fault.code)
    if fault.context_length:
        return dialect.too_long(tokens)
    if fault.refuse is not None and fault.refuse in fields:
        said = f"Unsupported parameter: '{fault.refuse}' is not supported with this model."
        return Refusal(400, said, fault.code, fault.refuse)
    return None


def refused(refusal: Refusal, fault: Fault, dialect: Dialect) -> Iterator[Action]:
    """Answer with an error."""
    return _page(dialect.refuse(refusal), fault, _JSON, refusal.status)


def plain(body: bytes, fault: Fault) -> Iterator[Action]:
    """Answer with JSON that isn't a completion."""
    return _page(body, fault, _JSON)


def answered(answer: Answer, fault: Fault, dialect: Dialect, *, stream: bool, pause: float) -> Iterator[Action]:
    """Answer, whole or streamed, with what goes wrong on the way."""
    stream = fault.sse_for_json or (stream and not fault.json_for_stream)
    if fault.error_200 or (not stream and (fault.first_error or fault.role_then_error or fault.late_error is not None)):
        return _page(dialect.refuse(simulated_error(fault)), fault, _JSON)
    if fault.html:
        return _page(_HTML, fault, "text/html; charset=utf-8")
    if fault.not_json:
        return _page(_NOT_JSON, fault, "text/event-stream" if stream else _JSON)
    if fault.empty_stream and not stream:
        return _page(b"", fault, _JSON)
    if stream:
        return finished(streamed(answer, fault, dialect, pause), fault)
    body = dialect.whole(answer)
    if fault.cut_json or fault.cut is not None:
        body = body[: len(body) // 2]
    return _page(body, fault, _JSON)


def _page(body: bytes, fault: Fault, kind: str, status: int = 200) -> Iterator[Action]:
    return finished(_whole(gzip.compress(body, mtime=0) if fault.gzip else body, fault, kind, status), fault)


def _whole(body: bytes, fault: Fault, kind: str, status: int) -> Iterator[Action]:
    named = headers(fault, kind)
    if fault.retry_after is not None:
        named = (*named, ("retry-after", str(fault.retry_after)))
    yield Head(status, named, len(body) + (SHORT_BY if fault.short_body else 0), fault.retry_after_date)
    if fault.slow_body:
        yield Pause(fault.slow_body)
    if fault.reset_after_head:
        yield from (Pause(BREATH), Reset())
    if fault.stall:
        yield Hang()
    if fault.abort is not None or fault.stall_after is not None:
        yield Send(body[: len(body) // 2])
        yield from (Hang(),) if fault.abort is None else (Pause(BREATH), Reset())
    yield Send(body)
    yield from (Pause(BREATH), Close()) if fault.short_body else (End(),)
