"""One attempt, from a provider's answer to a verdict: it answers the client, the plan moves on, or the request fails.

Rules that hold for both kinds of attempt: a verdict is given once; a move on carries the plan as the next attempt
must find it; a failure carries the error that the client sees. Nothing here knows of Envoy or of time.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from zurelay import chunk, exchange, refusal
from zurelay.encoding import ContentDecoder, decode
from zurelay.errors import InvalidRequest, ModelUnavailable, ProviderRefusal, ZurelayError
from zurelay.formats import Stamp
from zurelay.openai_answer import BadAnswerError
from zurelay.plan import Attempt, Past, Plan, Reason, moved_on, remaining
from zurelay.sse import Decoder, Event, SseError
from zurelay.usage import Usage

_BYTES_PER_TOKEN = 4
_SHORT = 64 << 10  # bytes of an error's body: more only repeat the request
HELD = 512 << 10  # bytes held before a verdict; Envoy 1.40 crashes past its 1 MiB connection buffer


class Kind(enum.Enum):
    """How an attempt ended."""

    ANSWER = "answer"
    MOVE_ON = "move_on"
    FAIL = "fail"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended. `plan` is the next attempt's, on a move on; `aside` sets the route aside, in seconds.

    `past` is what an attempt that is given up leaves on record, the last one too.
    """

    kind: Kind
    body: bytes | None = None
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    error: ZurelayError | None = None
    plan: Plan | None = None
    past: Past | None = None
    status: int = 200
    aside: int | None = None

    @property
    def reason(self) -> Reason | None:
        """Why the attempt is given up; None where it answers, or the mistake is the client's own."""
        return self.past.reason if self.past is not None else None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a provider's answer."""

    status: int
    content_encoding: str = ""
    content_length: int | None = None
    retry_after: int | None = None

    @classmethod
    def read(cls, headers: Mapping[str, str], now: float) -> Answered:
        """Take what counts from the response headers; `now` is Unix time, for a Retry-After that is a date."""
        return cls(
            status=int(headers.get(":status", "0")),
            content_encoding=headers.get("content-encoding", ""),
            content_length=int(length) if (length := headers.get("content-length", "")).isdecimal() else None,
            retry_after=refusal.retry_after(headers.get("retry-after"), now),
        )

    @property
    def is_success(self) -> bool:
        """Whether the status says that there is an answer."""
        return 200 <= self.status < 300  # noqa: PLR2004  # RFC 9110, 15.3


def judge_whole(plan: Plan, number: int, answered: Answered, body: bytes, *, limit: int, created: int) -> Verdict:
    """Judge a complete answer.

    `limit` bounds what a compressed one may grow to, in bytes; `created` is Unix time, for one that is translated.
    """
    current = plan.attempts[number - 1]
    try:
        plain = decode(body, answered.content_encoding, limit) if answered.content_encoding else body
    except ZurelayError:
        if answered.is_success:
            return _lost(plan, number, answered, Reason.UNREADABLE)
        plain = b""  # its status says enough
    if not answered.is_success:
        return _refused(plan, number, answered, plain)
    try:
        answer = exchange.whole_answer(plain, current, plan.endpoint, stamp(plan, current, created))
    except BadAnswerError as error:
        return _lost(plan, number, answered, error.reason, _wasted(plan, current, plain))
    return Verdict(
        kind=Kind.ANSWER,
        body=answer.body,
        usage=answer.usage,
        finish_reasons=answer.finish_reasons,
        status=answered.status,
    )


def timed(verdict: Verdict, began: int, ended: int) -> Verdict:
    """Give a verdict whose attempt, if it is given up, says when it was; times are nanoseconds since 1970."""
    if verdict.past is None:
        return verdict
    past = msgspec.structs.replace(verdict.past, began=began, ended=ended)
    following = verdict.plan
    if following is not None:
        following = msgspec.structs.replace(following, past=(*following.past[:-1], past))
    return msgspec.structs.replace(verdict, past=past, plan=following)


