"""What the span of an attempt says: the conventions' attributes for GenAI, and ours."""

from __future__ import annotations

import functools

import msgspec

from zurelay import semconv
from zurelay.model import Endpoint
from zurelay.moments import seconds
from zurelay.otlp import Value, Written, written
from zurelay.plan import Attempt, Plan, routed_from
from zurelay.ports import Record
from zurelay.tried import Tried
from zurelay.usage import Usage

CHAT, COUNT = "chat", "count_tokens"  # gen_ai.operation.name; the conventions have no word for the latter


def operation(plan: Plan) -> str:
    """Name what a request does."""
    return COUNT if plan.endpoint is Endpoint.COUNT_TOKENS else CHAT


class Place(msgspec.Struct, frozen=True):
    """Where a provider is, and what the conventions call it."""

    name: str
    address: str
    port: int


class _Common(msgspec.Struct, frozen=True, gc=False):
    """What the attempts of many requests have in common."""

    operation: str
    upstream: str
    cluster: str
    provider: str
    model: str
    stream: bool
    came_from: str | None
    category: str
    effort: str | None
    status: int


@functools.lru_cache(1_024)
def _written(shared: _Common, place: Place) -> Written:
    """Write what the attempts of many requests have in common; one by one they would cost as much as the rest."""
    told: dict[str, Value] = {
        semconv.OPERATION: shared.operation,
        semconv.PROVIDER: place.name,
        semconv.REQUEST_MODEL: shared.upstream,
        semconv.SERVER_ADDRESS: place.address,
        semconv.SERVER_PORT: place.port,
        "zurelay.route": shared.cluster,
        "zurelay.provider": shared.provider,
        "zurelay.model": shared.model,
    }
    if shared.stream:
        told[semconv.REQUEST_STREAM] = True
    if shared.came_from is not None:
        told["zurelay.routed_from"] = shared.came_from
    if shared.category:
        told["zurelay.category"] = shared.category
    if shared.effort is not None:
        told["zurelay.effort.applied"] = shared.effort
    if shared.status:
        told[semconv.STATUS_CODE] = shared.status
    return written(told)


def common(record: Record, one: Tried, place: Place) -> Written:
    """Give what an attempt has in common with those of other requests; `place` is its provider's."""
    plan, attempt = record.plan, one.attempt
    shared = _Common(
        operation(plan),
        attempt.upstream,
        attempt.cluster,
        attempt.provider,
        attempt.model,
        plan.stream,
        routed_from(plan, attempt),
        plan.category,
        attempt.shown_effort,
        one.status,
    )
    return _written(shared, place)


def own(record: Record, one: Tried) -> dict[str, Value]:
    """Give what else there is to say of one attempt of a request that is over."""
    told: dict[str, Value] = {"zurelay.attempt.number": one.number}
    _add_parameters(told, record.plan, one.attempt)
    if one.error:
        told[semconv.ERROR_TYPE] = one.error
    if one.reason:
        told["zurelay.moved_on" if not one.ends else "zurelay.failed"] = one.reason
    if one.discarded is not None:
        told["zurelay.cost.discarded_usd"] = float(one.discarded)
    if one.ends:
        _add_end(told, record, one)
    return told


# The client's fields, as the conventions name them. `stop` isn't among them: it is text of the client's.
_PARAMETERS = {
    "max_tokens": semconv.REQUEST_MAX_TOKENS,
    "max_completion_tokens": semconv.REQUEST_MAX_TOKENS,
    "temperature": semconv.REQUEST_TEMPERATURE,
    "top_p": semconv.REQUEST_TOP_P,
    "top_k": semconv.REQUEST_TOP_K,
    "frequency_penalty": semconv.REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": semconv.REQUEST_PRESENCE_PENALTY,
    "seed": semconv.REQUEST_SEED,
    "n": semconv.REQUEST_CHOICES,
}


def _add_parameters(told: dict[str, Value], plan: Plan, attempt: Attempt) -> None:
    """Add what the client chose, unless this attempt's model isn't sent it."""
    if plan.parameters:
        told |= {_PARAMETERS[field]: value for field, value in plan.parameters.items() if field not in attempt.drop}


def _add_end(told: dict[str, Value], record: Record, one: Tried) -> None:
    """Add what only the attempt that ended the request has: its use, its end, its cost."""
    moments, spent = record.moments, record.spent
    if record.response_model:
        told[semconv.RESPONSE_MODEL] = record.response_model
    if record.finish_reasons:
        told[semconv.FINISH_REASONS] = record.finish_reasons
    first = seconds(one.began, moments.first_token)
    if first is not None:
        told[semconv.TIME_TO_FIRST_CHUNK] = first
    if record.usage is not None and operation(record.plan) is CHAT:  # who only counts uses nothing
        told.update(_usage(record.usage))
    if record.why:
        told["zurelay.why"] = record.why
    if spent is not None and spent.usd:
        told["zurelay.cost.usd"] = float(spent.usd)
    if spent is not None and spent.ours:
        told["zurelay.cost.own_usd"] = float(spent.ours)
    if record.content is not None:
        told.update(record.content)


def _usage(usage: Usage) -> dict[str, Value]:
    told: dict[str, Value] = {semconv.INPUT_TOKENS: usage.prompt, semconv.OUTPUT_TOKENS: usage.completion}
    more = {
        semconv.CACHE_READ: usage.cached,
        semconv.CACHE_WRITTEN: usage.cache_written,
        semconv.REASONING_TOKENS: usage.reasoning,
    }
    told |= {name: count for name, count in more.items() if count}
    if usage.estimated:
        told["zurelay.usage.estimated"] = True
    return told
