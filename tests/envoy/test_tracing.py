"""Envoy's part of the traces, asked of Envoy: its span, its sampling, its way to the collector."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
import trustme

from envoy_testbed import Testbed, provider, runtime, settings
from envoy_toys import RecordingProvider
from otlp_receiver import Receiver, Span
from zurelay import otel, paths, trace_context
from zurelay.envoy import tracing
from zurelay.headers import SPAN
from zurelay.model import Telemetry, Url
from zurelay.otel import Target
from zurelay.trace_context import Sampling


@pytest.fixture(name="short_tmp")
def _short_tmp(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory whose path leaves room for a Unix socket's name."""
    return tmp_path_factory.mktemp("t")


TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}
CHAT = "/v1/chat/completions"
PLAN = {"plan": ["one.whole"], "metadata": {"path": CHAT}}


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(name="one")
def _one() -> Iterator[RecordingProvider]:
    running = RecordingProvider("one")
    yield running
    running.stop()


def bed_of(directory: pathlib.Path, one: RecordingProvider, **telemetry: Any) -> Testbed:
    made = Testbed(
        directory,
        settings(provider("one", f"http://127.0.0.1:{one.port}/v1"), telemetry=Telemetry(**telemetry)),
    )
    made.settle()
    return made


def told(bed: Testbed) -> list[str]:
    """What the sidecar was told of Envoy's spans."""
    return [headers.get(SPAN, "") for phase, _, headers in bed.sidecar.seen if phase == "ingress"]


def only_span(receiver: Receiver) -> Span:
    (span,) = receiver.until(lambda r: r.spans)
    return span


