"""How an attempt ended, and what follows: the answer is the client's, the plan moves on, or the request fails.

A move on carries the plan as the next attempt must find it; a failure carries the error that the client sees.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from zurelay import refusal
from zurelay.errors import InvalidRequest, ModelUnavailable, ProviderRefusal, ZurelayError
from zurelay.plan import Attempt, Past, Plan, Reason, moved_on, remaining
from zurelay.usage import Usage


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


def timed(verdict: Verdict, began: int, ended: int) -> Verdict:
    """Give a verdict whose attempt, if it is given up, says when it was; times are nanoseconds since 1970."""
    if verdict.past is None:
        return verdict
    past = msgspec.structs.replace(verdict.past, began=began, ended=ended)
    following = verdict.plan
    if following is not None:
        following = msgspec.structs.replace(following, past=(*following.past[:-1], past))
    return msgspec.structs.replace(verdict, past=past, plan=following)


def refused(plan: Plan, number: int, answered: Answered, body: bytes) -> Verdict:
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


def lost(plan: Plan, number: int, answered: Answered, reason: Reason, wasted: Usage | None = None) -> Verdict:
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
