"""A provider's refusal: what its status and error body mean for the plan (SPEC 5)."""

from __future__ import annotations

import datetime as dt
import email.utils
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from zurelay.plan import Reason

MOST_BODY = 512 << 10  # bytes of an error body that are read: some echo the request in it
MOST_MESSAGE = 2_000  # characters of a provider's message that we pass on
MOST_WAIT = 60  # seconds: the longest that a Retry-After sets a route aside (SPEC 5)
DEFAULT_WAIT = 5  # seconds: retry-after where no provider gave one (SPEC 10)

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LONG = 10**6  # seconds: longer is as good as never

_REASONS = {401: Reason.DENIED, 403: Reason.DENIED, 404: Reason.DENIED, 429: Reason.RETRY_LATER}
_PASSING = frozenset({408, 409, 425})
_LENGTH_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "context_window_exceeded"})
# How the providers say it in prose, where they have no code for it.
_LENGTH_WORDS = re.compile(
    r"(?:prompt|input) is too long"  # Anthropic, Bedrock
    r"|maximum (?:context|prompt|model) length"  # OpenAI, vLLM, Mistral, xAI
    r"|context[ _-]?(?:length|window|size)"  # OpenAI, MiniMax, SGLang, llama.cpp
    r"|exceed(?:s|ed)? (?:the )?(?:model(?:'s)? )?(?:max(?:imum)? )?(?:input )?(?:context|token)"  # Anthropic, Kimi
    r"|too many (?:input )?tokens"  # Cohere
    r"|(?:prompt|input) token count"  # Gemini, GitHub
    r"|prompt exceeds max length"  # Z.ai
    r"|range of input length should be"  # Qwen
    r"|reduce the length of the (?:messages|prompt)",  # Groq, Cerebras
    re.IGNORECASE,
)


_MOST_WORD = 200  # characters of a code or a field's name
# URLs, IP addresses with their ports, bearer tokens, and words long enough to be a key.
_SECRETS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://\S{1,500}|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|\[[0-9a-fA-F:]{3,45}\](?::\d{1,5})?"
    r"|\b(?:sk|pk|key|zk|xai|gsk)[-_][A-Za-z0-9_-]{3,}|\b[Bb]earer\s+\S+|\b(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{32,}\b"
)


class ProviderError(msgspec.Struct, frozen=True):
    """What an error body says, in whichever of the usual shapes."""

    message: str = ""
    code: str | None = None
    param: str | None = None


def read(body: bytes) -> ProviderError:
    """Read an error body; one of no known shape gives an empty message."""
    if len(body) > MOST_BODY:
        return ProviderError()
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ProviderError()
    if isinstance(value, list) and value:  # Gemini's OpenAI front answers with a list of one
        value = value[0]
    if not isinstance(value, dict):
        return ProviderError(message=scrubbed(value)) if isinstance(value, str) else ProviderError()
    inner = value.get("error")
    if isinstance(inner, str) and inner:  # Ollama, xAI
        return ProviderError(scrubbed(inner), _text(value, "code"))
    holder = inner if isinstance(inner, dict) else value
    message, place = _said(holder)
    return ProviderError(scrubbed(message), _text(holder, "code"), _text(holder, "param") or place)


def _said(holder: dict[str, Any]) -> tuple[str, str | None]:
    """Find the message, and what it is about where it comes as a list of FastAPI's details (Mistral, vLLM)."""
    found = holder.get("message") or holder.get("detail") or ""
    if isinstance(found, dict):
        found = found.get("detail") or found.get("message") or ""
    if not isinstance(found, list):
        return (found, None) if isinstance(found, str) else ("", None)
    first = found[0] if found and isinstance(found[0], dict) else {}
    message, loc = _text(first, "msg") or "", first.get("loc")
    place = ".".join(str(step) for step in loc if step != "body")[:100] if isinstance(loc, list) else ""
    return (f"{place}: {message}", place) if place and message else (message, None)


def _text(value: dict[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found[:_MOST_WORD] if isinstance(found, str) and found else None


def scrubbed(message: str) -> str:
    """Take out of a provider's message what no client should see: addresses, and what may be a secret (SPEC 10)."""
    return _SECRETS.sub("[...]", message[: 2 * MOST_MESSAGE])[:MOST_MESSAGE]


def is_about_length(status: int, error: ProviderError) -> bool:
    """Tell whether the request was refused as longer than the model's window."""
    if status not in (400, 413, 422):
        return False
    return error.code in _LENGTH_CODES or bool(_LENGTH_WORDS.search(error.message))


def reason_of(status: int) -> Reason | None:
    """Say why a failing status moves the plan on whatever its body says; None where that must be read."""
    if status in _REASONS:
        return _REASONS[status]
    if status in _PASSING or not 400 <= status < 500:  # noqa: PLR2004  # RFC 9110, 15.5: the client's errors
        return Reason.STATUS
    return None


def reason(status: int, error: ProviderError, *, named: bool) -> Reason | None:
    """Say why a status moves the plan on; None where the mistake is the client's own."""
    by_status = reason_of(status)
    if by_status is not None:
        return by_status
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
    if _SECONDS.fullmatch(text):  # some send a fraction
        return math.ceil(min(float(text), _LONG))
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # the parser is no strict one
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=dt.UTC)
    return math.ceil(min(max(0.0, when.timestamp() - now), _LONG))


def wait(named: Iterable[int]) -> int:
    """Say when to ask again, in seconds: the soonest that a provider named, 1 to 60, else 5 (SPEC 10)."""
    soonest = min(named, default=DEFAULT_WAIT)
    return max(1, min(soonest, MOST_WAIT))
