"""What Envoy tells: its messages and its access log, read into facts of ours."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from google.protobuf.struct_pb2 import Value

from zurelay import plan as plans
from zurelay.access_log import Entry
from zurelay.passthrough import Counted
from zurelay.plan import Plan
from zurelay.protos import accesslog_pb2, ext_proc_pb2

Request = ext_proc_pb2.ProcessingRequest

NAMESPACE = "zurelay"  # of dynamic metadata
PLAN = "x-zurelay-plan"  # how the relay hands its plan to the egress listener


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A request's or response's headers. Repeated ones are joined by a comma (RFC 9110, 5.3)."""

    headers: dict[str, str]
    end: bool


def head(headers: ext_proc_pb2.HttpHeaders) -> Head:
    """Read a headers message."""
    found: dict[str, str] = {}
    for header in headers.headers.headers:
        value = header.raw_value.decode("utf-8", "surrogateescape") if header.raw_value else header.value
        found[header.key] = f"{found[header.key]},{value}" if header.key in found else value
    return Head(headers=found, end=headers.end_of_stream)


def body(body: ext_proc_pb2.HttpBody) -> bytes:
    """Read an attempt's request body.

    Envoy 1.40 has a first attempt's twice where trailers end the request (HTTP/2): no JSON object is two equal halves.
    """
    found, half = body.body, len(body.body) // 2
    if not body.end_of_stream and found[:half] == found[half:]:
        return found[:half]
    return found


def plan_of(request: Request) -> Plan:
    """Read the plan that came with a message."""
    return plans.decode(request.metadata_context.filter_metadata[NAMESPACE].fields["plan"].string_value)


def entry(logged: accesslog_pb2.HTTPAccessLogEntry) -> Entry:
    """Read an access log entry of a request that had a plan."""
    common, response = logged.common_properties, logged.response
    flags = common.response_flags
    return Entry(
        plan=plans.decode(common.metadata.filter_metadata[NAMESPACE].fields["plan"].string_value),
        tries=common.upstream_request_attempt_count,
        status=response.response_code.value,
        cut=flags.downstream_connection_termination or flags.downstream_remote_reset,
        sent=common.HasField("time_to_last_upstream_tx_byte"),
        details=response.response_code_details,
        ended=_moment(common, "duration"),
        began=_moment(common, "time_to_first_upstream_tx_byte"),
        answered=_moment(common, "time_to_first_downstream_tx_byte"),
        counted=_counted(common.metadata.filter_metadata[NAMESPACE].fields),
    )


def _counted(fields: Mapping[str, Value]) -> Counted:
    """Read what passthrough.lua has left."""
    return Counted(
        number=int(fields["answering"].string_value or 0),
        first=fields["usage_first"].string_value,
        last=fields["usage_last"].string_value,
        events=int(fields["events"].number_value),
        reported=int(fields["reported"].number_value),
        whole=fields["whole"].string_value == "yes",
    )


def _moment(common: accesslog_pb2.AccessLogCommon, name: str) -> int:
    """Give a moment of an entry, in nanoseconds since 1970; 0 where it never was."""
    if not common.HasField(name):
        return 0
    after: int = getattr(common, name).ToNanoseconds()
    return common.start_time.ToNanoseconds() + after
