"""Spans of requests that are over: who is whose child, what each says, and which requests are kept."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from making import attempt, past, plan, unplanned
from zurelay import otlp, settlement, spans
from zurelay.attributes import Place
from zurelay.model import Endpoint, Price
from zurelay.moments import Moments
from zurelay.otlp import CLIENT, INTERNAL, SERVER, Span
from zurelay.plan import Plan
from zurelay.ports import Record, Unplanned
from zurelay.spans import Rule, Scene
from zurelay.trace_context import Trace
from zurelay.tried import tried
from zurelay.usage import Usage

TRACE = Trace(id="a" * 32, server="b" * 16, parent="c" * 16, state="x=y", kept=True)
UNKEPT = Trace(id="a" * 32, server="b" * 16, parent="c" * 16)
STREAM = Trace(id="a" * 32, server="b" * 16, relay="d" * 16, kept=True)
NOTHING, ERRORS, FALLBACKS = Rule(), Rule(errors=True), Rule(fallbacks=True)
ONE, TWO = attempt("first/one"), attempt("other/two", shown_effort="high")


def scene() -> Scene:
    numbers = itertools.count(1)
    return Scene(lambda name: Place(name.upper(), f"{name}.test", 443), lambda: f"{next(numbers):016x}")


def planned(trace: Trace | None = TRACE, **facts: Any) -> Plan:
    return plan(ONE, TWO, **{"trace": trace, "began": 10, "decided": 20, "key": "team", "workload": "n/s", **facts})


def record(given: Plan | None = None, **facts: Any) -> Record:
    return Record(
        **{
            "plan": given or planned(),
            "number": 1,
            "attempt": ONE,
            "outcome": settlement.ANSWERED,
            "status": 200,
            "moments": Moments(began=20, ended=90),
            **facts,
        }
    )


def of(given: Record, rule: Rule = NOTHING) -> list[Span]:
    found = spans.of(given, tried(given), scene(), rule)
    for span in found:
        otlp.span(span)  # all of it can be written
    return found


def test_a_decision_and_an_attempt_stand_below_envoys_span() -> None:
    decision, attempt_ = of(record())
    assert ("decide", INTERNAL, "b" * 16, 10, 20) == (
        decision.name,
        decision.kind,
        decision.parent,
        decision.start,
        decision.end,
    )
    assert ("chat one-first", CLIENT, "b" * 16, 20, 90) == (
        attempt_.name,
        attempt_.kind,
        attempt_.parent,
        attempt_.start,
        attempt_.end,
    )
    assert {"a" * 32} == {span.trace for span in (decision, attempt_)}
    assert {"x=y"} == {span.state for span in (decision, attempt_)}
    assert {
        "zurelay.request_id": "req_1",
        "zurelay.key": "team",
        "zurelay.workload": "n/s",
        "zurelay.model.asked": "first",
        "zurelay.plan": ("first/one", "other/two"),
    } == decision.attributes


def test_another_model_that_answers_says_from_where_and_at_which_effort() -> None:
    given = planned(past=(past(1, began=20, ended=30),), category="simple", score=0.25, effort_asked="max")
    decision, first, second = of(record(given, number=2, attempt=TWO))
    assert ("simple", 0.25, "max") == (
        decision.attributes["zurelay.category"],
        decision.attributes["zurelay.score"],
        decision.attributes["zurelay.effort.asked"],
    )
    assert ("500", "status", 500) == (
        first.attributes["error.type"],
        first.attributes["zurelay.moved_on"],
        first.attributes["http.response.status_code"],
    )
    assert "500" == first.error
    assert ("first", "high", "simple", None) == (
        second.attributes["zurelay.routed_from"],
        second.attributes["zurelay.effort.applied"],
        second.attributes["zurelay.category"],
        second.error,
    )


def test_attempts_of_a_stream_stand_below_its_relay_which_tells_how_it_went() -> None:
    moments = Moments(began=20, first_token=50, opened=40, ended=90, keepalives=3)
    decision, relay, attempt_ = of(record(planned(STREAM, stream=True), moments=moments))
    assert "b" * 16 == decision.parent == relay.parent
    assert ("d" * 16, "d" * 16) == (relay.id, attempt_.parent)
    assert [("zurelay.opened_early", 40), ("zurelay.first_token", 50), ("zurelay.kept_alive", 90)] == [
        (event.name, event.at) for event in relay.events
    ]
    assert {"zurelay.keepalives": 3} == relay.events[-1].attributes
    assert [("zurelay.first_token", 50)] == [(event.name, event.at) for event in attempt_.events]
    assert 30e-9 == attempt_.attributes["gen_ai.response.time_to_first_chunk"]
    assert attempt_.attributes["gen_ai.request.stream"] is True


def test_a_stream_that_broke_off_is_an_error_of_relay_and_attempt() -> None:
    _, relay, attempt_ = of(record(planned(STREAM, stream=True), outcome=settlement.BROKEN))
    assert ("", "broken") == (relay.error, relay.attributes["error.type"])
    assert ("broken", "broken", "broken") == (
        attempt_.error,
        attempt_.attributes["error.type"],
        attempt_.attributes["zurelay.failed"],
    )


def test_a_client_that_left_made_no_error() -> None:
    assert {None} == {span.error for span in of(record(outcome=settlement.CLIENT_LEFT))}


def test_what_an_attempt_wasted_is_told() -> None:
    dear = attempt("first/one", price=Price(input=Decimal(1_000_000), output=Decimal(0)))
    given = plan(dear, TWO, trace=TRACE, began=10, decided=20, past=(past(1, usage=Usage(prompt=2)),))
    _, first, _ = of(record(given, number=2, attempt=TWO))
    assert 2.0 == first.attributes["zurelay.cost.discarded_usd"]


def test_nothing_is_made_where_nothing_is_traced_or_kept() -> None:
    assert [] == of(record(planned(None)))
    assert [] == of(record(planned(UNKEPT)))


@pytest.mark.parametrize(
    ("rule", "facts", "kept"),
    [
        (ERRORS, {"outcome": settlement.FAILED}, True),
        (ERRORS, {"outcome": settlement.BROKEN}, True),
        (ERRORS, {"outcome": settlement.CLIENT_LEFT}, False),
        (ERRORS, {"number": 2, "attempt": TWO}, False),
        (FALLBACKS, {"number": 2, "attempt": TWO}, True),
        (FALLBACKS, {"outcome": settlement.FAILED}, False),
        (NOTHING, {"outcome": settlement.FAILED, "number": 2, "attempt": TWO}, False),
    ],
)
def test_a_rule_keeps_what_the_share_left_out(rule: Rule, facts: dict[str, Any], kept: bool) -> None:
    assert kept == bool(of(record(planned(UNKEPT), **facts), rule))


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        (Endpoint.CHAT, "/v1/chat/completions"),
        (Endpoint.MESSAGES, "/v1/messages"),
        (Endpoint.COUNT_TOKENS, "/v1/messages/count_tokens"),
    ],
)
def test_the_server_span_is_made_where_envoy_does_not_send_it(endpoint: Endpoint, path: str) -> None:
    """With Envoy's own id: whatever else stands below it does so still."""
    given = record(planned(UNKEPT, endpoint=endpoint), outcome=settlement.FAILED)
    server, *others = of(given, ERRORS)
    assert (f"POST {path}", SERVER, "b" * 16, "c" * 16, 10, 90) == (
        server.name,
        server.kind,
        server.id,
        server.parent,
        server.start,
        server.end,
    )
    assert ("", "failed", path) == (server.error, server.attributes["error.type"], server.attributes["url.path"])
    assert {"b" * 16} == {span.parent for span in others}


