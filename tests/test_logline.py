"""The log's lines: what stands in them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from making import attempt, past, plan, unplanned
from zurelay import logline, settlement
from zurelay.limits import Kind, Refused, Scope
from zurelay.model import Endpoint
from zurelay.moments import SECOND, Moments
from zurelay.plan import Reason
from zurelay.ports import Record
from zurelay.rules import Effect, Finding
from zurelay.store import Spent
from zurelay.trace_context import Trace
from zurelay.tried import tried
from zurelay.usage import Usage

NOW = 3 * SECOND // 2
TRACE = Trace(id="a" * 32, server="b" * 16)
TWO = attempt("first/two", shown_effort="high")


def written(record: Record) -> bytes:
    return logline.request(record, tried(record), NOW)


def request(**facts: Any) -> dict[str, Any]:
    given = {"plan": plan("first/one", TWO), "number": 1, "attempt": TWO, "outcome": settlement.ANSWERED}
    line: dict[str, Any] = json.loads(written(Record(**{**given, **facts})))
    return line


def test_a_request_is_one_line_with_all_that_is_known() -> None:
    planned = plan(
        "first/one",
        TWO,
        past=(past(1, Reason.RETRY_LATER, status=429),),
        trace=TRACE,
        category="simple",
        client_request_id="theirs",
        key="team",
        workload="n/s",
        stream=True,
        began=SECOND,
    )
    moments = Moments(began=2 * SECOND, first_token=3 * SECOND, opened=2 * SECOND, ended=5 * SECOND, keepalives=2)
    line = request(
        plan=planned,
        number=2,
        usage=Usage(prompt=3, completion=4),
        finish_reasons=("stop",),
        spent=Spent(usd=Decimal("0.25"), ours=Decimal("0.5")),
        moments=moments,
        why="said so",
    )
    usage = line.pop("usage")
    assert (3, 4) == (usage["prompt"], usage["completion"])
    assert {
        "time": 1.5,
        "request_id": "req_1",
        "trace_id": "a" * 32,
        "client_request_id": "theirs",
        "key": "team",
        "asked": "first",
        "model": "first",
        "provider": "two",
        "category": "simple",
        "effort": "high",
        "stream": True,
        "outcome": "answered",
        "attempts": 2,
        "given_up": ["first/one: retry_later"],
        "finish_reasons": ["stop"],
        "workload": "n/s",
        "usd": "0.25",
        "ours_usd": "0.50",
        "first_token_ms": 2000.0,
        "total_ms": 4000.0,
        "opened_early": True,
        "keepalives": 2,
        "why": "said so",
    } == line


def test_what_is_not_known_is_left_out() -> None:
    assert {"trace_id", "usage", "first_token_ms", "total_ms", "given_up", "usd"}.isdisjoint(request())


def test_a_refused_request_has_no_model_that_answered() -> None:
    assert request(outcome=settlement.REFUSED)["model"] is None


def test_a_request_that_got_no_plan_says_why() -> None:
    refusal = unplanned(began=SECOND, ended=2 * SECOND, asked="theirs", key="team", trace=TRACE)
    assert {
        "time": 1.5,
        "request_id": "req_1",
        "trace_id": "a" * 32,
        "key": "team",
        "asked": "theirs",
        "outcome": "turned_away",
        "status": 404,
        "code": "model_not_found",
        "total_ms": 1000.0,
    } == json.loads(logline.unplanned(refusal, NOW))


def test_a_list_of_models_has_an_outcome_and_no_code() -> None:
    listed = unplanned(method="GET", path="/v1/models", outcome=settlement.ANSWERED, status=200, code="")
    line = json.loads(logline.unplanned(listed, NOW))
    assert ("answered", 200) == (line["outcome"], line["status"])
    assert {"code", "asked"}.isdisjoint(line)


def test_limits_and_policies_say_what_they_had_against_it() -> None:
    scope = Scope(name="policy:p key:team", label="The policy p")
    refused = Refused(scope=scope, kind=Kind.REQUESTS, limit=5, used=5, needed=1, wait=1)
    limit = json.loads(logline.limited("req_1", refused, NOW, shadow=True))
    rule = json.loads(logline.ruled("req_1", Finding("p", Effect.MODEL, "why"), NOW, shadow=False))
    assert ("policy:p", "requests_per_minute", True) == (limit["rule"], limit["effect"], limit["shadow"])
    assert ("policy:p", "model", "why") == (rule["rule"], rule["effect"], rule["why"])


def test_who_counts_tokens_uses_none() -> None:
    planned = plan("first/one", endpoint=Endpoint.COUNT_TOKENS)
    given = Record(plan=planned, number=1, attempt=planned.attempts[0], outcome="answered", usage=Usage(prompt=5))
    assert "usage" not in json.loads(written(given))
