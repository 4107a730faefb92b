"""A streamed request between the egress listener and the client: one state machine, feed(event) -> outputs (SPEC 8).

Rules: nothing opens before the first token or `open_after`; after opening, an error is an event; nothing follows the
end; time comes in with each event, in seconds of any steady clock. `deadline` says when `tick` is next due.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping

from zurelay import exchange, failure, relay_words
from zurelay.chat_stream import StreamError
from zurelay.encoding import ContentDecoder
from zurelay.errors import ZurelayError
from zurelay.exchange import AnswerStream
from zurelay.families import TIME_PER_OUTPUT_CHUNK
from zurelay.plan import Plan
from zurelay.relay_words import ATTEMPTS, Outcome, Output, Times, answer_headers, early_headers
from zurelay.sse import Decoder, Event, SseError
from zurelay.usage import Usage

_GAPS = TIME_PER_OUTPUT_CHUNK.bounds
_MOST_UNNAMED = 3  # events after which no name of the model is looked for any more
_MOST_EVENT = 16 << 20  # bytes of one event; a tool call's arguments may come whole


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
            return self._fail(relay_words.cause(headers), now, headers.get(ATTEMPTS))
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
            if rest is not None and not exchange.is_cut(rest):
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
        if self._opened:
            self.outcome = Outcome.BROKEN
            return [self._send(relay_words.error_event(self._plan, error), now, end=True)]
        self.outcome = Outcome.REFUSED
        return [relay_words.refused(self._plan, error, attempts or self._head.get(ATTEMPTS))]
