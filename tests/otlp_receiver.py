"""A collector as the telemetry finds one: OTLP over gRPC, what comes is kept."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

import grpc
import msgspec
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

T = TypeVar("T")


def free_port() -> int:
    """Ask the system for a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Event(msgspec.Struct, frozen=True):
    """A span's event."""

    name: str
    at: int
    attributes: dict[str, Any]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span as it came. Ids are hexadecimal; `status` is UNSET, OK or ERROR, `kind` SERVER, CLIENT or INTERNAL."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    service: str
    scope: str
    start: int
    end: int
    status: str
    message: str
    state: str
    attributes: dict[str, Any]
    events: tuple[Event, ...]

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def event(self, name: str) -> Event:
        """Find the one event of a name."""
        (found,) = (event for event in self.events if event.name == name)
        return found


class Receiver:
    """A collector on a port of its own. Without `hold` set no answer goes out; `metadata` is what came with.

    `rejected`: how many spans of each message it says that it didn't take.
    """

    def __init__(self, port: int = 0, tls: grpc.ServerCredentials | None = None) -> None:
        self.spans: list[Span] = []
        self.metrics: list[metrics_pb2.ResourceMetrics] = []
        self.logs: list[logs_pb2.LogRecord] = []
        self.raw: list[bytes] = []
        self.metadata: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []
        self.refuse = False
        self.rejected = 0
        self.hold = threading.Event()
        self.hold.set()
        self._server = grpc.server(ThreadPoolExecutor(8))
        # What protoc generates has no types.
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(self), self._server)  # type: ignore[no-untyped-call]
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(self), self._server)  # type: ignore[no-untyped-call]
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(_Logs(self), self._server)  # type: ignore[no-untyped-call]
        place = f"127.0.0.1:{port}"
        self.port = (
            self._server.add_secure_port(place, tls) if tls is not None else self._server.add_insecure_port(place)
        )
        self._server.start()

    @property
    def endpoint(self) -> str:
        """What `telemetry.otlp` is for this collector."""
        return f"http://127.0.0.1:{self.port}"

    def take(self, raw: bytes, context: grpc.ServicerContext) -> None:
        """Note what all kinds have in common."""
        self.hold.wait(60)
        if self.refuse:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "as asked")
        self.raw.append(raw)
        self.metadata.append({name: str(value) for name, value in context.invocation_metadata()})

    def until(self, met: Callable[[Self], T], seconds: float = 15.0) -> T:
        """Wait until what came is as `met` wants it, and give its value."""
        end = time.monotonic() + seconds
        while not (value := met(self)):
            assert time.monotonic() < end, f"not so after {seconds} s; there are {[one.name for one in self.spans]}"
            time.sleep(0.02)
        return value

    def trace(self, trace: str) -> list[Span]:
        """The spans of a trace, by their start."""
        return sorted((span for span in self.spans if span.trace == trace), key=lambda span: span.start)

    def reset(self) -> None:
        """Forget what came."""
        for kept in (self.spans, self.metrics, self.logs, self.raw, self.metadata, self.resources):
            kept.clear()

    def stop(self) -> None:
        """Listen no more."""
        self.hold.set()
        self._server.stop(0).wait()


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, owner: Receiver) -> None:
        self._owner = owner

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  # gRPC's name
        self._owner.take(request.SerializeToString(), context)
        for resource in request.resource_spans:
            attributes = values(resource.resource.attributes)
            self._owner.resources.append(attributes)
            for scope in resource.scope_spans:
                self._owner.spans += [
                    _span(span, scope.scope.name, str(attributes.get("service.name"))) for span in scope.spans
                ]
        answer = trace_service_pb2.ExportTraceServiceResponse()
        if self._owner.rejected:
            answer.partial_success.rejected_spans = self._owner.rejected
            answer.partial_success.error_message = "as asked"
        return answer


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, owner: Receiver) -> None:
        self._owner = owner

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  # gRPC's name
        self._owner.take(request.SerializeToString(), context)
        self._owner.metrics += request.resource_metrics
        return metrics_service_pb2.ExportMetricsServiceResponse()


class _Logs(logs_service_pb2_grpc.LogsServiceServicer):
    def __init__(self, owner: Receiver) -> None:
        self._owner = owner

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  # gRPC's name
        self._owner.take(request.SerializeToString(), context)
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                self._owner.logs += scope.log_records
        return logs_service_pb2.ExportLogsServiceResponse()


def _span(span: trace_pb2.Span, scope: str, service: str) -> Span:
    return Span(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        service=service,
        scope=scope,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        status=trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        message=span.status.message,
        state=span.trace_state,
        attributes=values(span.attributes),
        events=tuple(Event(event.name, event.time_unix_nano, values(event.attributes)) for event in span.events),
    )


def values(attributes: Iterable[common_pb2.KeyValue]) -> dict[str, Any]:
    """Give attributes as Python has them."""
    return {one.key: value(one.value) for one in attributes}


def value(given: common_pb2.AnyValue) -> Any:
    """Give one value as Python has it."""
    kind = given.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value(one) for one in given.array_value.values]
    if kind == "kvlist_value":
        return {one.key: value(one.value) for one in given.kvlist_value.values}
    return getattr(given, kind)


def tree(spans: Iterable[Span], describe: Callable[[Span], Any] = lambda span: span.name) -> Mapping[Any, Any]:
    """Give spans as a tree of what `describe` says of each; those whose parent isn't among them stand at the top."""
    listed = list(spans)
    known = {span.id for span in listed}

    def below(parent: str | None) -> Mapping[Any, Any]:
        chosen = [span for span in listed if (span.parent == parent if parent else span.parent not in known)]
        return {describe(span): below(span.id) for span in chosen}

    return below(None)
