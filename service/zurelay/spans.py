"""From a request that is over to its spans: the decision, the relay of a stream, and one client span an attempt.

The server span is Envoy's, whose id came with the request; it is made here where Envoy doesn't send it. Attempts stand
below the relay of a stream, else below the server span. Nothing here grows with the length of an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec

from zurelay import attributes, paths, semconv
from zurelay.attributes import Place, operation
from zurelay.otlp import CLIENT, INTERNAL, SERVER, Event, Span, Value, Written, written
from zurelay.ports import Record, Unplanned
from zurelay.settlement import ANSWERED, CLIENT_LEFT, TURNED_AWAY
from zurelay.trace_context import Trace
from zurelay.tried import Tried

FIRST_TOKEN, OPENED_EARLY, KEPT_ALIVE = "zurelay.first_token", "zurelay.opened_early", "zurelay.kept_alive"
_SERVER_FAULT = 500


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

    def keeps_unplanned(self, given: Unplanned) -> bool:
        """Decide at the end of a request that had no plan."""
        return self.errors and given.outcome == TURNED_AWAY


def of(record: Record, made: Sequence[Tried], scene: Scene, rule: Rule) -> list[Span]:
    """Give the spans of a request that is over, whose attempts are `made`: none where its trace isn't kept."""
    trace = record.plan.trace
    if trace is None or not (trace.kept or rule.keeps(record)):
        return []
    found = []
    if trace.ours or not trace.kept:
        found.append(_server(record, trace))
    found.append(_decision(record, trace, scene))
    if trace.relay:
        found.append(_relay(record, trace))
    found += [_attempt(record, one, trace, scene) for one in made]
    return found


def of_unplanned(given: Unplanned, scene: Scene, rule: Rule) -> list[Span]:
    """Give the spans of a request that is over and had no attempt."""
    trace = given.trace
    if trace is None or not (trace.kept or rule.keeps_unplanned(given)):
        return []
    found = []
    if trace.ours or not trace.kept:
        found.append(_unplanned_server(given, trace))
    asked = _asked(given.key, given.workload, given.asked)
    told: dict[str, Value] = {"zurelay.request_id": given.request_id}
    if given.code:
        told[semconv.ERROR_TYPE] = given.code
    found.append(_decide(trace, scene, (given.began, given.ended), (asked, told), given.code or None))
    return found


@functools.lru_cache(1_024)
def _asked(key: str | None, workload: str, asked: str, planned: tuple[str, ...] = ()) -> Written:
    """Write what many requests have in common: who asks for what, and gets which plan."""
    told: dict[str, Value] = {}
    if key:
        told["zurelay.key"] = key
    if workload:
        told["zurelay.workload"] = workload
    if asked:
        told["zurelay.model.asked"] = asked
    if planned:
        told["zurelay.plan"] = planned
    return written(told)


def _server(record: Record, trace: Trace) -> Span:
    plan, path = record.plan, paths.OF[record.plan.endpoint]
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
        own=told,
        error="" if failed else None,
        state=trace.state,
    )


def _unplanned_server(given: Unplanned, trace: Trace) -> Span:
    told: dict[str, Value] = {
        semconv.METHOD: given.method,
        semconv.URL_PATH: given.path,
        "zurelay.request_id": given.request_id,
    }
    if given.status:
        told[semconv.STATUS_CODE] = given.status
    if given.code:
        told[semconv.ERROR_TYPE] = given.code
    return Span(
        trace=trace.id,
        id=trace.server,
        parent=trace.parent,
        name=paths.operation(given.method, given.path),
        kind=SERVER,
        start=given.began,
        end=given.ended,
        own=told,
        # https://opentelemetry.io/docs/specs/semconv/http/http-spans/: a server's 4xx is the client's mistake.
        error="" if given.status >= _SERVER_FAULT else None,
        state=trace.state,
    )


def _decision(record: Record, trace: Trace, scene: Scene) -> Span:
    plan = record.plan
    asked = _asked(plan.key, plan.workload, plan.asked, tuple(plan.clusters))
    told: dict[str, Value] = {"zurelay.request_id": plan.request_id}
    if plan.category:
        told["zurelay.category"] = plan.category
        told["zurelay.score"] = plan.score
    if plan.effort_asked:
        told["zurelay.effort.asked"] = plan.effort_asked
    return _decide(trace, scene, (plan.began, plan.decided), (asked, told))


def _decide(
    trace: Trace,
    scene: Scene,
    during: tuple[int, int],
    told: tuple[Written, dict[str, Value]],
    error: str | None = None,
) -> Span:
    start, end = during
    common, own = told
    return Span(
        trace=trace.id,
        id=scene.fresh(),
        parent=trace.server,
        name="decide",
        kind=INTERNAL,
        start=start,
        end=end,
        common=common,
        own=own,
        error=error,
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
        own=told,
        events=tuple(events),
        error="" if failed else None,
        state=trace.state,
    )


def _attempt(record: Record, one: Tried, trace: Trace, scene: Scene) -> Span:
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
        common=attributes.common(record, one, scene.place(one.attempt.provider)),
        own=attributes.own(record, one),
        events=events,
        error=one.error or None,
        state=trace.state,
    )
