"""A provider's refusal: what its status and error body mean for the plan (SPEC 5)."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from typing import Any

import msgspec

from zurelay.plan import Reason

MOST_MESSAGE = 2_000  # characters of a provider's message that we pass on
MOST_WAIT = 60  # seconds: the longest that a Retry-After sets a route aside (SPEC 5)

_REASONS = {401: Reason.DENIED, 403: Reason.DENIED, 404: Reason.DENIED, 429: Reason.RETRY_LATER}
_PASSING = frozenset({408, 409, 425})
_LENGTH_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "context_window_exceeded"})
# How the providers say it in prose, where they have no code for it (OpenAI, vLLM, Anthropic, Mistral, Gemini's front).
_LENGTH_WORDS = re.compile(
    r"prompt is too long|maximum context length|context[ _-]?(?:length|window)|exceeds? (?:the )?(?:model'?s )?"
    r"(?:max(?:imum)? )?(?:input )?(?:context|token)|too many (?:input )?tokens|input token count",
    re.IGNORECASE,
)


class ProviderError(msgspec.Struct, frozen=True):
    """What an error body says, in whichever of the usual shapes."""

    message: str = ""
    code: str | None = None
    param: str | None = None


def read(body: bytes) -> ProviderError:
    """Read an error body; one of no known shape gives an empty message."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ProviderError()
    if isinstance(value, list) and value:  # Gemini's OpenAI front answers with a list of one
        value = value[0]
    inner = value.get("error", value) if isinstance(value, dict) else {}
    if isinstance(inner, str):
        return ProviderError(message=inner[:MOST_MESSAGE])
    if not isinstance(inner, dict):
        return ProviderError()
    message = _text(inner, "message") or _text(inner, "detail") or ""
    return ProviderError(
        message=message[:MOST_MESSAGE], code=_text(inner, "code"), param=_text(inner, "param")
    )


def _text(value: dict[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def is_about_length(status: int, error: ProviderError) -> bool:
    """Tell whether the request was refused as longer than the model's window."""
    if status not in (400, 413, 422):
        return False
    return error.code in _LENGTH_CODES or bool(_LENGTH_WORDS.search(error.message))


def reason(status: int, error: ProviderError, *, named: bool) -> Reason | None:
    """Say why a status moves the plan on; None where the mistake is the client's own."""
    if status in _REASONS:
        return _REASONS[status]
    if status in _PASSING or not 400 <= status < 500:  # noqa: PLR2004  # RFC 9110, 15.5: the client's errors
        return Reason.STATUS
    if is_about_length(status, error):
        return Reason.CONTEXT_LENGTH
    if status == 400 and not named:  # noqa: PLR2004  # SPEC 5: any 400 from a model that the client didn't name
        return Reason.BAD_REQUEST
    return None


def retry_after(value: str | None, now: float) -> int | None:
    """Read Retry-After, seconds or a date (RFC 9110, 10.2.3), to whole seconds from `now` (Unix time); at least 0."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]), 10**6)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=dt.UTC)
    return max(0, round(when.timestamp() - now))
