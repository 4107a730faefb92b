"""What is sent, and where: the file's word first, then the variables that OpenTelemetry's SDKs know."""

from __future__ import annotations

from typing import Any

import pytest

from zurelay import otel
from zurelay.model import Telemetry, Url
from zurelay.otel import Export, OtelError, Signal, Target
from zurelay.trace_context import Sampling

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}
FILE = Telemetry(otlp="http://127.0.0.1:4317")


def export(telemetry: Telemetry = FILE, **environ: str) -> Export:
    found = otel.export(telemetry, environ)
    assert found is not None
    return found


def traces(**environ: str) -> Target:
    found = export(Telemetry(), **environ).to(Signal.TRACES)
    assert found is not None
    return found


def test_nothing_is_sent_unless_somebody_says_where() -> None:
    assert otel.export(Telemetry(), {}) is None
    assert otel.export(Telemetry(sample=1.0), {"OTEL_SERVICE_NAME": "z"}) is None


def test_traces_and_metrics_are_sent_where_the_file_says() -> None:
    target = Target(url=Url(scheme="http", host="127.0.0.1", port=4317))
    assert {Signal.TRACES: target, Signal.METRICS: target} == export().targets
    assert target == export(OTEL_EXPORTER_OTLP_ENDPOINT="http://other:1").to(Signal.TRACES)


def test_variables_alone_turn_it_on_and_one_turns_it_off() -> None:
    assert Url(scheme="http", host="collector", port=4317) == traces(**ENDPOINT).url
    assert otel.export(FILE, {"OTEL_SDK_DISABLED": "true"}) is None


ENDPOINTS: dict[str, tuple[dict[str, str], Url]] = {
    "with a port": ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:9"}, Url(scheme="http", host="c", port=9)),
    "without a port": ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c"}, Url(scheme="https", host="c", port=4317)),
    "without a scheme": ({"OTEL_EXPORTER_OTLP_ENDPOINT": "c:9"}, Url(scheme="https", host="c", port=9)),
    "insecure": (
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "c:9", "OTEL_EXPORTER_OTLP_INSECURE": "true"},
        Url(scheme="http", host="c", port=9),
    ),
    "IPv6": ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1]:9"}, Url(scheme="http", host="::1", port=9)),
    "of the signal": (
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:9"},
        Url(scheme="http", host="traces", port=9),
    ),
}


