"""What Envoy sends the sidecar for two requests, one whole and one streamed, and the stream that the relay is given."""

from __future__ import annotations

import msgspec

from zurelay import heard
from zurelay.protos import ext_proc_pb2

MODEL = "bench"
UPSTREAM = "stub"
_REQUEST = (
    (":authority", "127.0.0.1:8080"),
    (":path", "/v1/chat/completions"),
    (":method", "POST"),
    (":scheme", "http"),
    ("accept", "application/json"),
    ("accept-encoding", "gzip, deflate"),
    ("user-agent", "OpenAI/Python 2.3.0"),
    ("content-type", "application/json"),
    ("authorization", "Bearer none"),
    ("x-stainless-lang", "python"),
    ("x-stainless-os", "Linux"),
    ("x-stainless-retry-count", "0"),
    ("x-forwarded-proto", "http"),
)
_ANSWER = ((":status", "200"), ("content-type", "application/json"), ("x-envoy-upstream-service-time", "1"))
_STREAM = ((":status", "200"), ("content-type", "text/event-stream"), ("x-envoy-upstream-service-time", "1"))
_COMMON = f'"id":"chatcmpl-stub","created":1,"model":"{UPSTREAM}",'
_WHOLE = (
    '{"object":"chat.completion",' + _COMMON + '"choices":[{"index":0,"message":{"role":"assistant","content":'
    '"A small answer of a few words."},"finish_reason":"stop"}],'
    '"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}'
)


def _event(delta: str, finish: str = "null") -> bytes:
    choice = '"choices":[{"index":0,"delta":{' + delta + '},"finish_reason":' + finish + "}]}"
    return ('data: {"object":"chat.completion.chunk",' + _COMMON + choice + "\n\n").encode()


OPENING = _event('"role":"assistant","content":""')
TOKEN = _event('"content":" word"')
ENDING = _event("", '"stop"') + b"data: [DONE]\n\n"


def asked(*, stream: bool) -> list[bytes]:
    """What the ingress hears of a request."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}], "temperature": 0.7}
    data = msgspec.json.encode({**body, "stream": True} if stream else body)
    head, rest = heard.Request(), heard.Request()
    _fill(head.request_headers, (*_REQUEST, ("content-length", str(len(data)))))
    rest.request_body.body = data
    rest.request_body.end_of_stream = True
    return [head.SerializeToString(), rest.SerializeToString()]


def answered(planned: bytes) -> list[bytes]:
    """What an attempt hears of its whole answer, once the ingress has said `planned`."""
    head, rest = _with_plan(planned), heard.Request()
    _fill(head.response_headers, (*_ANSWER, ("content-length", str(len(_WHOLE)))))
    rest.response_body.body = _WHOLE.encode()
    rest.response_body.end_of_stream = True
    return [head.SerializeToString(), rest.SerializeToString()]


def plan_of(planned: bytes) -> str:
    """Find the plan in what the ingress said."""
    told = ext_proc_pb2.ProcessingResponse.FromString(planned).dynamic_metadata.fields[heard.NAMESPACE]
    return told.struct_value.fields["plan"].string_value


def _with_plan(planned: bytes) -> heard.Request:
    """Send the plan along, as Envoy does with what it was told before."""
    told = ext_proc_pb2.ProcessingResponse.FromString(planned).dynamic_metadata.fields[heard.NAMESPACE]
    message = heard.Request()
    message.metadata_context.filter_metadata[heard.NAMESPACE].CopyFrom(told.struct_value)
    return message


def _fill(to: ext_proc_pb2.HttpHeaders, headers: tuple[tuple[str, str], ...]) -> None:
    for name, value in headers:
        to.headers.headers.add(key=name, raw_value=value.encode())


def egress_head(headers: dict[str, str]) -> bytes:
    """Begin what the egress listener answers."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{lines}\r\n".encode()


def chunked(data: bytes) -> bytes:
    """Frame a piece of it (RFC 9112, 7.1)."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"
