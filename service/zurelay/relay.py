"""A streamed request between the egress listener and the client: one state machine, feed(event) -> outputs (SPEC 8).

Rules: nothing opens before the first token or `open_after`; after opening, an error is an event; nothing follows the
end; time comes in with each event, in seconds of any steady clock. `deadline` says when `tick` is next due.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Mapping

import msgspec

from zurelay import chunk, exchange, failure, sse
from zurelay.chat_stream import StreamError
from zurelay.encoding import ContentDecoder
from zurelay.errors import ZurelayError, error_body
from zurelay.exchange import AnswerStream
from zurelay.families import TIME_PER_OUTPUT_CHUNK
from zurelay.headers import EXPLAIN, request_ids
from zurelay.model import Endpoint
from zurelay.plan import Plan
from zurelay.sse import Decoder, Event, SseError
from zurelay.usage import Usage

_GAPS = TIME_PER_OUTPUT_CHUNK.bounds
_MOST_UNNAMED = 3  # events after which no name of the model is looked for any more
_MOST_EVENT = 16 << 20  # bytes of one event; a tool call's arguments may come whole


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """A stream's times in seconds. `open_after` and `keepalive` None: never (x-zurelay-keepalive: off)."""

    open_after: float | None
    keepalive: float | None
    total: float
    idle: float


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What goes to the client: perhaps the head, then bytes, perhaps the end."""

    status: int | None = None
    headers: dict[str, str] = {}
    data: bytes = b""
    end: bool = False


class Outcome(enum.Enum):
    """How a relayed request ended."""

    UNDER_WAY = "under_way"
    ANSWERED = "answered"
    REFUSED = "refused"
    BROKEN = "broken"


class Relay:
    """One streamed request. `heartbeat` is what is sent in silence."""

    __slots__ = (
        "_began",
        "_decoder",
        "_estimate_prompt",
        "_flowing",
        "_gaps",
        "_head",
        "_heard",
        "_heartbeat",
        "_limit",
        "_make_stream",
        "_opened",
        "_plan",
        "_sent",
        "_sent_at",
        "_stream",
        "_times",
        "_unnamed",
        "_unpack",
        "kept_alive",
        "named",
        "outcome",
    )

    def __init__(
        self,
        plan: Plan,
        times: Times,
        now: float,
        *,
        heartbeat: bytes,
        make_stream: Callable[[Mapping[str, str]], AnswerStream],
        estimate_prompt: Callable[[], int],
        limit: int,
    ) -> None:
        self._plan = plan
        self._times = times
        self._heartbeat = heartbeat
        self._make_stream = make_stream
        self._estimate_prompt = estimate_prompt
        self._limit = limit
        self._began = now
        self._heard = now
        self._sent_at = now
        self._sent = 0
        self._head: Mapping[str, str] = {}
        self._decoder = Decoder(_MOST_EVENT)
        self._unpack: ContentDecoder | None = None
        self._stream: AnswerStream | None = None
        self._opened = False
        self._flowing = False
        self._gaps: list[float] = []
        self._unnamed = _MOST_UNNAMED
        self.kept_alive = 0
        self.named = ""
        self.outcome = Outcome.UNDER_WAY

    @property
    def deadline(self) -> float:
        """When `tick` is next due."""
        due = [self._heard + self._times.idle if self._flowing else self._began + self._times.total]
        if not self._opened and self._times.open_after is not None:
            due.append(self._began + self._times.open_after)
        if self._opened and self._times.keepalive is not None:
            due.append(self._sent_at + self._times.keepalive)
        return min(due)

    @property
    def usage(self) -> Usage | None:
        """What was used: as the provider said, else an estimate; None where no answer began."""
        return self._stream.estimate(self._estimate_prompt) if self._stream is not None else None

    @property
    def said(self) -> int:
        """How many tokens the model has said so far, estimated."""
        return self._stream.said if self._stream is not None else 0

    @property
    def gaps(self) -> tuple[float, ...]:
        """How long it took from one chunk to the next: a histogram's counts and sum; empty where nothing came."""
        return tuple(self._gaps)

    @property
    def flowing(self) -> bool:
        """Whether an answer has begun."""
        return self._flowing

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """Why the choices ended, as far as they have."""
        return tuple(self._stream.finish_reasons) if self._stream is not None else ()

    def tick(self, now: float) -> list[Output]:
        """Take the passing of time."""
        if self.outcome is not Outcome.UNDER_WAY:
            return []
        if self._flowing and now >= self._heard + self._times.idle:
            return self._fail(failure.stalled(), now)
        if not self._flowing and now >= self._began + self._times.total:
            return self._fail(failure.timed_out(), now)
        if not self._opened and self._times.open_after is not None and now >= self._began + self._times.open_after:
            self.kept_alive += 1
            headers = answer_headers(self._plan, self._head) if self._flowing else early_headers(self._plan)
            return [self._open(headers, self._heartbeat, now)]
        if self._opened and self._times.keepalive is not None and now >= self._sent_at + self._times.keepalive:
            self.kept_alive += 1
            return [self._send(self._heartbeat, now)]
        return []

    def head(self, status: int, headers: Mapping[str, str], now: float) -> list[Output]:
        """Take the head of the egress listener's answer."""
        if self.outcome is not Outcome.UNDER_WAY or self._stream is not None:
            return []
        self._heard = now
        if status >= 300 or "x-zurelay-model" not in headers:  # noqa: PLR2004  # RFC 9110, 15: no success
            return self._fail(_cause(headers), now, headers.get(ATTEMPTS))
        self._head = headers
        self._flowing = True
        self._stream = self._make_stream(headers)
        coding = headers.get("content-encoding")
        try:
            self._unpack = ContentDecoder(coding, self._limit) if coding else None
        except ZurelayError:
            return self._fail(failure.broken(), now)
        return []

    def body(self, data: bytes, now: float) -> list[Output]:
        """Take bytes of the provider's stream."""
        stream = self._stream
        if self.outcome is not Outcome.UNDER_WAY or stream is None:
            return []
        before, self._heard = self._heard, now
        out = bytearray()
        try:
            events = self._decoder.feed(self._unpack.feed(data) if self._unpack else data)
            self._note(events, now - before)
            for event in events:
                out += self._client_bytes(stream, event)
        except StreamError as error:
            return self._flush(out, now) + self._fail(failure.broken(error.message), now)
        except (SseError, ZurelayError):
            return self._flush(out, now) + self._fail(failure.broken(), now)
        if self._sent + len(out) > self._limit:
            return self._fail(failure.unread(self._limit), now)
        if stream.done:
            self.outcome = Outcome.ANSWERED
        return self._flush(out, now)

    def _note(self, events: list[Event], gap: float) -> None:
        """Take note of the pace, and of the model's name there. Chunks that come together share their time."""
        if self._unnamed and events:
            self._unnamed -= 1
            self.named = exchange.named(events[0].data or b"")
            self._unnamed = 0 if self.named else self._unnamed
        if not events:
            return
        if not self._gaps:  # the first chunk has none before it
            self._gaps = [0.0] * (len(_GAPS) + 2)
            return
        self._gaps[bisect.bisect_left(_GAPS, gap / len(events))] += len(events)
        self._gaps[-1] += gap

    def _client_bytes(self, stream: AnswerStream, event: Event) -> bytes:
        piece = stream.feed(event)
        return self._usage_chunk(stream) + piece if stream.done and piece else piece

    def _usage_chunk(self, stream: AnswerStream) -> bytes:
        return stream.usage_chunk(self._estimate_prompt) if stream.wants_usage else b""

    def end(self, now: float, *, clean: bool) -> list[Output]:
        """Take the end of the provider's stream; `clean` when its framing said so."""
        if self.outcome is not Outcome.UNDER_WAY:
            return []
        stream = self._stream
        if stream is None:
            return self._fail(failure.lost(), now)
        out = bytearray()
        try:
            rest = self._decoder.flush()
            if rest is not None and not _is_cut(rest):
                out += self._client_bytes(stream, rest)
            tail = stream.end() if clean or rest is None else None
            if tail:
                out += self._usage_chunk(stream) + tail
        except StreamError as error:
            return self._fail(failure.broken(error.message), now)
        except (SseError, ZurelayError):
            return self._fail(failure.broken(), now)
        if not stream.done:
            return self._flush(out, now) + self._fail(failure.broken(), now)
        self.outcome = Outcome.ANSWERED
        return self._flush(out, now)

    def _flush(self, out: bytearray, now: float) -> list[Output]:
        end = self.outcome is Outcome.ANSWERED
        if not out and not end:
            return []
        if self._opened:
            return [self._send(bytes(out), now, end=end)]
        return [self._open(answer_headers(self._plan, self._head), bytes(out), now, end=end)]

    def _open(self, headers: dict[str, str], data: bytes, now: float, *, end: bool = False) -> Output:
        self._opened = True
        self._sent_at = now
        self._sent += len(data)
        return Output(status=200, headers=headers, data=data, end=end)

    def _send(self, data: bytes, now: float, *, end: bool = False) -> Output:
        self._sent_at = now
        self._sent += len(data)
        return Output(data=data, end=end)

    def _fail(self, error: ZurelayError, now: float, attempts: str | None = None) -> list[Output]:
        body = error_body(error, self._plan.endpoint, self._plan.request_id)
        if self._opened:
            self.outcome = Outcome.BROKEN
            event = None if self._plan.endpoint is Endpoint.CHAT else "error"
            return [self._send(sse.encode(body, event), now, end=True)]
        self.outcome = Outcome.REFUSED
        headers = {
            "content-type": "application/json",
            **request_ids(self._plan.endpoint, self._plan.request_id),
            **self._plan.standing,
            **error.headers(),
        }
        attempts = attempts or self._head.get(ATTEMPTS)
        if attempts is not None:
            headers[ATTEMPTS] = attempts
        return [Output(status=error.status, headers=headers, data=body, end=True)]


