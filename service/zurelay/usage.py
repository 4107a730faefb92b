"""What a request used, in tokens: read from a provider's answer in whatever dialect, written in OpenAI's (SPEC 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_MOST_TOKENS = 1 << 40  # beyond any model: a larger figure is a provider's mistake


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts. `prompt` includes cached and cache-written ones, `completion` includes reasoning."""

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
    )


def as_openai(usage: Usage) -> dict[str, Any]:
    """Write the fields of an OpenAI usage object that we answer for."""
    found: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
    }
    details = {"cached_tokens": usage.cached}
    if usage.cache_written:
        details["cache_write_tokens"] = usage.cache_written
    found["prompt_tokens_details"] = details
    found["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return found


def normal(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the usage object a client should see; None where the provider's is already as it should be."""
    usage = from_openai(value)
    wanted = as_openai(usage)
    details = _object(value, "prompt_tokens_details")
    same_counts = all(
        value.get(name) == wanted[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if same_counts and (not usage.cached or details.get("cached_tokens") == usage.cached):
        return None
    merged = {**value, **wanted}
    merged["prompt_tokens_details"] = {**details, **wanted["prompt_tokens_details"]}
    merged["completion_tokens_details"] = {
        **_object(value, "completion_tokens_details"),
        **wanted["completion_tokens_details"],
    }
    return merged


def _count(value: Mapping[str, Any], name: str) -> int:
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return int(max(0, min(found, _MOST_TOKENS)))


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
