"""What is written by hand is what the official classes read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from otlp_receiver import value, values
from zurelay import otlp
from zurelay.otlp import Event, Log, Point, Span

TRACE, SPAN_ID, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
TEXTS = st.text(st.characters(codec="utf-8"))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
VALUES = TEXTS | st.booleans() | INTEGERS | st.floats(allow_nan=False) | st.lists(TEXTS).map(tuple)
ATTRIBUTES = st.dictionaries(TEXTS, VALUES)
TIMES = st.integers(0, 2**64 - 1)


def made(**facts: Any) -> Span:
    return Span(
        **{
            "trace": TRACE,
            "id": SPAN_ID,
            "parent": PARENT,
            "name": "chat",
            "kind": otlp.CLIENT,
            "start": 1,
            "end": 2,
            "own": {},
            **facts,
        }
    )


def read_spans(*spans: Span) -> ExportTraceServiceRequest:
    head, scope = otlp.resource({"service.name": "zurelay"}), otlp.scope("zurelay", "1.2")
    return ExportTraceServiceRequest.FromString(otlp.request(head, scope, map(otlp.span, spans)))


def plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: list(given) if isinstance(given, tuple) else given for name, given in attributes.items()}


@given(st.integers(0, 2**64 - 1))
def test_a_varint_is_read_back(number: int) -> None:
    data = otlp.varint(number)
    assert number == sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data))
    assert [byte >> 7 for byte in data] == [1] * (len(data) - 1) + [0]


@given(ATTRIBUTES, TEXTS, TIMES, TIMES, st.sampled_from([otlp.INTERNAL, otlp.SERVER, otlp.CLIENT]))
def test_a_span_is_read_back_whole(attributes: dict[str, Any], name: str, start: int, end: int, kind: int) -> None:
    given_ = made(name=name, own=attributes, start=start, end=end, kind=kind, state="a=b")
    (resource,) = read_spans(given_).resource_spans
    assert {"service.name": "zurelay"} == values(resource.resource.attributes)
    (scope,) = resource.scope_spans
    assert ("zurelay", "1.2") == (scope.scope.name, scope.scope.version)
    (span,) = scope.spans
    assert (TRACE, SPAN_ID, PARENT) == (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    assert (name, kind, start, end) == (span.name, span.kind, span.start_time_unix_nano, span.end_time_unix_nano)
    assert plain(attributes) == values(span.attributes)
    assert ("a=b", 0) == (span.trace_state, span.status.code)


@given(ATTRIBUTES, ATTRIBUTES)
def test_what_spans_have_in_common_is_read_back_with_their_own(common: dict[str, Any], own: dict[str, Any]) -> None:
    given_ = made(common=otlp.written({f"c.{name}": value for name, value in common.items()}), own=own)
    (resource,) = read_spans(given_).resource_spans
    (span,) = resource.scope_spans[0].spans
    assert plain(dict(given_.attributes)) == values(span.attributes)
    assert len(common) + len(own) == len(span.attributes)


def test_a_root_has_no_parent_and_several_spans_stand_in_one_request() -> None:
    (resource,) = read_spans(made(parent=""), made(name="other")).resource_spans
    assert [b"", bytes.fromhex(PARENT)] == [span.parent_span_id for span in resource.scope_spans[0].spans]


@given(ATTRIBUTES)
def test_events_and_errors_are_read_back(attributes: dict[str, Any]) -> None:
    events = (Event("first", 5), Event("second", 6, attributes))
    (resource,) = read_spans(made(events=events, error="broken")).resource_spans
    (span,) = resource.scope_spans[0].spans
    assert [("first", 5), ("second", 6)] == [(event.name, event.time_unix_nano) for event in span.events]
    assert plain(attributes) == values(span.events[1].attributes)
    assert (2, "broken") == (span.status.code, span.status.message)


def test_an_error_without_words_is_an_error() -> None:
    (resource,) = read_spans(made(error="")).resource_spans
    assert 2 == resource.scope_spans[0].spans[0].status.code


def test_half_a_character_does_not_break_a_span() -> None:
    (resource,) = read_spans(made(name="\ud800", own={"a": "\udc80"})).resource_spans
    assert {"a": "?"} == values(resource.scope_spans[0].spans[0].attributes)


@given(ATTRIBUTES, TEXTS, TIMES)
def test_a_log_record_is_read_back(attributes: dict[str, Any], body: str, at: int) -> None:
    log = Log(at=at, body=body, severity=13, event="zurelay.request", trace=TRACE, span=SPAN_ID, attributes=attributes)
    data = otlp.request(otlp.resource({}), otlp.scope("s", "1"), [otlp.log(log)])
    (record,) = ExportLogsServiceRequest.FromString(data).resource_logs[0].scope_logs[0].log_records
    assert (at, at, 13) == (record.time_unix_nano, record.observed_time_unix_nano, record.severity_number)
    assert (TRACE, SPAN_ID) == (record.trace_id.hex(), record.span_id.hex())
    assert (body or None, "zurelay.request") == (value(record.body), record.event_name)
    assert plain(attributes) == values(record.attributes)


def read_metric(written: bytes) -> Any:
    data = otlp.request(otlp.resource({}), otlp.scope("s", "1"), [written])
    (metric,) = ExportMetricsServiceRequest.FromString(data).resource_metrics[0].scope_metrics[0].metrics
    return metric


@given(ATTRIBUTES, st.floats(allow_nan=False))
def test_a_gauge_and_a_counter_are_read_back(attributes: dict[str, Any], number: float) -> None:
    points = [Point(attributes, (number,)), Point({}, (1,))]
    gauge = read_metric(otlp.gauge("g", "told", "1", points, 9))
    assert ("g", "told", "1") == (gauge.name, gauge.description, gauge.unit)
    assert [number, 1.0] == [point.as_double for point in gauge.gauge.data_points]
    counter = read_metric(otlp.counter("c", "told", "1", points, 4, 9)).sum
    assert (True, AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE) == (
        counter.is_monotonic,
        counter.aggregation_temporality,
    )
    first = counter.data_points[0]
    assert (4, 9, number) == (first.start_time_unix_nano, first.time_unix_nano, first.as_double)
    assert plain(attributes) == values(first.attributes)


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 2, 300)])
def test_a_histogram_is_read_back(counts: tuple[int, ...]) -> None:
    points = [Point({"a": "b"}, (*counts, 2.5))]
    metric = read_metric(otlp.histogram("h", "told", "s", (0.5, 1.0), points, (4, 9)))
    (point,) = metric.histogram.data_points
    assert (list(counts), [0.5, 1.0]) == (list(point.bucket_counts), list(point.explicit_bounds))
    assert (sum(counts), 2.5, 4, 9) == (point.count, point.sum, point.start_time_unix_nano, point.time_unix_nano)
    assert {"a": "b"} == values(point.attributes)


@given(st.integers(0, 2**63 - 1), st.text())
def test_what_a_collector_did_not_take_is_read(count: int, message: str) -> None:
    answer = trace_service_pb2.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = count
    answer.partial_success.error_message = message
    assert count == otlp.rejected(answer.SerializeToString())


@given(st.binary())
def test_an_answer_of_any_bytes_is_no_harm(answer: bytes) -> None:
    assert otlp.rejected(answer) >= 0
