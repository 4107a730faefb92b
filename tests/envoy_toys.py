"""A provider that records bytes and a sidecar that does what a request says, for tests of Envoy's configuration.

The request header `x-test` holds JSON for the sidecar: plan (clusters), try and total (milliseconds), immediate
(status, details), die, pour (MiB), metadata, late (seconds until a stream's verdict). The body's `faults` say what each
provider does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from zurelay.protos import ext_proc_pb2, priority_group_pb2

PLAN_TYPE = "type.googleapis.com/envoy.extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupsOverride"
OVERWRITE = 2  # HeaderValueOption.append_action

Request = ext_proc_pb2.ProcessingRequest
Response = ext_proc_pb2.ProcessingResponse


@dataclasses.dataclass(frozen=True)
class Arrived:
    """A request as it came to a provider. `head` are its lines."""

    provider: str
    head: tuple[str, ...]
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The headers by name."""
        return {name: value for name, _, value in (line.partition(": ") for line in self.head[1:])}


class RecordingProvider:
    """An HTTP/1.1 server that writes down what comes and answers as the body says."""

    def __init__(self, name: str, context: ssl.SSLContext | None = None) -> None:
        self.arrived: list[Arrived] = []
        self.release = threading.Event()  # ends the fault `wait`
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    while owner.serve(name, self):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def get_request(self) -> tuple[socket.socket, Any]:
                accepted, address = super().get_request()
                if context is not None:
                    accepted = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
                return accepted, address

            def handle_error(self, *_: Any) -> None:
                """Broken connections are part of the tests."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def serve(self, name: str, handler: socketserver.StreamRequestHandler) -> bool:
        """Serve one request; tell whether another may come."""
        lines = list(iter(lambda: handler.rfile.readline().decode("latin-1").rstrip("\r\n"), ""))
        if not lines:
            return False
        length = next((int(line[16:]) for line in lines if line.startswith("content-length: ")), 0)
        body = handler.rfile.read(length)
        self.arrived.append(Arrived(name, tuple(lines), body))
        wanted = json.loads(body or b"{}")
        return self._answer(wanted, wanted.get("faults", {}).get(name, "ok"), handler)

    def _answer(self, wanted: dict[str, Any], fault: str, handler: socketserver.StreamRequestHandler) -> bool:
        out = handler.wfile
        if fault == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            handler.connection.close()
            return False
        if fault == "hang":
            handler.rfile.read(1)
            return False
        if fault == "wait":
            self.release.wait(30)
            fault = "ok"
        if fault == "cut":
            out.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
            return False
        if fault == "garbage":
            out.write(b"hello\r\n\r\n")
            return False
        if wanted.get("stream") and fault == "ok":
            out.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(wanted["events"]):
                event = b"data: %s\n\n" % (b"x" * wanted.get("size", 10))
                out.write(b"%x\r\n%s\r\n" % (len(event), event))
            out.write(b"0\r\n\r\n")
            return True
        status, _, mark = fault.removeprefix("status").partition("-") if fault != "ok" else ("200", "", "")
        data = json.dumps({"text": "x" * wanted.get("size", 0)}).encode()
        extra = f"x-mark: {mark}\r\n" if mark else ""
        head = f"HTTP/1.1 {status} X\r\nserver: theirs\r\ncontent-type: application/json\r\n{extra}"
        out.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        return True

    def stop(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class ToySidecar:
    """Answers Envoy as the request's `x-test` says; keeps what it was told in `seen`, by phase."""

    def __init__(self, socket_path: str) -> None:
        self.seen: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self._server = grpc.server(
            ThreadPoolExecutor(64),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        method: grpc.RpcMethodHandler[Request, Response] = grpc.stream_stream_rpc_method_handler(
            self._process, Request.FromString, Response.SerializeToString
        )
        service = "envoy.service.ext_proc.v3.ExternalProcessor"
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": method}),))
        self._server.add_insecure_port(f"unix:{socket_path}")
        self._server.start()

    def stop(self) -> None:
        """End every stream."""
        self._server.stop(0).wait()

    def _process(self, messages: Iterator[Request], context: grpc.ServicerContext) -> Iterator[Response]:
        metadata = {name: str(value) for name, value in context.invocation_metadata()}
        phase = metadata["phase"]
        serve = {"ingress": self._ingress, "egress": self._egress}.get(phase, self._attempt)
        with contextlib.suppress(grpc.RpcError):
            yield from serve(phase, metadata, messages, context)

    def _ingress(
        self, phase: str, metadata: dict[str, str], messages: Iterator[Request], context: grpc.ServicerContext
    ) -> Iterator[Response]:
        headers, body = {}, b""
        for message in messages:
            if message.HasField("request_headers"):
                headers = _read(message.request_headers)
                self.seen.append((phase, metadata, headers))
                if message.request_headers.end_of_stream:
                    break
            elif message.HasField("request_body"):
                body += message.request_body.body
                if message.request_body.end_of_stream:
                    break
            else:
                break
        test = json.loads(headers.get("x-test", "{}"))
        if test.get("die"):
            context.abort(grpc.StatusCode.INTERNAL, "as asked")
        if "immediate" in test:
            response = Response()
            status, response.immediate_response.details = test["immediate"]
            response.immediate_response.status.code = status
            response.immediate_response.body = b'{"mine": true}'
            _set(response.immediate_response.headers, {"content-type": "application/json"})
            yield response
            return
        if "pour" in test:
            yield from _pour(test["pour"])
            return
        yield _planned(test, {"content-length": str(len(body)), ":path": "/v1/chat/completions"})
        pieces = [body[at : at + 65536] for at in range(0, max(len(body), 1), 65536)]
        for number, piece in enumerate(pieces, 1):
            response = Response()
            streamed = response.request_body.response.body_mutation.streamed_response
            streamed.body, streamed.end_of_stream = piece, number == len(pieces)
            yield response

    def _egress(
        self, phase: str, metadata: dict[str, str], messages: Iterator[Request], _: grpc.ServicerContext
    ) -> Iterator[Response]:
        headers = _read(next(messages).request_headers)
        self.seen.append((phase, metadata, headers))
        yield _planned(json.loads(headers["x-test"]), {})

    def _attempt(
        self, phase: str, metadata: dict[str, str], messages: Iterator[Request], _: grpc.ServicerContext
    ) -> Iterator[Response]:
        test: dict[str, Any] = {}
        held = False
        for message in messages:
            response = Response()
            if message.HasField("request_headers"):
                headers = _read(message.request_headers)
                test = json.loads(headers.get("x-test", "{}"))
                self.seen.append((phase, metadata, headers))
                _set(response.request_headers.response.header_mutation, {":path": f"/{phase}", "x-left": phase})
            elif message.HasField("request_body"):
                common = response.request_body.response
                common.body_mutation.body = message.request_body.body + b" "
                _set(common.header_mutation, {"content-length": str(len(message.request_body.body) + 1)})
            elif message.HasField("response_headers"):
                headers = _read(message.response_headers)
                self.seen.append((f"{phase} answer", metadata, headers))
                held = "event-stream" in headers.get("content-type", "")
                if held:
                    response.override_message_timeout.FromSeconds(300)
                elif headers[":status"] != "200" and headers.get("x-mark") != "none":
                    _set(response.response_headers.response.header_mutation, {"x-zurelay-move-on": "1"})
                else:
                    response.response_headers.SetInParent()
            else:
                if held:
                    time.sleep(test.get("late", 0))
                    verdict = Response()
                    verdict.response_headers.SetInParent()
                    yield verdict
                response.response_body.SetInParent()
            yield response
            if held and message.HasField("response_body"):
                return


def _pour(pieces: int) -> Iterator[Response]:
    """Answer with so many MiB, as a stream of the sidecar's own."""
    response = Response()
    block = response.streamed_immediate_response.headers_response.headers.headers
    block.add(key=":status", raw_value=b"200")
    yield response
    for number in range(1, pieces + 1):
        response = Response()
        piece = response.streamed_immediate_response.body_response
        piece.body, piece.end_of_stream = bytes(1 << 20), number == pieces
        yield response


def _read(message: Any) -> dict[str, str]:
    return {header.key: (header.raw_value or header.value.encode()).decode() for header in message.headers.headers}


def _set(mutation: Any, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        option = mutation.set_headers.add(append_action=OVERWRITE)
        option.header.key, option.header.raw_value = name, value.encode()


def _planned(test: dict[str, Any], headers: Mapping[str, str]) -> Response:
    response = Response()
    override = priority_group_pb2.PriorityGroupsOverride()
    plan = test.get("plan", [])
    for number, cluster in enumerate(plan):
        group = override.priority_groups.add(name=str(number))
        group.clusters.add(cluster_name=cluster).weight.value = 1
    if plan:
        packed = response.typed_dynamic_metadata["zurelay"]
        packed.type_url, packed.value = PLAN_TYPE, override.SerializeToString()
    fields = response.dynamic_metadata.fields["zurelay"].struct_value.fields
    for name, value in test.get("metadata", {}).items():
        fields[name].string_value = value
    times = {"x-envoy-upstream-rq-per-try-timeout-ms": str(test.get("try", 5000))}
    if "total" in test:
        times["x-envoy-upstream-rq-timeout-ms"] = str(test["total"])
    retries = {"x-envoy-max-retries": str(max(len(plan) - 1, 0))}
    _set(response.request_headers.response.header_mutation, {**headers, **times, **retries})
    return response
