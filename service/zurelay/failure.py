"""How a streamed request fails: an attempt's error on its way to the relay, in one header, and the relay's own."""

from __future__ import annotations

import json

import msgspec

from zurelay import refusal
from zurelay.errors import GatewayUnavailable, InvalidRequest, ModelUnavailable, ProviderRefusal, ZurelayError

LOST_STATUS = 503  # of an answer that Envoy makes itself, where nobody else is there to give one

_KINDS: dict[str, type[ZurelayError]] = {kind.__name__: kind for kind in (InvalidRequest, ModelUnavailable)}


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    message: str
    status: int
    code: str | None = None
    param: str | None = None
    retry_after: int | None = None
    should_retry: bool | None = None


def encode(error: ZurelayError) -> str:
    """Write an error as one line of ASCII: what may stand in a header."""
    value = _Failure(
        kind=type(error).__name__,
        message=error.message,
        status=error.status,
        code=error.code,
        param=error.param,
        retry_after=error.retry_after,
        should_retry=error.should_retry,
    )
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=True).replace("\x7f", "\\u007f")


def decode(text: str) -> ZurelayError:
    """Read what `encode` wrote."""
    value = msgspec.json.decode(text, type=_Failure)
    kind = _KINDS.get(value.kind)
    if kind is None:
        return ProviderRefusal(value.message, status=value.status, code=value.code, param=value.param)
    return kind(
        value.message,
        code=value.code,
        param=value.param,
        retry_after=value.retry_after,
        should_retry=value.should_retry,
    )


def of_local_reply(retry_after: str | None, *, tried: bool) -> ZurelayError:
    """Give the error for an answer that Envoy made itself. `tried` is whether it says that attempts were made.

    Without, the request was refused on its way, or the worker of an attempt is gone: another try finds another worker.
    """
    named = refusal.retry_after(retry_after, 0)
    seconds = refusal.wait([] if named is None else [named])
    if not tried:
        return GatewayUnavailable("The gateway could not pass the request on. Try again.", retry_after=seconds)
    return ModelUnavailable(
        f"Every attempt to get an answer failed. Try again in {seconds} s, or ask another model.",
        retry_after=seconds,
        should_retry=False,
    )


def lost() -> ModelUnavailable:
    """The request's way to the model ended without an answer."""
    return ModelUnavailable(
        "The request was lost on its way to the model. Try again.", retry_after=refusal.DEFAULT_WAIT
    )


def timed_out() -> ModelUnavailable:
    """No attempt began to answer within `total`."""
    return ModelUnavailable(
        "No model began to answer in time. Try again, or ask for less reasoning effort.",
        retry_after=refusal.DEFAULT_WAIT,
        should_retry=False,
    )


def stalled() -> ModelUnavailable:
    """A stream fell silent for `idle`."""
    return ModelUnavailable(
        "The model stopped in the middle of its answer. Try again.", retry_after=refusal.DEFAULT_WAIT
    )


def broken(said: str = "") -> ModelUnavailable:
    """A stream went wrong or was cut short; `said` is the provider's own message, scrubbed."""
    quoted = f" The provider said: {said}" if said else ""
    return ModelUnavailable(f"The model's answer broke off. Try again.{quoted}", retry_after=refusal.DEFAULT_WAIT)


def unread(limit: int) -> ModelUnavailable:
    """A stream grew beyond the bytes that we hold for a client."""
    return ModelUnavailable(
        f"The answer is larger than the {limit} bytes that one stream may hold. Ask for less.",
        retry_after=refusal.DEFAULT_WAIT,
        should_retry=False,
    )
