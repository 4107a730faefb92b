"""What Envoy is told: the only file that builds protos. Answers are serialized bytes, ready to write."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import msgspec
from google.protobuf import any_pb2

from zurelay import paths, verdict
from zurelay import plan as plans
from zurelay.heard import NAMESPACE
from zurelay.plan import Plan
from zurelay.protos import core_pb2, ext_proc_pb2, priority_group_pb2

_Response = ext_proc_pb2.ProcessingResponse

MOVE_ON = "x-zurelay-move-on"  # the response header that Envoy's retry policy looks for
FAILURE = "x-zurelay-failure"  # how an attempt tells the relay why all failed
PASSES = "x-zurelay-passes"  # how an attempt tells Envoy's script that the stream is the client's (passthrough.lua)
_JUDGED = "judged"  # in our namespace: whether an attempt has put the request's end on record, _YES or _NO
_YES, _NO = "yes", "no"  # listeners.yaml looks for the latter
TOTAL_TIMEOUT = "x-envoy-upstream-rq-timeout-ms"  # for all tries of an answer that comes whole
PIECE = 64 << 10  # bytes in one streamed body message (processing_mode.proto: up to 64 KiB)
_KNOWN_PLANS = 1024
_OVERWRITE = core_pb2.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
_PLAN_URL = "type.googleapis.com/" + priority_group_pb2.PriorityGroupsOverride.DESCRIPTOR.full_name


def planned(
    plan: Plan,
    groups: Iterable[str],
    mutations: Mapping[str, str],
    removed: Iterable[str],
    per_try: float,
) -> bytes:
    """Answer request headers with a plan: the clusters to try, how often and how long (seconds), and what to change."""
    response = _Response()
    _set_plan(response, plan)
    common = response.request_headers.response
    _set_headers(common.header_mutation, mutations)
    _set_headers(
        common.header_mutation,
        {
            "x-envoy-max-retries": str(plan.length - 1),
            "x-envoy-upstream-rq-per-try-timeout-ms": milliseconds(per_try),
        },
    )
    common.header_mutation.remove_headers.extend(removed)
    common.clear_route_cache = True
    return _override(tuple(groups)) + response.SerializeToString()


def milliseconds(seconds: float) -> str:
    """Write a time as Envoy's headers want it."""
    return str(round(seconds * 1000))


def _set_plan(response: ext_proc_pb2.ProcessingResponse, plan: Plan) -> None:
    fields = response.dynamic_metadata.fields[NAMESPACE].struct_value.fields
    fields["plan"].string_value = plans.encode(plan).decode()
    fields["request_id"].string_value = plan.request_id
    # From here on the request's own path is the provider's (local_replies.yaml, telemetry.yaml).
    fields["path"].string_value = paths.OF[plan.endpoint]
    # For Envoy's own answer, should the last attempts fail without one (local_replies.yaml).
    fields["tries"].string_value = str(min(len(plan.attempts), plan.length))
    fields["retry_after"].string_value = str(verdict.wait(plan.past))
    if plan.past:
        fields["past"].string_value = plans.encode_past(plan.past)
    for name, value in plan.standing.items():
        fields[name].string_value = value
    fields[_JUDGED].string_value = _NO


def _on_record() -> bytes:
    response = _Response()
    response.dynamic_metadata.fields[NAMESPACE].struct_value.fields[_JUDGED].string_value = _YES
    return response.SerializeToString()


_ON_RECORD = _on_record()


def judged(answer: bytes) -> bytes:
    """Add to an answer that nothing comes next, and that the request's end is on record.

    Messages one behind the other are read as one (protobuf.dev, Encoding: last one wins, merging).
    """
    return answer + _ON_RECORD


@functools.lru_cache(_KNOWN_PLANS)
def _override(groups: tuple[str, ...]) -> bytes:
    """Write the clusters of a plan: few differ. Serialized messages that stand one behind the other are one message."""
    override = priority_group_pb2.PriorityGroupsOverride()
    for number, cluster in enumerate(groups, 1):
        group = override.priority_groups.add(name=f"{number}:{cluster}")
        group.clusters.add(cluster_name=cluster).weight.value = 1
    response = _Response()
    response.typed_dynamic_metadata[NAMESPACE].CopyFrom(
        any_pb2.Any(type_url=_PLAN_URL, value=override.SerializeToString())
    )
    return response.SerializeToString()


