"""From a request that is over to its spans: the decision, the relay of a stream, and one client span an attempt.

The server span is Envoy's, whose id came with the request; it is made here where Envoy doesn't send it. Attempts stand
below the relay of a stream, else below the server span. Nothing here grows with the length of an answer.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zurelay import semconv
from zurelay.model import Endpoint
from zurelay.moments import seconds
from zurelay.otlp import CLIENT, INTERNAL, SERVER, Event, Span, Value
from zurelay.plan import Attempt, Plan, routed_from
from zurelay.ports import Record, Refusal
from zurelay.settlement import ANSWERED, CLIENT_LEFT
from zurelay.trace_context import Trace
from zurelay.tried import Tried, tried
from zurelay.usage import Usage

CHAT, COUNT = "chat", "count_tokens"  # gen_ai.operation.name; the conventions have no word for the latter
FIRST_TOKEN, OPENED_EARLY, KEPT_ALIVE = "zurelay.first_token", "zurelay.opened_early", "zurelay.kept_alive"
_PATHS = {
    Endpoint.CHAT: "/v1/chat/completions",
    Endpoint.MESSAGES: "/v1/messages",
    Endpoint.COUNT_TOKENS: "/v1/messages/count_tokens",
}
_SERVER_FAULT = 500


def operation(plan: Plan) -> str:
    """Name what a request does."""
    return COUNT if plan.endpoint is Endpoint.COUNT_TOKENS else CHAT


class Place(msgspec.Struct, frozen=True):
    """Where a provider is, and what the conventions call it."""

    name: str
    address: str
    port: int


class Scene(msgspec.Struct, frozen=True):
    """What spans are made with: `place` finds a provider, `fresh` gives a span id that nobody has used."""

    place: Callable[[str], Place]
    fresh: Callable[[], str]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are kept though their trace isn't: those that failed, those that took several attempts."""

    errors: bool = False
    fallbacks: bool = False

    def keeps(self, record: Record) -> bool:
        """Decide at a request's end."""
        if self.errors and record.outcome not in (ANSWERED, CLIENT_LEFT):
            return True
        return self.fallbacks and record.number > 1


def of(record: Record, scene: Scene, rule: Rule) -> list[Span]:
    """Give the spans of a request that is over: none where its trace isn't kept."""
    trace = record.plan.trace
    if trace is None or not (trace.kept or rule.keeps(record)):
        return []
    found = []
    if trace.ours or not trace.kept:
        found.append(_server(record, trace))
    found.append(_decision(record, trace, scene))
    if trace.relay:
        found.append(_relay(record, trace))
    found += [_attempt(record, one, trace, scene) for one in tried(record)]
    return found


def of_refusal(refusal: Refusal, scene: Scene, rule: Rule) -> list[Span]:
    """Give the spans of a request that was refused before any attempt."""
    trace = refusal.trace
    if trace is None or not (trace.kept or rule.errors):
        return []
    found = []
    if trace.ours or not trace.kept:
        found.append(_refused_server(refusal, trace))
    told = _known(refusal.request_id, refusal.key, refusal.workload)
    if refusal.asked:
        told["zurelay.model.asked"] = refusal.asked
    told[semconv.ERROR_TYPE] = refusal.code
    found.append(
        Span(
            trace=trace.id,
            id=scene.fresh(),
            parent=trace.server,
            name="decide",
            kind=INTERNAL,
            start=refusal.began,
            end=refusal.ended,
            attributes=told,
            error=refusal.code,
            state=trace.state,
        )
    )
    return found


def _known(request_id: str, key: str | None, workload: str) -> dict[str, Value]:
    found: dict[str, Value] = {"zurelay.request_id": request_id}
    if key:
        found["zurelay.key"] = key
    if workload:
        found["zurelay.workload"] = workload
    return found


def _server(record: Record, trace: Trace) -> Span:
    plan, path = record.plan, _PATHS[record.plan.endpoint]
    failed = record.outcome not in (ANSWERED, CLIENT_LEFT)
    told: dict[str, Value] = {
        semconv.METHOD: "POST",
        semconv.URL_PATH: path,
        "zurelay.request_id": plan.request_id,
    }
    if failed:
        told[semconv.ERROR_TYPE] = record.outcome
    return Span(
        trace=trace.id,
        id=trace.server,
        parent=trace.parent,
        name=f"POST {path}",
        kind=SERVER,
        start=plan.began,
        end=record.moments.ended,
        attributes=told,
        error="" if failed else None,
        state=trace.state,
    )


def _refused_server(refusal: Refusal, trace: Trace) -> Span:
    path = _PATHS[refusal.endpoint]
    told: dict[str, Value] = {
        semconv.METHOD: "POST",
        semconv.URL_PATH: path,
        semconv.STATUS_CODE: refusal.status,
        semconv.ERROR_TYPE: refusal.code,
        "zurelay.request_id": refusal.request_id,
    }
    return Span(
        trace=trace.id,
        id=trace.server,
        parent=trace.parent,
        name=f"POST {path}",
        kind=SERVER,
        start=refusal.began,
        end=refusal.ended,
        attributes=told,
        # https://opentelemetry.io/docs/specs/semconv/http/http-spans/: a server's 4xx is the client's mistake.
        error="" if refusal.status >= _SERVER_FAULT else None,
        state=trace.state,
    )