def test_the_server_span_goes_on_with_the_clients_trace(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        assert 200 == bed.ask(f"{CHAT}?key=secret-in-the-query", {}, PLAN, headers=SAMPLED).status
        span = only_span(receiver)
        assert (TRACE, PARENT, "a=b") == (span.trace, span.parent, span.state)
        assert [f"{TRACE}-{span.id}"] == told(bed)
        # Header blocks of calls to the sidecar are all alike: a context in them would cost more than the span.
        assert {"traceparent", "tracestate"}.isdisjoint(bed.sidecar.seen[0][1])
    assert ("SERVER", f"POST {CHAT}", "zurelay") == (span.kind, span.name, span.service)
    assert (CHAT, CHAT, "200") == (span["url.path"], span["http.url"], span["http.response.status_code"])
    assert not any(b"secret-in-the-query" in raw for raw in receiver.raw)
    assert "instance" not in receiver.resources[0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages?beta=true"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/some/thing?x=/v1/models"),
        ("GET", CHAT),
        ("PUT", "/v1/models/some"),
        ("POST", "/wp-login.php"),
        ("POST", f"{CHAT}/{'x' * 900}"),
    ],
)
def test_the_server_span_has_one_of_few_names(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider, method: str, path: str
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        bed.ask(path, {}, {"immediate": [404, "zurelay"]}, method=method)
        span = only_span(receiver)
    name = paths.operation(method, path)
    assert (name, name.partition(" ")[2] or "other") == (span.name, span["url.path"])
    assert span["url.path"] == span["http.url"]


ODD = {"user-agent": "a" + "é" * 200, "x-request-id": "é" * 9_000, "referer": "é"}


@pytest.mark.parametrize("planned", [False, True])
def test_what_a_client_writes_keeps_no_span_from_its_collector(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider, planned: bool
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        headers = {name: value.encode() + b"\xff" for name, value in ODD.items()}
        bed.ask(CHAT, {}, PLAN if planned else {"immediate": [404, "zurelay"]}, headers=headers)
        span = only_span(receiver)
    assert f"POST {CHAT}" == span.name
    assert not any(b"\xff" in raw or "é".encode() in raw for raw in receiver.raw)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_with_a_plan_the_server_span_keeps_the_name_and_the_path_that_were_asked_for(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider, path: str
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        assert 200 == bed.ask(f"{path}?beta=true", {}, {**PLAN, "metadata": {"path": path}}).status
        span = only_span(receiver)
    (arrived,) = one.arrived
    assert f"POST {path} " not in arrived.head[0]
    assert (f"POST {path}", path, path) == (span.name, span["url.path"], span["http.url"])


def test_a_provider_gets_no_trace_context_unless_it_should(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        bed.ask(CHAT, {}, PLAN, headers=SAMPLED)
    (arrived,) = one.arrived
    assert {"traceparent", "tracestate", SPAN}.isdisjoint(arrived.headers)


def test_a_provider_that_should_gets_our_span_as_its_parent(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint, propagate=True) as bed:
        bed.ask(CHAT, {}, PLAN, headers=SAMPLED)
        span = only_span(receiver)
    (arrived,) = one.arrived
    assert f"00-{TRACE}-{span.id}-01" == arrived.headers["traceparent"]


@pytest.mark.parametrize("telemetry", [{}, {"otlp": "http://127.0.0.1:9"}], ids=["off", "on"])
def test_no_client_can_say_which_span_it_is_in(
    short_tmp: pathlib.Path, one: RecordingProvider, telemetry: dict[str, Any]
) -> None:
    forged = f"{'f' * 32}-{'e' * 16}"
    with bed_of(short_tmp, one, **telemetry) as bed:
        assert 200 == bed.ask(CHAT, {}, PLAN, headers={SPAN: forged}).status
        (found,) = told(bed)
    assert forged not in found


def test_the_sidecar_knows_what_envoy_keeps(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider
) -> None:
    sampling = Sampling(ratio=0.437123)
    with bed_of(short_tmp, one, otlp=receiver.endpoint, sample=sampling.ratio) as bed:
        for _ in range(200):
            bed.ask(CHAT, {}, {"immediate": [403, "zurelay"]})
        traces = [mark.partition("-")[0] for mark in told(bed)]
        kept = {trace for trace in traces if sampling.keeps(trace, None)}
        assert 40 < len(kept) < 140
        receiver.until(lambda r: len(r.spans) >= len(kept))
        assert kept == {span.trace for span in receiver.spans}


@pytest.mark.parametrize(("flag", "kept"), [("01", True), ("00", False)])
def test_a_parents_decision_holds_whatever_the_share(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider, flag: str, kept: bool
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint, sample=0.0 if kept else 1.0) as bed:
        bed.ask(CHAT, {}, {"immediate": [403, "zurelay"]}, headers={"traceparent": f"00-{TRACE}-{PARENT}-{flag}"})
        other = {"traceparent": f"00-{'1' * 32}-{PARENT}-01"}  # one that comes for sure, behind it
        bed.ask(CHAT, {}, {"immediate": [403, "zurelay"]}, headers=other)
        receiver.until(lambda r: [span for span in r.spans if span.trace == "1" * 32])
        assert kept == bool(receiver.trace(TRACE))


BROKEN = {
    "no hexadecimal": f"00-zz{TRACE[2:]}-{PARENT}-01",
    "no trace": f"00-{'0' * 32}-{PARENT}-01",
    "a later version with more": f"01-{TRACE}-{PARENT}-01-more",
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_where_envoy_makes_no_span_the_sidecar_is_told_so(
    short_tmp: pathlib.Path, receiver: Receiver, one: RecordingProvider, sent: str
) -> None:
    with bed_of(short_tmp, one, otlp=receiver.endpoint) as bed:
        assert 200 == bed.ask(CHAT, {}, PLAN, headers={"traceparent": sent}).status
        (mark,) = told(bed)
    trace = trace_context.began(mark, trace_context.parse(sent), Sampling(ratio=1.0), lambda size: "f" * 2 * size)
    assert trace.ours


def test_a_collector_that_speaks_tls_must_be_the_one_that_is_named(
    short_tmp: pathlib.Path, one: RecordingProvider
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem = short_tmp / "ca.pem"
    authority.cert_pem.write_to_path(str(pem))
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    receiver = Receiver(tls=grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)]))
    target = Target(url=Url(scheme="https", host="localhost", port=receiver.port), ca=str(pem))
    try:
        with bed_of(short_tmp, one, otlp=f"https://localhost:{receiver.port}") as bed:
            # The same collector by the authority that signed for it, which a variable would name.
            assert tracing.collector(target, "/none")["transport_socket"]
            bed.ask(CHAT, {}, {"immediate": [403, "zurelay"]})
            bed.wait(lambda: any(int(v) for v in bed.stats(r"collector.*ssl\.fail_verify_error").values()))
        assert [] == receiver.spans
    finally:
        receiver.stop()


def test_the_collector_is_a_cluster_of_its_own_place() -> None:
    first = Target(url=Url(scheme="http", host="a", port=1))
    moved = Target(url=Url(scheme="http", host="a", port=2))
    assert tracing.collector_name(first) != tracing.collector_name(moved)
    assert tracing.collector_name(first) == tracing.collector_name(Target(url=first.url, headers=(("k", "v"),)))


def test_headers_and_who_sends_go_with_the_spans() -> None:
    export = otel.export(
        Telemetry(otlp="http://c:1"),
        {
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=50%25",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
            "OTEL_SERVICE_NAME": "gate",
            "OTEL_TRACES_SAMPLER": "always_off",
        },
    )
    assert export is not None
    manager: dict[str, Any] = {
        "http_filters": [{"typed_config": {}}],
        "route_config": {"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}}]}]},
    }
    tracing.trace(manager, export)
    config = manager["tracing"]["provider"]["typed_config"]
    assert [{"key": "api-key", "value": "50%%"}] == config["grpc_service"]["initial_metadata"]
    assert "gate" == config["service_name"]
    attributes = config["resource_detectors"][0]["typed_config"]["attributes"]
    assert {"service.name": "gate", "deployment.environment.name": "test"} == attributes
    assert config["sampler"]["name"].endswith("trace_id_ratio_based")
    assert 0 == config["sampler"]["typed_config"]["sampling_percentage"]["numerator"]


def test_without_traces_nothing_changes() -> None:
    export = otel.export(Telemetry(otlp="http://c:1"), {"OTEL_TRACES_EXPORTER": "none"})
    assert export is not None
    manager: dict[str, Any] = {}
    tracing.trace(manager, export)
    assert {} == manager
    assert {} == runtime().environ
