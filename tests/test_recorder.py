"""One line a request, and counts; no secret and no text of anybody's in either."""

from __future__ import annotations

import json

import pytest

from making import attempt, plan
from zurelay.plan import Past, Reason
from zurelay.ports import Record
from zurelay.recorder import LogRecorder
from zurelay.usage import Usage


def test_a_request_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    answering = attempt(cluster="m/two", provider="two", model="m")
    past = Past(number=1, cluster="m/one", reason=Reason.RETRY_LATER, status=429)
    recorder = LogRecorder()
    recorder.finished(
        Record(
            plan=plan(answering, past=(past,)),
            number=2,
            attempt=answering,
            outcome="answered",
            usage=Usage(prompt=3, completion=4),
            finish_reasons=("stop",),
        )
    )
    line = json.loads(capsys.readouterr().err)
    assert (line["model"], line["provider"], line["attempts"], line["outcome"]) == ("m", "two", 2, "answered")
    assert line["given_up"] == ["m/one: retry_later"]
    assert line["usage"]["prompt"] == 3
    assert line["request_id"].startswith("req_")


def test_a_refused_request_has_no_model_that_answered(capsys: pytest.CaptureFixture[str]) -> None:
    answering = attempt(model="m")
    LogRecorder().finished(Record(plan=plan(answering), number=1, attempt=answering, outcome="refused"))
    assert json.loads(capsys.readouterr().err)["model"] is None


def test_requests_and_attempts_given_up_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    answering = attempt(cluster="m/one", model="m")
    recorder = LogRecorder()
    for _ in range(2):
        recorder.finished(Record(plan=plan(answering), number=1, attempt=answering, outcome="answered"))
    recorder.gave_up(plan(answering), 1, "status")
    assert recorder.counters() == {
        'zurelay_requests_total{model="m",outcome="answered"}': 2,
        'zurelay_attempts_given_up_total{route="m/one",reason="status"}': 1,
    }
    assert len(capsys.readouterr().err.splitlines()) == 2