def answer_headers(plan: Plan, head: Mapping[str, str]) -> dict[str, str]:
    """The client's headers of a stream that an attempt answers: ours, and SSE's."""
    ours = {name: value for name, value in head.items() if name.startswith("x-zurelay-") and name not in _FOR_US}
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        **ours,
        **plan.standing,
        **request_ids(plan.endpoint, plan.request_id),
    }


def early_headers(plan: Plan) -> dict[str, str]:
    """The client's headers of a stream that opens before its first token: only what is sure already (SPEC 8)."""
    found: dict[str, str] = {}
    models = plan.models
    if len(models) == 1:
        found["x-zurelay-model"] = models[0]
    if all(model != plan.asked for model in models):
        found["x-zurelay-routed-from"] = plan.asked
    if plan.explained is not None:
        found[EXPLAIN] = plan.explained
    efforts = {attempt.shown_effort for attempt in plan.attempts}
    if len(efforts) == 1 and (effort := efforts.pop()) is not None:
        found["x-zurelay-reasoning-effort"] = effort
    return answer_headers(plan, found)


ATTEMPTS = "x-zurelay-attempts"
ROUTE = "x-zurelay-route"  # the header in which an attempt that answers names its route
FAILURE = "x-zurelay-failure"  # the header in which an attempt tells why all failed
PAST = "x-zurelay-past"  # the header that tells which attempts were given up
BEGAN = "x-zurelay-began"  # the header in which an attempt that answers tells when it began, in nanoseconds since 1970
_FOR_US = frozenset({ROUTE, PAST, BEGAN})


def _is_cut(rest: Event) -> bool:
    """Tell whether the stream stopped in the middle of this block, and not only before its blank line."""
    data = (rest.data or b"").strip()
    return not rest.whole and data != b"[DONE]" and chunk.read(data) is None


def _cause(headers: Mapping[str, str]) -> ZurelayError:
    told = headers.get(FAILURE)
    return (
        failure.decode(told) if told else failure.of_local_reply(headers.get("retry-after"), tried=ATTEMPTS in headers)
    )