def _decision(record: Record, trace: Trace, scene: Scene) -> Span:
    plan = record.plan
    told = _known(plan.request_id, plan.key, plan.workload)
    told["zurelay.model.asked"] = plan.asked
    told["zurelay.plan"] = tuple(plan.clusters)
    if plan.category:
        told["zurelay.category"] = plan.category
        told["zurelay.score"] = plan.score
    if plan.effort_asked:
        told["zurelay.effort.asked"] = plan.effort_asked
    return Span(
        trace=trace.id,
        id=scene.fresh(),
        parent=trace.server,
        name="decide",
        kind=INTERNAL,
        start=plan.began,
        end=plan.decided,
        attributes=told,
        state=trace.state,
    )


def _relay(record: Record, trace: Trace) -> Span:
    moments = record.moments
    events = []
    if moments.opened:
        events.append(Event(OPENED_EARLY, moments.opened))
    if moments.first_token:
        events.append(Event(FIRST_TOKEN, moments.first_token))
    if moments.keepalives:
        events.append(Event(KEPT_ALIVE, moments.ended, {"zurelay.keepalives": moments.keepalives}))
    told: dict[str, Value] = {"zurelay.request_id": record.plan.request_id, "zurelay.outcome": record.outcome}
    failed = record.outcome not in (ANSWERED, CLIENT_LEFT)
    if failed:
        told[semconv.ERROR_TYPE] = record.outcome
    return Span(
        trace=trace.id,
        id=trace.relay,
        parent=trace.server,
        name="relay",
        kind=INTERNAL,
        start=record.plan.decided,
        end=moments.ended,
        attributes=told,
        events=tuple(events),
        error="" if failed else None,
        state=trace.state,
    )


def _attempt(record: Record, one: Tried, trace: Trace, scene: Scene) -> Span:
    told = _of_attempt(record, one, scene)
    events: tuple[Event, ...] = ()
    if one.ends and record.moments.first_token:
        events = (Event(FIRST_TOKEN, record.moments.first_token),)
    return Span(
        trace=trace.id,
        id=scene.fresh(),
        parent=trace.above,
        name=f"{operation(record.plan)} {one.attempt.upstream}",
        kind=CLIENT,
        start=one.began,
        end=max(one.ended, one.began),
        attributes=told,
        events=events,
        error=one.error or None,
        state=trace.state,
    )


def _of_attempt(record: Record, one: Tried, scene: Scene) -> dict[str, Value]:
    plan, attempt = record.plan, one.attempt
    place = scene.place(attempt.provider)
    told: dict[str, Value] = {
        semconv.OPERATION: operation(plan),
        semconv.PROVIDER: place.name,
        semconv.REQUEST_MODEL: attempt.upstream,
        semconv.SERVER_ADDRESS: place.address,
        semconv.SERVER_PORT: place.port,
        "zurelay.attempt.number": one.number,
        "zurelay.route": attempt.cluster,
        "zurelay.provider": attempt.provider,
        "zurelay.model": attempt.model,
    }
    if plan.stream:
        told[semconv.REQUEST_STREAM] = True
    _add_choice(told, record, attempt)
    if one.status:
        told[semconv.STATUS_CODE] = one.status
    if one.error:
        told[semconv.ERROR_TYPE] = one.error
    if one.reason:
        told["zurelay.moved_on" if not one.ends else "zurelay.failed"] = one.reason
    if one.discarded is not None:
        told["zurelay.cost.discarded_usd"] = float(one.discarded)
    if one.ends:
        _add_end(told, record, one)
    return told


def _add_choice(told: dict[str, Value], record: Record, attempt: Attempt) -> None:
    came_from = routed_from(record.plan, attempt)
    if came_from is not None:
        told["zurelay.routed_from"] = came_from
    if record.plan.category:
        told["zurelay.category"] = record.plan.category
    if attempt.shown_effort is not None:
        told["zurelay.effort.applied"] = attempt.shown_effort


def _add_end(told: dict[str, Value], record: Record, one: Tried) -> None:
    """Add what only the attempt that ended the request has: its use, its end, its cost."""
    moments, spent = record.moments, record.spent
    if record.response_model:
        told[semconv.RESPONSE_MODEL] = record.response_model
    if record.finish_reasons:
        told[semconv.FINISH_REASONS] = record.finish_reasons
    first = seconds(one.began, moments.first_token)
    if first is not None:
        told[semconv.TIME_TO_FIRST_CHUNK] = first
    if record.usage is not None and operation(record.plan) is CHAT:  # who only counts uses nothing
        told.update(_usage(record.usage))
    if record.why:
        told["zurelay.why"] = record.why
    if spent is not None and spent.usd:
        told["zurelay.cost.usd"] = float(spent.usd)
    if spent is not None and spent.ours:
        told["zurelay.cost.own_usd"] = float(spent.ours)
    if record.content is not None:
        told.update(record.content)


def _usage(usage: Usage) -> dict[str, Value]:
    told: dict[str, Value] = {semconv.INPUT_TOKENS: usage.prompt, semconv.OUTPUT_TOKENS: usage.completion}
    more = {
        semconv.CACHE_READ: usage.cached,
        semconv.CACHE_WRITTEN: usage.cache_written,
        semconv.REASONING_TOKENS: usage.reasoning,
    }
    told |= {name: count for name, count in more.items() if count}
    if usage.estimated:
        told["zurelay.usage.estimated"] = True
    return told