def judge_head(plan: Plan, number: int, answered: Answered, *, limit: int) -> Verdict | None:
    """Judge an answer by its head, where its body can't be had or tells nothing; None where it must be waited for.

    A short body is waited for in any case: the connection to the provider is then of use to others.
    """
    length = answered.content_length
    if answered.is_success:
        too_large = length is not None and length > limit
        return _lost(plan, number, answered, Reason.TOO_LARGE) if too_large else None
    if length is not None and length <= _SHORT:
        return None
    if refusal.reason_of(answered.status) is None and (length is None or length <= limit):
        return None
    return _refused(plan, number, answered, b"")


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
            return _refused(self._plan, self._number, self._answered, body)
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
        return _lost(self._plan, self._number, self._answered, reason, wasted)


_REASONS = {
    chunk.Seen.ERROR: Reason.FIRST_EVENT_ERROR,
    chunk.Seen.BAD: Reason.NOT_A_STREAM,
    chunk.Seen.END: Reason.NO_TOKEN,
}


def _refused(plan: Plan, number: int, answered: Answered, body: bytes) -> Verdict:
    """Judge an answer whose status is no success."""
    attempt = plan.attempts[number - 1]
    error = refusal.read(body)
    reason = refusal.reason(answered.status, error, named=attempt.named)
    if reason is None:
        return _fail(_client_mistake(answered.status, error), answered)
    past = _past(attempt, number, answered, reason)
    last = not remaining(plan, number, reason)
    if last and reason is Reason.CONTEXT_LENGTH and (attempt.named or _all_about_length(plan, number)):
        return _fail(_too_long(error), answered, past)
    return _on_or_out(plan, past, answered)


def _lost(plan: Plan, number: int, answered: Answered, reason: Reason, wasted: Usage | None = None) -> Verdict:
    """Judge a success that was none; it has `wasted` so much."""
    return _on_or_out(plan, _past(plan.attempts[number - 1], number, answered, reason, wasted), answered)


def _on_or_out(plan: Plan, past: Past, answered: Answered) -> Verdict:
    rest = remaining(plan, past.number, past.reason)
    aside = _aside(answered)
    if rest:
        moved = moved_on(plan, past, rest)
        return Verdict(kind=Kind.MOVE_ON, plan=moved, past=past, status=answered.status, aside=aside)
    return _fail(unavailable((*plan.past, past), past.number), answered, past)


def _fail(error: ZurelayError, answered: Answered, past: Past | None = None) -> Verdict:
    return Verdict(kind=Kind.FAIL, error=error, past=past, status=answered.status, aside=_aside(answered))


def _past(attempt: Attempt, number: int, answered: Answered, reason: Reason, wasted: Usage | None = None) -> Past:
    return Past(
        number=number,
        cluster=attempt.cluster,
        reason=reason,
        status=answered.status,
        retry_after=answered.retry_after,
        usage=wasted,
    )


def _aside(answered: Answered) -> int | None:
    if answered.status not in (429, 503) or answered.retry_after is None:
        return None
    return min(answered.retry_after, refusal.MOST_WAIT)


def _all_about_length(plan: Plan, number: int) -> bool:
    return len(plan.past) == number - 1 and all(past.reason is Reason.CONTEXT_LENGTH for past in plan.past)


def _too_long(error: refusal.ProviderError) -> ZurelayError:
    message = error.message or "The request is longer than the model's context window: send a shorter one."
    return InvalidRequest(message, code="context_length_exceeded", param="messages")


def _client_mistake(status: int, error: refusal.ProviderError) -> ZurelayError:
    message = error.message or f"The provider refused the request with status {status} and gave no reason."
    return ProviderRefusal(message, status=status, code=error.code, param=error.param)


def wait(past: tuple[Past, ...]) -> int:
    """Say when to ask again, in seconds: the soonest that a provider named, 1 to 60, else 5 (SPEC 10)."""
    return refusal.wait([one.retry_after for one in past if one.retry_after is not None])


def unavailable(past: tuple[Past, ...], made: int) -> ModelUnavailable:
    """Give the error of a plan whose every attempt failed."""
    seconds = wait(past)
    tries = "The only attempt" if made == 1 else f"All {made} attempts"
    return ModelUnavailable(
        f"{tries} to get an answer failed. Try again in {seconds} s, or ask another model.",
        retry_after=seconds,
        should_retry=False,
    )