def _set_headers(mutation: ext_proc_pb2.HeaderMutation, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        option = mutation.set_headers.add(append_action=_OVERWRITE)
        option.header.key = name
        option.header.raw_value = value.encode("utf-8", "surrogateescape")


def body_pieces(body: bytes) -> Iterable[bytes]:
    """Answer a full-duplex request body with the one that goes on, piece by piece."""
    for start in range(0, max(len(body), 1), PIECE):
        response = _Response()
        piece = response.request_body.response.body_mutation.streamed_response
        piece.body = body[start : start + PIECE]
        piece.end_of_stream = start + PIECE >= len(body)
        yield response.SerializeToString()


def immediate(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Answer the client at once, without a provider: whoever does has put the request's end on record."""
    response = _Response()
    answer = response.immediate_response
    answer.status.code = status  # type: ignore[assignment]  # the enum lists few of HTTP's codes
    _set_headers(answer.headers, headers)
    answer.body = body
    answer.details = "zurelay"
    return judged(response.SerializeToString())


def more_time(seconds: float) -> bytes:
    """Ask Envoy to wait longer for the next answer."""
    response = _Response()
    response.override_message_timeout.FromMilliseconds(round(seconds * 1000))
    return response.SerializeToString()


def stream_head(status: int, headers: Mapping[str, str]) -> bytes:
    """Open the client's response."""
    response = _Response()
    block = response.streamed_immediate_response.headers_response.headers.headers
    block.add(key=":status", raw_value=str(status).encode())
    for name, value in headers.items():
        block.add(key=name, raw_value=value.encode("utf-8", "surrogateescape"))
    return response.SerializeToString()


def stream_body(data: bytes, *, end: bool) -> bytes:
    """Send bytes of an opened response."""
    response = _Response()
    piece = response.streamed_immediate_response.body_response
    piece.body = data
    piece.end_of_stream = end
    return response.SerializeToString()


def attempt_request(headers: Mapping[str, str]) -> bytes:
    """Answer an attempt's request headers."""
    response = _Response()
    _set_headers(response.request_headers.response.header_mutation, headers)
    return response.SerializeToString()


def attempt_body(body: bytes) -> bytes:
    """Answer an attempt's buffered request body with the provider's.

    Written around the body, as a message would copy a large one twice more: the numbers are ext_proc.proto's.
    """
    common = ext_proc_pb2.CommonResponse()
    _set_headers(common.header_mutation, {"content-length": str(len(body))})
    head = b""
    for number, before in ((1, b""), (3, common.SerializeToString()), (1, b""), (3, b"")):
        head = before + _tag(number, len(head) + len(body)) + head
    return head + body


def _tag(number: int, size: int) -> bytes:
    """Begin a field of bytes (protobuf.dev, Encoding: length-delimited records)."""
    written = bytearray((number << 3 | 2,))
    while size > 0x7F:  # noqa: PLR2004  # seven bits a byte
        written.append(size & 0x7F | 0x80)
        size >>= 7
    written.append(size)
    return bytes(written)


class Passing(msgspec.Struct, frozen=True, kw_only=True):
    """What Envoy keeps of the attempt whose stream passes through: its number, and the model's name for the client."""

    number: int
    model: str


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt changes in a provider's answer. `plan` and `groups` re-plan what comes next."""

    headers: dict[str, str]
    removed: list[str]
    body: bytes | None = None
    plan: Plan | None = None
    groups: list[str] = []
    passing: Passing | None = None


def response_head_alone(mutation: Mutation) -> bytes:
    """Answer an attempt's response headers in place of the whole answer, whose body isn't waited for."""
    response = _Response()
    common = response.response_headers.response
    common.status = ext_proc_pb2.CommonResponse.CONTINUE_AND_REPLACE
    return _mutated(response, common, mutation)


def response_headers(mutation: Mutation | None = None) -> bytes:
    """Answer an attempt's response headers, changed or as they are."""
    response = _Response()
    response.response_headers.SetInParent()
    return _mutated(response, response.response_headers.response, mutation)


def response_body(mutation: Mutation | None = None) -> bytes:
    """Answer an attempt's response body; buffered, it may still change the headers."""
    response = _Response()
    response.response_body.SetInParent()
    return _mutated(response, response.response_body.response, mutation)


def _mutated(response: _Response, common: ext_proc_pb2.CommonResponse, mutation: Mutation | None) -> bytes:
    if mutation is None:
        return response.SerializeToString()
    _set_headers(common.header_mutation, mutation.headers)
    common.header_mutation.remove_headers.extend(mutation.removed)
    if mutation.body is not None:
        common.body_mutation.body = mutation.body
        _set_headers(common.header_mutation, {"content-length": str(len(mutation.body))})
    if mutation.passing is not None:
        fields = response.dynamic_metadata.fields[NAMESPACE].struct_value.fields
        fields["answering"].string_value = str(mutation.passing.number)
        fields["model"].string_value = mutation.passing.model
    if mutation.plan is None:
        return response.SerializeToString()
    _set_plan(response, mutation.plan)
    return _override(tuple(mutation.groups)) + response.SerializeToString()


PASS_HEADERS = response_headers()
PASS_BODY = response_body()
