"""An error that a provider sends where an answer should be."""

from __future__ import annotations

import msgspec

from zurelay import refusal
from zurelay.formats.contract import Failure, FailureKind


class _Error(msgspec.Struct):
    type: str | None = None


class _Body(msgspec.Struct):
    error: _Error | None = None


_BODY = msgspec.json.Decoder(_Body)


def failure(data: bytes) -> Failure:
    """Read an error event of either format; one of no known shape has no message. Its type stands in for a code."""
    said = refusal.read(data)
    return Failure(kind=FailureKind.ERROR, message=said.message, code=said.code or _type(data))


def complaint(body: bytes, error: Exception) -> str:
    """Say what was wrong with an answer: in the provider's words, if it is an error, else in the decoder's."""
    message = refusal.read(body).message
    return f"an error: {message}" if message else f"the answer: {error}"


def _type(data: bytes) -> str | None:
    try:
        found = _BODY.decode(data).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found.type if found is not None else None
