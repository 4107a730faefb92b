"""The log: a line of JSON for each request, and for what a policy or a limit had against it. No secret, no text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from zurelay import money, settlement
from zurelay.limits import Refused
from zurelay.model import Endpoint
from zurelay.moments import SECOND, seconds
from zurelay.ports import Record, Unplanned
from zurelay.rules import Finding
from zurelay.tried import Tried
from zurelay.usage import Usage

_MILLISECONDS = 1_000


class _Request(msgspec.Struct, kw_only=True, omit_defaults=True):
    time: float
    request_id: str
    trace_id: str = ""
    client_request_id: str = ""
    key: str | None
    asked: str
    model: str | None
    provider: str | None
    category: str = ""
    effort: str = ""
    stream: bool
    outcome: str
    attempts: int
    given_up: list[str] = []
    finish_reasons: tuple[str, ...] = ()
    usage: Usage | None = None
    workload: str = ""
    usd: str | None = None
    ours_usd: str | None = None
    first_token_ms: float | None = None
    total_ms: float | None = None
    opened_early: bool = False
    keepalives: int = 0
    why: str = ""


class _Unplanned(msgspec.Struct, kw_only=True, omit_defaults=True):
    time: float
    request_id: str
    trace_id: str = ""
    key: str | None
    workload: str = ""
    asked: str = ""
    outcome: str
    status: int = 0
    code: str = ""
    total_ms: float | None = None


class _Rule(msgspec.Struct, kw_only=True):
    time: float
    request_id: str
    rule: str
    effect: str
    why: str
    shadow: bool


_encode = msgspec.json.Encoder().encode


def request(record: Record, made: Sequence[Tried], now: int) -> bytes:
    """Write the line of a request that is over; `made` are its attempts, `now` is in nanoseconds since 1970."""
    plan, spent, moments = record.plan, record.spent, record.moments
    answering = record.attempt
    line = _Request(
        time=now / SECOND,
        request_id=plan.request_id,
        trace_id=plan.trace.id if plan.trace is not None else "",
        client_request_id=plan.client_request_id,
        key=plan.key,
        asked=plan.asked,
        model=answering.model if answering is not None and record.outcome not in settlement.UNANSWERED else None,
        provider=answering.provider if answering is not None else None,
        category=plan.category,
        effort=(answering.shown_effort if answering is not None else None) or "",
        stream=plan.stream,
        outcome=record.outcome,
        attempts=len(made),
        given_up=[f"{one.attempt.cluster}: {one.reason or one.error}" for one in made if one.error],
        finish_reasons=record.finish_reasons,
        usage=record.usage if plan.endpoint is not Endpoint.COUNT_TOKENS else None,  # who only counts uses nothing
        workload=plan.workload,
        usd=_usd(spent.usd) if spent is not None else None,
        ours_usd=_usd(spent.ours) if spent is not None else None,
        first_token_ms=_milliseconds(plan.began, moments.first_token),
        total_ms=_milliseconds(plan.began, moments.ended),
        opened_early=bool(moments.opened),
        keepalives=moments.keepalives,
        why=record.why,
    )
    return _encode(line)


def unplanned(given: Unplanned, now: int) -> bytes:
    """Write the line of a request that had no plan."""
    line = _Unplanned(
        time=now / SECOND,
        request_id=given.request_id,
        trace_id=given.trace.id if given.trace is not None else "",
        key=given.key,
        workload=given.workload,
        asked=given.asked,
        outcome=given.outcome,
        status=given.status,
        code=given.code,
        total_ms=_milliseconds(given.began, given.ended),
    )
    return _encode(line)


def limited(request_id: str, refused: Refused, now: int, *, shadow: bool) -> bytes:
    """Write the line of a limit that refused, or would have."""
    rule = refused.scope.name.partition(" ")[0]
    why = f"limit {refused.limit}, used {refused.used}, needed {refused.needed}"
    effect = refused.kind.value
    return _encode(_Rule(time=now / SECOND, request_id=request_id, rule=rule, effect=effect, why=why, shadow=shadow))


def ruled(request_id: str, finding: Finding, now: int, *, shadow: bool) -> bytes:
    """Write the line of what a policy had against a request, or would have had."""
    rule, effect = f"policy:{finding.policy}", finding.effect.value
    return _encode(
        _Rule(time=now / SECOND, request_id=request_id, rule=rule, effect=effect, why=finding.why, shadow=shadow)
    )


def _usd(amount: Decimal | None) -> str | None:
    return money.written(amount) if amount else None


def _milliseconds(start: int, end: int) -> float | None:
    took = seconds(start, end)
    return None if took is None else round(took * _MILLISECONDS, 3)
