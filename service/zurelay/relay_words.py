"""The words of a relay: its times, how it ends, what goes to the client, and the headers by which attempts tell it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from zurelay import failure, sse
from zurelay.errors import ZurelayError, error_body
from zurelay.headers import EXPLAIN, request_ids
from zurelay.model import Endpoint
from zurelay.plan import Plan

SSE = "text/event-stream; charset=utf-8"
ATTEMPTS = "x-zurelay-attempts"
ROUTE = "x-zurelay-route"  # the header in which an attempt that answers names its route
FAILURE = "x-zurelay-failure"  # the header in which an attempt tells why all failed
PAST = "x-zurelay-past"  # the header that tells which attempts were given up
BEGAN = "x-zurelay-began"  # the header in which an attempt that answers tells when it began, in nanoseconds since 1970
_FOR_US = frozenset({ROUTE, PAST, BEGAN})


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """A stream's times in seconds. `open_after` and `keepalive` None: never (x-zurelay-keepalive: off)."""

    open_after: float | None
    keepalive: float | None
    total: float
    idle: float


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What goes to the client: perhaps the head, then bytes, perhaps the end."""

    status: int | None = None
    headers: dict[str, str] = {}
    data: bytes = b""
    end: bool = False


class Outcome(enum.Enum):
    """How a relayed request ended."""

    UNDER_WAY = "under_way"
    ANSWERED = "answered"
    REFUSED = "refused"
    BROKEN = "broken"


def answer_headers(plan: Plan, head: Mapping[str, str]) -> dict[str, str]:
    """The client's headers of a stream that an attempt answers: ours, and SSE's."""
    ours = {name: value for name, value in head.items() if name.startswith("x-zurelay-") and name not in _FOR_US}
    return {
        "content-type": SSE,
        "cache-control": "no-cache",
        **ours,
        **plan.standing,
        **request_ids(plan.endpoint, plan.request_id),
    }


def early_headers(plan: Plan) -> dict[str, str]:
    """The client's headers of a stream that opens before its first token: only what is sure already (SPEC 8)."""
    found: dict[str, str] = {}
    models = plan.models
    if len(models) == 1:
        found["x-zurelay-model"] = models[0]
    if all(model != plan.asked for model in models):
        found["x-zurelay-routed-from"] = plan.asked
    if plan.explained is not None:
        found[EXPLAIN] = plan.explained
    efforts = {attempt.shown_effort for attempt in plan.attempts}
    if len(efforts) == 1 and (effort := efforts.pop()) is not None:
        found["x-zurelay-reasoning-effort"] = effort
    return answer_headers(plan, found)


def refused(plan: Plan, error: ZurelayError, attempts: str | None) -> Output:
    """Give an error with its own status, where nothing has been sent yet."""
    headers = {
        "content-type": "application/json",
        **request_ids(plan.endpoint, plan.request_id),
        **plan.standing,
        **error.headers(),
    }
    if attempts is not None:
        headers[ATTEMPTS] = attempts
    body = error_body(error, plan.endpoint, plan.request_id)
    return Output(status=error.status, headers=headers, data=body, end=True)


def error_event(plan: Plan, error: ZurelayError) -> bytes:
    """Give an error as the last event of a stream that is open."""
    body = error_body(error, plan.endpoint, plan.request_id)
    return sse.encode(body, None if plan.endpoint is Endpoint.CHAT else "error")


def cause(headers: Mapping[str, str]) -> ZurelayError:
    """Why no attempt answers: as the last one told, else as Envoy's own reply lets one tell."""
    told = headers.get(FAILURE)
    return (
        failure.decode(told) if told else failure.of_local_reply(headers.get("retry-after"), tried=ATTEMPTS in headers)
    )