@pytest.mark.parametrize(("environ", "expected"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_an_endpoint_is_read(environ: dict[str, str], expected: Url) -> None:
    assert expected == traces(**environ).url


def test_headers_a_certificate_and_a_timeout_go_with_it() -> None:
    target = traces(
        **ENDPOINT,
        OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20x, tenant=a ,broken",
        OTEL_EXPORTER_OTLP_CERTIFICATE="/ca.pem",
        OTEL_EXPORTER_OTLP_TIMEOUT="2500",
    )
    assert (("authorization", "Bearer x"), ("tenant", "a")) == target.headers
    assert ("/ca.pem", 2.5) == (target.ca, target.timeout)


SIGNALS: dict[str, tuple[Telemetry, dict[str, str], set[Signal]]] = {
    "by default": (FILE, {}, {Signal.TRACES, Signal.METRICS}),
    "no traces": (FILE, {"OTEL_TRACES_EXPORTER": "none"}, {Signal.METRICS}),
    "no metrics": (FILE, {"OTEL_METRICS_EXPORTER": "none"}, {Signal.TRACES}),
    "logs by the file": (Telemetry(otlp=FILE.otlp, logs=True), {}, set(Signal)),
    "logs by a variable": (FILE, {"OTEL_LOGS_EXPORTER": "otlp"}, set(Signal)),
    "no logs though the file wants them": (
        Telemetry(otlp=FILE.otlp, logs=True),
        {"OTEL_LOGS_EXPORTER": "none"},
        {Signal.TRACES, Signal.METRICS},
    ),
    "only metrics have an endpoint": (
        Telemetry(),
        {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m:1"},
        {Signal.METRICS},
    ),
}


@pytest.mark.parametrize(("telemetry", "environ", "expected"), SIGNALS.values(), ids=SIGNALS)
def test_signals_are_chosen(telemetry: Telemetry, environ: dict[str, str], expected: set[Signal]) -> None:
    assert expected == export(telemetry, **environ).targets.keys()


SAMPLERS: dict[str, tuple[dict[str, str], Sampling]] = {
    "by default": ({}, Sampling(ratio=1.0)),
    "always_on": ({"OTEL_TRACES_SAMPLER": "always_on"}, Sampling(ratio=1.0, heed_parent=False)),
    "always_off": ({"OTEL_TRACES_SAMPLER": "always_off"}, Sampling(ratio=0.0, heed_parent=False)),
    "parentbased_always_off": ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, Sampling(ratio=0.0)),
    "a share": (
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
        Sampling(ratio=0.25, heed_parent=False),
    ),
    "a share of roots": (
        {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
        Sampling(ratio=0.25),
    ),
    "a share that isn't said": ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, Sampling(ratio=1.0)),
}


@pytest.mark.parametrize(("environ", "expected"), SAMPLERS.values(), ids=SAMPLERS)
def test_samplers_are_read(environ: dict[str, str], expected: Sampling) -> None:
    assert expected == export(FILE, **environ).sampling


def test_the_files_share_is_of_requests_without_a_parent() -> None:
    telemetry = Telemetry(otlp=FILE.otlp, sample=0.5)
    assert Sampling(ratio=0.5) == export(telemetry, OTEL_TRACES_SAMPLER="always_off").sampling


def test_the_resource_says_who_sends() -> None:
    assert {"service.name": "zurelay"} == export().resource
    attributes = "service.name=x,deployment.environment.name=a%2Cb, =y,z"
    assert {"service.name": "x", "deployment.environment.name": "a,b"} == export(
        OTEL_RESOURCE_ATTRIBUTES=attributes
    ).resource
    assert "named" == export(OTEL_RESOURCE_ATTRIBUTES=attributes, OTEL_SERVICE_NAME="named").resource["service.name"]


def test_the_interval_is_a_minute_unless_said() -> None:
    assert 60.0 == export().interval
    assert 0.5 == export(OTEL_METRIC_EXPORT_INTERVAL="500").interval
    for odd in ("soon", "\N{SUPERSCRIPT TWO}", "9" * 400):
        assert 60.0 == export(OTEL_METRIC_EXPORT_INTERVAL=odd).interval


WRONG: dict[str, dict[str, str]] = {
    "another protocol": {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
    "no sampler": {"OTEL_TRACES_SAMPLER": "jaeger_remote"},
    "no share": {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"},
    "an exporter that isn't here": {"OTEL_TRACES_EXPORTER": "zipkin"},
    "a certificate of our own": {"OTEL_EXPORTER_OTLP_CLIENT_KEY": "/key.pem"},
    "a header's name with a space": {"OTEL_EXPORTER_OTLP_HEADERS": "a=b,c d=e"},
    "a header of HTTP/2's": {"OTEL_EXPORTER_OTLP_HEADERS": ":path=x"},
    "a header of gRPC's": {"OTEL_EXPORTER_OTLP_HEADERS": "grpc-timeout=1S"},
    "a header of bytes": {"OTEL_EXPORTER_OTLP_HEADERS": "a-bin=x"},
    "a header with a line's end": {"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0Ac"},
    "a header beyond ASCII": {"OTEL_EXPORTER_OTLP_HEADERS": "a=%C3%A9"},
    "a share above one": {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
}


@pytest.mark.parametrize("environ", WRONG.values(), ids=WRONG)
def test_what_cannot_be_obeyed_is_said(environ: dict[str, Any]) -> None:
    with pytest.raises(OtelError, match=next(reversed(environ))):
        export(FILE, **environ)


@pytest.mark.parametrize(
    "written",
    [
        "http://",
        "ftp://c:1",
        "http://c:port",
        "http://c:0",
        "http://[::1",
        "http://a b:1",
        "http://c%0a:1",
        "http://u:secret@c",
    ],
)
def test_an_endpoint_that_is_none_is_said(written: str) -> None:
    with pytest.raises(OtelError, match="no URL") as told:
        traces(OTEL_EXPORTER_OTLP_ENDPOINT=written)
    assert "secret" not in str(told.value)


def test_its_variables_are_told_from_others() -> None:
    assert {"OTEL_SERVICE_NAME": "z"} == otel.variables({"OTEL_SERVICE_NAME": "z", "OPENAI_API_KEY": "secret"})
