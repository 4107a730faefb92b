"""An error on its way from an attempt to the relay, which answers the client: one header's value, and back."""

from __future__ import annotations

import json

import msgspec

from zurelay import refusal
from zurelay.errors import GatewayUnavailable, InvalidRequest, ModelUnavailable, ProviderRefusal, ZurelayError

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
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=True)


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


def of_local_reply(status: int, retry_after: str | None) -> ZurelayError:
    """Give the error for an answer that Envoy made itself: no attempt was there to say why."""
    named = refusal.retry_after(retry_after, 0)
    seconds = refusal.wait([] if named is None else [named])
    if status == 503 and retry_after is None:  # noqa: PLR2004  # our own listener refused the hop
        return GatewayUnavailable("The gateway could not pass the request on. Try again.", retry_after=seconds)
    return ModelUnavailable(
        f"Every attempt to get an answer failed. Try again in {seconds} s, or ask another model.",
        retry_after=seconds,
        should_retry=False,
    )
