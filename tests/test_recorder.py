"""Requests on record: lines, counts, spans and log records, each where the settings want them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from making import attempt, catalog, model, plan, unplanned
from otlp_receiver import Receiver, value
from zurelay import otel, settlement, tally
from zurelay.export import Exporter
from zurelay.families import LOG_LINES_DROPPED, REQUESTS, TELEMETRY_DROPPED
from zurelay.limits import Kind, Refused, Scope
from zurelay.loglines import LogLines
from zurelay.model import Keep, Telemetry
from zurelay.moments import SECOND, Moments
from zurelay.otel import Signal
from zurelay.ports import Record
from zurelay.recorder import LogRecorder
from zurelay.rules import Effect, Finding
from zurelay.trace_context import Context, Trace

TRACE, SPAN = "a" * 32, "b" * 16
ONE = attempt("first/one")


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


class Log:
    """A recorder and what it writes."""

    def __init__(self, **recorder: Any) -> None:
        self._out = io.BytesIO()
        self._lines = LogLines(self._out)
        self.recorder = LogRecorder(self._lines, **recorder)
        self.exporter: Exporter | None = None

    def configure(self, receiver: Receiver, environ: dict[str, str] | None = None, **telemetry: Any) -> None:
        given = Telemetry(otlp=receiver.endpoint, **telemetry)
        export = otel.export(given, environ or {})
        assert export is not None
        self.exporter = Exporter(export, "i")
        settings = catalog(model("first", "one"), telemetry=given).settings
        self.recorder.configure(settings, self.exporter)

    def close(self) -> None:
        assert self.exporter is not None
        self.exporter.close()

    def read(self) -> list[dict[str, Any]]:
        self._lines.wait_until_written()
        return [json.loads(line) for line in self._out.getvalue().splitlines()]


def record(trace: Trace | None = None, **facts: Any) -> Record:
    planned = plan(ONE, began=SECOND, decided=SECOND, trace=trace)
    moments = Moments(began=SECOND, ended=2 * SECOND)
    given = {"plan": planned, "number": 1, "attempt": ONE, "outcome": settlement.ANSWERED, "moments": moments}
    return Record(**{**given, **facts})


def test_every_event_is_a_line_and_counted() -> None:
    log = Log()
    scope = Scope(name="key:team", label="it")
    log.recorder.decided(plan(ONE), 0.001)
    log.recorder.finished(record())
    log.recorder.unplanned(unplanned())
    log.recorder.gave_up(plan(ONE), 1, "status")
    refused = Refused(scope=scope, kind=Kind.REQUESTS, limit=5, used=5, needed=1, wait=1)
    log.recorder.limited(plan(ONE), refused, shadow=True)
    log.recorder.ruled("req_1", Finding("p", Effect.MODEL, "why"), shadow=False)
    request, turned_away, limit, rule = log.read()
    assert ("answered", "turned_away") == (request["outcome"], turned_away["outcome"])
    assert ("key:team", "policy:p") == (limit["rule"], rule["rule"])
    found = tally.total([log.recorder.samples()])
    assert (1,) == found[REQUESTS.name, ("first", "answered")]
    assert (0,) == found[LOG_LINES_DROPPED.name, ()]


def test_nothing_is_traced_unless_it_is_sent(receiver: Receiver) -> None:
    log = Log()
    assert log.recorder.trace("", None) is None
    log.configure(receiver, {"OTEL_TRACES_EXPORTER": "none"})
    assert log.recorder.trace("", None) is None
    log.close()


def test_a_trace_goes_on_with_envoys_span(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver)
    sent = Context(trace=TRACE, span="c" * 16, sampled=False)
    found = log.recorder.trace(f"{TRACE}-{SPAN}", sent)
    assert Trace(id=TRACE, server=SPAN, parent="c" * 16) == found
    stream = log.recorder.trace(f"{TRACE}-{SPAN}", sent, stream=True)
    assert stream is not None
    assert len(stream.relay) == 16
    log.close()


def test_a_trace_of_our_own_is_like_no_other(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver)
    made = [log.recorder.trace("-", None) for _ in range(100)]
    assert 100 == len({each.id for each in made if each is not None and each.ours and each.kept})
    log.close()


def test_spans_are_sent_where_the_trace_is_kept(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver)
    log.recorder.finished(record(Trace(id=TRACE, server=SPAN, kept=True)))
    log.recorder.finished(record(Trace(id="1" * 32, server=SPAN)))
    log.recorder.unplanned(unplanned(trace=Trace(id="2" * 32, server=SPAN, kept=True)))
    log.close()
    assert {TRACE, "2" * 32} == {span.trace for span in receiver.spans}
    (sent,) = (span for span in receiver.spans if span.kind == "CLIENT")
    assert ("one", "one.test", 443) == (sent["gen_ai.provider.name"], sent["server.address"], sent["server.port"])
    assert TRACE == log.read()[0]["trace_id"]


def test_a_rule_keeps_errors_though_their_trace_is_not(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver, keep=frozenset({Keep.ERRORS}))
    unkept = Trace(id=TRACE, server=SPAN)
    log.recorder.finished(record(unkept))
    log.recorder.finished(record(unkept, outcome=settlement.FAILED))
    log.recorder.unplanned(unplanned(trace=unkept))
    log.close()
    assert ["SERVER", "INTERNAL", "CLIENT", "SERVER", "INTERNAL"] == [span.kind for span in receiver.spans]


def test_spans_are_made_later_than_the_answer(receiver: Receiver) -> None:
    later: list[Callable[[], None]] = []
    log = Log(later=later.append)
    log.configure(receiver)
    kept = Trace(id=TRACE, server=SPAN, kept=True)
    log.recorder.finished(record(kept))
    log.recorder.finished(record(kept))
    (send,) = later
    send()
    log.recorder.finished(record(kept))
    assert 2 == len(later)
    log.close()
    assert 4 == len(receiver.spans)


def test_at_the_end_spans_that_wait_are_made_at_once(receiver: Receiver) -> None:
    log = Log(later=lambda _: None)
    log.configure(receiver)
    log.recorder.finished(record(Trace(id=TRACE, server=SPAN, kept=True)))
    log.recorder.send_waiting()
    log.close()
    assert 2 == len(receiver.spans)


@pytest.mark.parametrize(
    ("keep", "kept", "expected"),
    [
        (frozenset(), False, False),
        (frozenset(), True, True),
        (frozenset({Keep.ERRORS}), False, True),
        (frozenset({Keep.FALLBACKS}), False, True),
    ],
)
def test_a_request_may_come_to_have_spans_where_its_trace_or_a_rule_keeps_it(
    receiver: Receiver, keep: frozenset[Keep], kept: bool, expected: bool
) -> None:
    log = Log()
    log.configure(receiver, keep=keep)
    assert expected == log.recorder.may_keep(Trace(id=TRACE, server=SPAN, kept=kept))
    log.close()


def test_log_lines_are_sent_where_that_is_wanted(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver, logs=True)
    log.recorder.finished(record(Trace(id=TRACE, server=SPAN)))
    log.recorder.ruled("req_1", Finding("p", Effect.MODEL, "why"), shadow=False)
    log.close()
    request, rule = receiver.logs
    assert (TRACE, SPAN, 9) == (request.trace_id.hex(), request.span_id.hex(), request.severity_number)
    assert ("zurelay.request", "zurelay.policy", 13) == (request.event_name, rule.event_name, rule.severity_number)
    assert log.read() == [json.loads(value(each.body)) for each in (request, rule)]


def test_what_was_dropped_still_counts_when_another_exporter_comes(receiver: Receiver) -> None:
    log = Log()
    log.configure(receiver)
    receiver.refuse = True
    log.recorder.finished(record(Trace(id=TRACE, server=SPAN, kept=True)))
    log.close()

    def dropped() -> dict[str, float]:
        totals = tally.total([log.recorder.samples()])
        return {labels[0]: values[0] for (name, labels), values in totals.items() if name == TELEMETRY_DROPPED.name}

    assert 2 == dropped()[Signal.TRACES.value]
    log.configure(receiver)
    assert 2 == dropped()[Signal.TRACES.value]
    log.close()


def test_reasons_that_a_provider_makes_up_are_cut_short() -> None:
    log = Log()
    log.recorder.finished(record(finish_reasons=("stop", "x" * 100_000)))
    log.recorder.finished(record(finish_reasons=("y",) * 100_000))
    long, many = log.read()
    assert ["stop", "x" * 64] == long["finish_reasons"]
    assert 128 == len(many["finish_reasons"])
