"""One line a request, and counts; no secret and no text of anybody's in either."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import pytest

from making import attempt, plan
from zurelay.limits import Kind, Refused, Scope
from zurelay.loglines import LogLines
from zurelay.plan import Past, Reason
from zurelay.ports import Record
from zurelay.recorder import LogRecorder
from zurelay.rules import Effect, Finding
from zurelay.store import Spent
from zurelay.usage import Usage


class Log:
    """A recorder and what it writes."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._lines = LogLines(self._out)
        self.recorder = LogRecorder(self._lines)

    def read(self) -> list[dict[str, Any]]:
        self._lines.wait_until_written()
        return [json.loads(line) for line in self._out.getvalue().splitlines()]


def test_a_request_is_one_line_of_json() -> None:
    answering = attempt(cluster="m/two", provider="two", model="m")
    past = Past(number=1, cluster="m/one", reason=Reason.RETRY_LATER, status=429)
    log = Log()
    log.recorder.finished(
        Record(
            plan=plan(answering, past=(past,)),
            number=2,
            attempt=answering,
            outcome="answered",
            usage=Usage(prompt=3, completion=4),
            finish_reasons=("stop",),
        )
    )
    (line,) = log.read()
    assert (line["model"], line["provider"], line["attempts"], line["outcome"]) == ("m", "two", 2, "answered")
    assert line["given_up"] == ["m/one: retry_later"]
    assert line["usage"]["prompt"] == 3
    assert line["request_id"].startswith("req_")


@pytest.mark.parametrize("outcome", ["refused", "failed"])
def test_a_request_that_failed_has_no_model_that_answered(outcome: str) -> None:
    answering = attempt(model="m")
    log = Log()
    log.recorder.finished(Record(plan=plan(answering), number=1, attempt=answering, outcome=outcome, why="said"))
    (line,) = log.read()
    assert (None, "said") == (line["model"], line["why"])


def test_requests_and_attempts_given_up_are_counted() -> None:
    answering = attempt(cluster="m/one", model="m")
    log = Log()
    for _ in range(2):
        log.recorder.finished(Record(plan=plan(answering), number=1, attempt=answering, outcome="answered"))
    log.recorder.gave_up(plan(answering), 1, "status")
    assert log.recorder.counters() == {
        'zurelay_requests_total{model="m",outcome="answered"}': 2,
        'zurelay_attempts_given_up_total{route="m/one",reason="status"}': 1,
        "zurelay_log_lines_dropped_total": 0,
    }
    assert len(log.read()) == 2


def test_costs_policies_and_limits_are_counted_and_told() -> None:
    answering = attempt(cluster="m/one", model="m")
    spent = Spent(usd=Decimal("0.25"), ours=Decimal("0.5"))
    log = Log()
    recorder = log.recorder
    for _ in range(2):
        recorder.finished(Record(plan=plan(answering), number=1, attempt=answering, outcome="answered", spent=spent))
    scope = Scope(name="policy:p key:team", label="The policy p")
    refused = Refused(scope=scope, kind=Kind.REQUESTS, limit=5, used=5, needed=1, wait=1)
    recorder.limited(plan(answering), refused, shadow=True)
    recorder.ruled("req_1", Finding("p", Effect.MODEL, "why"), shadow=False)
    counters = recorder.counters()
    assert 0.5 == counters['zurelay_cost_usd_total{model="m"}']
    assert 1.0 == counters['zurelay_own_cost_usd_total{model="m"}']
    assert 1 == counters['zurelay_limits_hit_total{scope="policy:p",limit="requests_per_minute",shadow="true"}']
    assert 1 == counters['zurelay_policy_effects_total{policy="p",effect="model",shadow="false"}']
    first, _, limit, rule = log.read()
    assert ("0.25", "0.50") == (first["usd"], first["ours_usd"])
    assert ("policy:p", "requests_per_minute", True) == (limit["rule"], limit["effect"], limit["shadow"])
    assert ("policy:p", "model", "why") == (rule["rule"], rule["effect"], rule["why"])
