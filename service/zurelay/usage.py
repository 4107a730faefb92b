"""What a request used, in tokens: read from a provider's answer in whatever dialect, written in OpenAI's (SPEC 7)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from zurelay.jsonedit import Document

_MOST_TOKENS = 1 << 40  # beyond any model: a larger figure is a provider's mistake, and counts as none


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts. `prompt` includes cached and cache-written ones, `completion` includes reasoning.

    `estimated`: not all of it is the provider's word. As read from a provider, a count that is 0 then isn't known.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion


def from_openai(value: Mapping[str, Any]) -> Usage:
    """Read a usage object of an OpenAI-format provider.

    Reasoning is inside completion_tokens at OpenAI; some providers report it beside: then it is more than
    the completion, or the total is more than prompt and completion.
    """
    prompt, completion = _count(value, "prompt_tokens"), _count(value, "completion_tokens")
    inner, outer = _object(value, "prompt_tokens_details"), _object(value, "completion_tokens_details")
    reasoning = _count(outer, "reasoning_tokens") or _count(value, "reasoning_tokens")
    total = _count(value, "total_tokens")
    beside = reasoning > completion or (reasoning > 0 and total == prompt + completion + reasoning)
    cached = (
        _count(inner, "cached_tokens") or _count(value, "cached_tokens") or _count(value, "prompt_cache_hit_tokens")
    )
    written = _count(inner, "cache_write_tokens") or _count(inner, "cache_creation_tokens")
    cached = min(cached, prompt)
    return Usage(
        prompt=prompt,
        completion=completion + reasoning if beside else completion,
        cached=cached,
        cache_written=min(written, prompt - cached),
        reasoning=reasoning,
        estimated=not prompt or not is_count(value.get("completion_tokens")),
    )


def says_more(after: Usage, before: Usage | None) -> bool:
    """Tell whether a later report of one answer counts: not where it is all zeros, with which some providers end."""
    return before is None or after.total > 0 or before.total == 0


def filled(usage: Usage, own: Usage) -> Usage:
    """Put our own figures where a provider's usage leaves something unknown."""
    if not usage.estimated:
        return usage
    prompt, completion = usage.prompt or own.prompt, usage.completion or own.completion
    return msgspec.structs.replace(usage, prompt=prompt, completion=completion)


def as_openai(usage: Usage) -> dict[str, Any]:
    """Write the fields of an OpenAI usage object that we answer for."""
    found: dict[str, Any] = _counts(usage)
    details = {"cached_tokens": usage.cached}
    if usage.cache_written:
        details["cache_write_tokens"] = usage.cache_written
    found["prompt_tokens_details"] = details
    found["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return found


def decoded(raw: bytes) -> dict[str, Any] | None:
    """Decode a provider's usage object; None for what is none, or empty."""
    try:
        value = msgspec.json.decode(raw)
    except msgspec.ValidationError:  # a number out of range: legal JSON
        value = json.loads(raw, parse_int=float)
    except msgspec.DecodeError:  # an empty value: the field isn't there
        return None
    return value or None if isinstance(value, dict) else None


def normal(raw: bytes) -> bytes:
    """Give the usage object that a client should see: the provider's, with the counts that differ put right."""
    value = decoded(raw)
    return raw if value is None else put_right(raw, value, from_openai(value))


def put_right(raw: bytes, value: Mapping[str, Any], usage: Usage) -> bytes:
    """Do the same where the object is decoded and read already."""
    changes = _corrected(value, _counts(usage))
    for field, counts in (
        ("prompt_tokens_details", {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written}),
        ("completion_tokens_details", {"reasoning_tokens": usage.reasoning}),
    ):
        inner = _object(value, field)
        wrong = _corrected(inner, {name: count for name, count in counts.items() if count or inner.get(name)})
        if wrong:
            there = Document.parse(raw).raw(field) if inner else None
            changes[field] = Document.parse(there or b"{}").edit(wrong)
    return Document.parse(raw).edit(changes) if changes else raw


def _counts(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": usage.total}


def _corrected(value: Mapping[str, Any], wanted: Mapping[str, int]) -> dict[str, bytes | None]:
    """The counts that must differ from what stands there, written out."""
    return {name: b"%d" % count for name, count in wanted.items() if not _is(value.get(name), count)}


def _is(found: Any, count: int) -> bool:
    return type(found) is int and found == count


def _count(value: Mapping[str, Any], name: str) -> int:
    return count(value.get(name))


def count(found: object) -> int:
    """Read a count; 0 for what is none."""
    return int(found) if is_count(found) else 0


def is_count(found: object) -> TypeGuard[int | float]:
    """Tell a count from what stands in its place: nothing, less than nothing, another type, more than any model has."""
    return not isinstance(found, bool) and isinstance(found, int | float) and 0 <= found <= _MOST_TOKENS


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
