"""Streams that pass through: which requests go that way, and what Envoy has counted of them (docs/passthrough.md)."""

from __future__ import annotations

import msgspec

from zurelay import usage
from zurelay.formats import anthropic_usage
from zurelay.model import Endpoint, Format, Model, Settings
from zurelay.plan import Attempt, Passes, Plan
from zurelay.usage import Usage

_OWN_FORMAT = {Endpoint.CHAT: Format.OPENAI, Endpoint.MESSAGES: Format.ANTHROPIC}


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What Envoy tells of a stream that passed through.

    `number` is the attempt that answered, 0: none; `first` and `last` are usage objects as they came, `reported` counts
    the events up to the last one; `whole` says that the stream came to its end.
    """

    number: int = 0
    first: str = ""
    last: str = ""
    events: int = 0
    reported: int = 0
    whole: bool = False


def wanted(settings: Settings) -> bool:
    """Tell whether any stream may pass through."""
    return any(_allowed(settings, model) for model in settings.models.values())


def _allowed(settings: Settings, model: Model) -> bool:
    return settings.streaming.passthrough if model.passthrough is None else model.passthrough


def applied(settings: Settings, plan: Plan, *, include_usage: bool, now: float) -> Plan:
    """Let a plan's stream pass through, where all that may answer it allow it and speak the client's format."""
    own = _OWN_FORMAT.get(plan.endpoint)
    if not all(one.format is own and _allowed(settings, settings.models[one.model]) for one in plan.attempts):
        return plan
    keep = include_usage or plan.endpoint is not Endpoint.CHAT
    passes = Passes.KEEP if keep else Passes.DROP
    trace = msgspec.structs.replace(plan.trace, relay="") if plan.trace is not None else None
    return msgspec.structs.replace(plan, passes=passes, begin_by=now + plan.total, trace=trace)


def used(counted: Counted, attempt: Attempt) -> Usage | None:
    """Give what the provider says was used; None where it didn't. What came behind its word is counted by events."""
    reports = [value for raw in (counted.first, counted.last) if (value := usage.decoded(raw.encode())) is not None]
    if not reports:
        return None
    behind = max(0, counted.events - counted.reported)
    if attempt.format is Format.OPENAI:
        first, last = usage.from_openai(reports[0]), usage.from_openai(reports[-1])
        known = last if usage.says_more(last, first) else first
        return known if counted.whole or not behind else _at_least(known, known.completion + behind)
    known = anthropic_usage.from_anthropic(anthropic_usage.merged(reports[0], reports[-1]))
    # A message's head only says how the output began; behind the last word there is one event, the end.
    told = behind <= 1 and (counted.whole or counted.last != "")
    return known if told else _at_least(known, counted.events)


def _at_least(known: Usage, completion: int) -> Usage:
    return msgspec.structs.replace(known, completion=max(known.completion, completion), estimated=True)
