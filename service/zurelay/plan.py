"""The plan: the ordered attempts of one request, and how a failed attempt changes what comes next (SPEC 5)."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from zurelay.limits import Reservation
from zurelay.model import Endpoint, Format, Price
from zurelay.trace_context import Trace
from zurelay.usage import Usage

MOST_ATTEMPTS = 12  # SPEC 5
REFUSE = "refuse"  # the cluster that refuses every connection: what a plan that got shorter is filled up with


class Reason(enum.Enum):
    """Why an attempt was given up."""

    STATUS = "status"
    RETRY_LATER = "retry_later"
    DENIED = "denied"
    BAD_REQUEST = "bad_request"
    CONTEXT_LENGTH = "context_length"
    ERROR_BODY = "error_body"
    NOT_JSON = "not_json"
    NOT_A_STREAM = "not_a_stream"
    FIRST_EVENT_ERROR = "first_event_error"
    NO_TOKEN = "no_token"  # noqa: S105  # a reason's name, not a secret
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"


class Passes(enum.Enum):
    """A stream that passes through, and what becomes of the chunk that has nothing but the usage."""

    KEEP = "keep"
    DROP = "drop"


# A second try of the same route can't help after these (SPEC 5: 401, 403, 404, 429).
_NO_SECOND_TRY = frozenset({Reason.DENIED, Reason.RETRY_LATER})


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One try of one route, with all that is needed to make and to judge it. `cap` bounds all efforts in the body."""

    cluster: str
    provider: str
    model: str
    upstream: str
    format: Format
    path: str
    window: int
    effort: str | None = None
    shown_effort: str | None = None
    cap: str | None = None
    named: bool = False
    max_output: int | None = None
    rename: dict[str, str] = {}
    drop: tuple[str, ...] = ()
    price: Price | None = None


class Past(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What an attempt that was answered and given up left on record. `usage` is what it used, where that is known.

    `began` and `ended` are nanoseconds since 1970, 0 where nobody saw.
    """

    number: int
    cluster: str
    reason: Reason
    status: int
    retry_after: int | None = None
    usage: Usage | None = None
    began: int = 0
    ended: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempts of one request, in order. It travels with the request from filter to filter.

    `length` is how many may be made, `asked` the id asked for, `key` the caller's, `explained` what the client wants
    told; `hide_thinking` is for a Messages client that asked for none; times are in seconds. `reservation` is what the
    request holds of its limits, for whoever settles it; `prompt` and `output` are the tokens estimated for it;
    `workload` is the caller's; `standing` are the x-ratelimit headers of every answer. `category` and `score` are
    Auto's; `parameters` are numbers that the client chose, by their fields; `client_request_id` is its own
    x-request-id, cut short; `began` is when the request came, `decided` when this plan was made, in nanoseconds since
    1970; `trace` is None where nothing is traced. A stream that `passes` through has no attempt that begins after
    `begin_by` (Unix time).
    """

    request_id: str
    endpoint: Endpoint
    attempts: tuple[Attempt, ...]
    first_token: float
    whole: float
    total: float
    length: int
    asked: str
    key: str | None = None
    explained: str | None = None
    reservation: Reservation | None = None
    prompt: int = 0
    output: int = 0
    workload: str = ""
    standing: dict[str, str] = {}
    stream: bool = False
    hide_thinking: bool = False
    passes: Passes | None = None
    begin_by: float = 0
    category: str = ""
    score: float = 0.0
    effort_asked: str = ""
    parameters: dict[str, int | float] = {}
    client_request_id: str = ""
    began: int = 0
    decided: int = 0
    trace: Trace | None = None
    past: tuple[Past, ...] = ()

    @property
    def relayed(self) -> bool:
        """Whether the relay writes what the client sees."""
        return self.stream and self.passes is None

    @property
    def clusters(self) -> list[str]:
        """The attempts' clusters, without suffix."""
        return [attempt.cluster for attempt in self.attempts]

    @property
    def models(self) -> list[str]:
        """The models that may answer, each once, in order."""
        return list(dict.fromkeys(attempt.model for attempt in self.attempts))


def routed_from(plan: Plan, attempt: Attempt) -> str | None:
    """Give the id asked for where another model answers (SPEC 7)."""
    return plan.asked if attempt.model != plan.asked else None


def tries(routes: Iterable[Attempt]) -> list[Attempt]:
    """Give a model's plan from its routes: the first, the same once more, then the others."""
    listed = list(routes)
    return [listed[0], *listed] if listed else []


def remaining(plan: Plan, number: int, reason: Reason) -> tuple[Attempt, ...]:
    """Give the attempts that make sense after attempt `number` (from 1) ended for `reason`."""
    if number >= plan.length:
        return ()
    current = plan.attempts[number - 1]
    rest = plan.attempts[number:]
    if reason in _NO_SECOND_TRY:
        rest = _without_second_try(rest, current)
    if reason is Reason.CONTEXT_LENGTH:
        larger = tuple(attempt for attempt in rest if attempt.window > current.window)
        # Any 400 of a model that the client didn't name moves on (SPEC 5): another may count fewer tokens.
        others = tuple(attempt for attempt in rest if attempt.model != current.model)
        rest = larger or (() if current.named else others)
    return rest


def _without_second_try(rest: tuple[Attempt, ...], current: Attempt) -> tuple[Attempt, ...]:
    return rest[1:] if rest and rest[0].cluster == current.cluster else rest


def moved_on(plan: Plan, past: Past, rest: tuple[Attempt, ...]) -> Plan:
    """Give the plan as the next attempt finds it: this one on record, only `rest` still to come."""
    attempts = plan.attempts[: past.number] + rest
    return msgspec.structs.replace(plan, attempts=attempts, past=(*plan.past, past))


def given_up(plan: Plan, past: Past | None) -> Plan:
    """Give the plan with one more attempt on record, where nothing comes after it."""
    return plan if past is None else msgspec.structs.replace(plan, past=(*plan.past, past))


def discarded(plan: Plan) -> list[tuple[Attempt, Usage]]:
    """List the attempts that were given up though they had used something, each with that."""
    return [(plan.attempts[past.number - 1], past.usage) for past in plan.past if past.usage is not None]


def groups(plan: Plan, suffix: str, first: str | None = None) -> list[str]:
    """Name the cluster of each attempt; a plan that got shorter is filled up with the one that refuses.

    Envoy goes on with the last group past a plan's end, and its number of retries is fixed at the start.
    """
    names = [cluster + suffix for cluster in plan.clusters]
    if first is not None:
        names[0] = plan.attempts[0].cluster + first
    return names + [REFUSE] * (plan.length - len(names))


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Plan)


_past_decoder = msgspec.json.Decoder(tuple[Past, ...])


def encode_past(past: tuple[Past, ...]) -> str:
    """Write what was given up as one line of ASCII: what may stand in a header."""
    return _encoder.encode(past).decode()


def decode_past(text: str) -> tuple[Past, ...]:
    """Read what `encode_past` wrote."""
    return _past_decoder.decode(text)


def encode(plan: Plan) -> bytes:
    """Write a plan as JSON."""
    return _encoder.encode(plan)


def decode(data: bytes | str) -> Plan:
    """Read what `encode` wrote."""
    return _decoder.decode(data)