def test_the_server_span_is_made_where_envoy_has_none() -> None:
    ours = Trace(id="a" * 32, server="b" * 16, kept=True, ours=True)
    assert [SERVER, INTERNAL, CLIENT] == [span.kind for span in of(record(planned(ours)))]


def refusal(**facts: Any) -> Unplanned:
    known = {"method": "GET", "path": "/v1/models/x", "status": 403, "code": "policy_denied", "began": 10, "ended": 30}
    return unplanned(**{**known, "asked": "secret-model", "key": "team", "trace": TRACE, **facts})


def test_a_refused_request_is_a_decision_alone() -> None:
    (decision,) = spans.of_unplanned(refusal(), scene(), NOTHING)
    assert ("decide", "b" * 16, "policy_denied") == (decision.name, decision.parent, decision.error)
    assert {
        "zurelay.request_id": "req_1",
        "zurelay.key": "team",
        "zurelay.model.asked": "secret-model",
        "error.type": "policy_denied",
    } == decision.attributes


@pytest.mark.parametrize(("status", "error"), [(403, None), (503, "")])
def test_a_refused_request_that_a_rule_keeps_is_whole(status: int, error: str | None) -> None:
    server, decision = spans.of_unplanned(refusal(trace=UNKEPT, status=status), scene(), ERRORS)
    assert ("GET /v1/models/{model}", "GET", "/v1/models/x") == (
        server.name,
        server.attributes["http.request.method"],
        server.attributes["url.path"],
    )
    assert (server.id, status, error) == (
        decision.parent,
        server.attributes["http.response.status_code"],
        server.error,
    )


@pytest.mark.parametrize(
    "facts", [{"outcome": settlement.ANSWERED, "status": 200}, {"outcome": settlement.CLIENT_LEFT, "status": 0}]
)
def test_a_request_without_a_plan_that_was_not_refused_is_no_error(facts: dict[str, Any]) -> None:
    given = refusal(code="", **facts)
    (decision,) = spans.of_unplanned(given, scene(), NOTHING)
    assert (None, False) == (decision.error, "error.type" in decision.attributes)
    ours = msgspec.structs.replace(given, trace=msgspec.structs.replace(TRACE, ours=True))
    server, _ = spans.of_unplanned(ours, scene(), NOTHING)
    assert (facts["status"] or None, None) == (server.attributes.get("http.response.status_code"), server.error)
    assert [] == spans.of_unplanned(msgspec.structs.replace(given, trace=UNKEPT), scene(), ERRORS)


def test_a_refused_request_that_is_not_kept_leaves_nothing() -> None:
    assert [] == spans.of_unplanned(refusal(trace=UNKEPT), scene(), FALLBACKS)
    assert [] == spans.of_unplanned(refusal(trace=None), scene(), ERRORS)
