"""One attempt, from a provider's answer to a verdict, given once. Nothing here knows of Envoy or of time."""

from __future__ import annotations

import msgspec

from zurelay import chunk, exchange, refusal
from zurelay.encoding import ContentDecoder, decode
from zurelay.errors import ZurelayError
from zurelay.formats import Stamp
from zurelay.openai_answer import BadAnswerError
from zurelay.plan import Attempt, Plan, Reason
from zurelay.sse import Decoder, Event, SseError
from zurelay.usage import Usage
from zurelay.verdict import Answered, Kind, Verdict, lost, refused

_BYTES_PER_TOKEN = 4
_SHORT = 64 << 10  # bytes of an error's body: more only repeat the request
HELD = 512 << 10  # bytes held before a verdict; Envoy 1.40 crashes past its 1 MiB connection buffer


def judge_whole(plan: Plan, number: int, answered: Answered, body: bytes, *, limit: int, created: int) -> Verdict:
    """Judge a complete answer.

    `limit` bounds what a compressed one may grow to, in bytes; `created` is Unix time, for one that is translated.
    """
    current = plan.attempts[number - 1]
    try:
        plain = decode(body, answered.content_encoding, limit) if answered.content_encoding else body
    except ZurelayError:
        if answered.is_success:
            return lost(plan, number, answered, Reason.UNREADABLE)
        plain = b""  # its status says enough
    if not answered.is_success:
        return refused(plan, number, answered, plain)
    try:
        answer = exchange.whole_answer(plain, current, plan.endpoint, stamp(plan, current, created))
    except BadAnswerError as error:
        return lost(plan, number, answered, error.reason, _wasted(plan, current, plain))
    return Verdict(
        kind=Kind.ANSWER,
        body=answer.body,
        usage=answer.usage,
        finish_reasons=answer.finish_reasons,
        status=answered.status,
    )


def judge_head(plan: Plan, number: int, answered: Answered, *, limit: int) -> Verdict | None:
    """Judge an answer by its head, where its body can't be had or tells nothing; None where it must be waited for.

    A short body is waited for in any case: the connection to the provider is then of use to others.
    """
    length = answered.content_length
    if answered.is_success:
        too_large = length is not None and length > limit
        return lost(plan, number, answered, Reason.TOO_LARGE) if too_large else None
    if length is not None and length <= _SHORT:
        return None
    if refusal.reason_of(answered.status) is None and (length is None or length <= limit):
        return None
    return refused(plan, number, answered, b"")


def _wasted(plan: Plan, current: Attempt, body: bytes) -> Usage | None:
    """Give what an answer used that is none: what it says, else an estimate where it breaks off in the midst."""
    told = exchange.told(current.format, (body,))
    if told is not None or not body.lstrip().startswith(b"{") or _is_whole(body):
        return told
    return Usage(prompt=plan.prompt, completion=len(body) // _BYTES_PER_TOKEN, estimated=True)


def _is_whole(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def stamp(plan: Plan, attempt: Attempt, created: int) -> Stamp:
    """Give what a translated answer carries that its provider doesn't say."""
    return Stamp(
        id=plan.request_id.removeprefix("req_"),
        created=created,
        model=attempt.model,
        upstream=attempt.upstream,
        thinking=not plan.hide_thinking,
    )


class StreamAttempt:
    """A streamed answer, held until its first token. `feed` gives the verdict once, None before."""

    __slots__ = (
        "_answered",
        "_decoder",
        "_error",
        "_held",
        "_number",
        "_plan",
        "_readable",
        "_seen",
        "_told",
        "_unpack",
    )

    def __init__(self, plan: Plan, number: int, answered: Answered) -> None:
        self._plan = plan
        self._number = number
        self._answered = answered
        self._decoder = Decoder(4 * HELD)  # more than Envoy sends at once: the bound is on all that is held
        self._unpack: ContentDecoder | None = None
        self._seen = exchange.seen(plan.attempts[number - 1].format)
        self._readable = True
        self._told: list[bytes] = []  # the events that speak of usage
        self._error = bytearray()
        self._held = 0
        if answered.content_encoding:
            try:
                self._unpack = ContentDecoder(answered.content_encoding, HELD)
            except ZurelayError:
                self._readable = False

    def feed(self, data: bytes, *, end: bool) -> Verdict | None:
        """Take the next bytes of the body; `end` with the last."""
        self._held += len(data)
        plain = self._plain(data)
        if not self._answered.is_success:
            return self._feed_error(plain, end=end)
        return self._feed_stream(plain, end=end) if self._readable else self._lost(Reason.UNREADABLE)

    def _plain(self, data: bytes) -> bytes:
        try:
            return self._unpack.feed(data) if self._unpack and self._readable else data
        except ZurelayError:
            self._readable = False
            return b""

    def _feed_error(self, data: bytes, *, end: bool) -> Verdict | None:
        self._error += data
        if end or self._held >= HELD or not self._readable:
            body = bytes(self._error) if self._readable else b""  # its status says enough
            return refused(self._plan, self._number, self._answered, body)
        return None

    def _feed_stream(self, data: bytes, *, end: bool) -> Verdict | None:
        full = self._held >= HELD
        try:
            events = self._decoder.feed(data)
            rest = self._decoder.flush() if end or full else None
        except SseError:
            return self._lost(Reason.NOT_A_STREAM)
        if end and rest is not None:
            events.append(rest)
        for event in events:
            if event.data is not None and b'"usage"' in event.data:
                self._told.append(event.data)
            found = self._seen(event.name, event.data)
            if found is chunk.Seen.TOKEN:
                return Verdict(kind=Kind.ANSWER, status=self._answered.status)
            if found is not chunk.Seen.NOTHING:
                return self._lost(_REASONS[found])
        if end:
            return self._lost(Reason.NO_TOKEN)
        return self._at_bound(rest) if full else None

    def _at_bound(self, cut: Event | None) -> Verdict:
        """Judge what is held without a token: an event that fills it is content (images come whole), others aren't."""
        if cut is not None and cut.data is not None and len(cut.raw) > HELD // 2:
            return Verdict(kind=Kind.ANSWER, status=self._answered.status)
        return self._lost(Reason.TOO_LARGE)

    def _lost(self, reason: Reason) -> Verdict:
        wasted = exchange.told(self._plan.attempts[self._number - 1].format, self._told)
        return lost(self._plan, self._number, self._answered, reason, wasted)


_REASONS = {
    chunk.Seen.ERROR: Reason.FIRST_EVENT_ERROR,
    chunk.Seen.BAD: Reason.NOT_A_STREAM,
    chunk.Seen.END: Reason.NO_TOKEN,
}
