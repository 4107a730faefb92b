"""Verdicts on a provider's answer, whole or streamed, each in one short call."""

from __future__ import annotations

import json
from typing import Any

from making import plan
from zurelay.attempt import StreamAttempt, judge_whole
from zurelay.plan import Plan
from zurelay.verdict import Answered, Verdict

LIMIT = 1 << 20
GOOD = b'{"model":"x","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
TWO = plan("first/one", "first/one", "first/two", "second/one", "second/one")
MISTAKE = json.dumps({"error": {"message": "bad stop", "code": "odd", "param": "stop"}}).encode()


def whole(
    status: int = 200, body: bytes = GOOD, planned: Plan = TWO, number: int = 1, limit: int = LIMIT, **head: Any
) -> Verdict:
    return judge_whole(planned, number, Answered(status=status, **head), body, limit=limit, created=0)


def streamed(*pieces: bytes, status: int = 200, planned: Plan = TWO, number: int = 1, **head: Any) -> Verdict | None:
    """Feed pieces, the last one with the end."""
    held = StreamAttempt(planned, number, Answered(status=status, **head))
    for place, piece in enumerate(pieces, 1):
        verdict = held.feed(piece, end=place == len(pieces))
        if verdict is not None:
            return verdict
    return None


def both(status: int, body: bytes, **facts: Any) -> Verdict:
    """The verdict on a bad answer, which must not depend on whether a stream was asked."""
    one, other = whole(status, body, **facts), streamed(body, status=status, **facts)
    assert other is not None
    assert facts_of(one) == facts_of(other)
    return one


def facts_of(verdict: Verdict) -> tuple[Any, ...]:
    error = verdict.error
    told = error and (type(error), error.message, error.status, error.code, error.param, error.headers())
    return (verdict.kind, verdict.reason, verdict.status, verdict.aside, verdict.plan, told)
