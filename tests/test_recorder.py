"""One line a request, and counts; no secret and no text of anybody's in either."""

from __future__ import annotations

import io
import json
from typing import Any

from making import attempt, plan
from zurelay.loglines import LogLines
from zurelay.plan import Past, Reason
from zurelay.ports import Record
from zurelay.recorder import LogRecorder
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


def test_a_refused_request_has_no_model_that_answered() -> None:
    answering = attempt(model="m")
    log = Log()
    log.recorder.finished(Record(plan=plan(answering), number=1, attempt=answering, outcome="refused"))
    assert [line["model"] for line in log.read()] == [None]


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
