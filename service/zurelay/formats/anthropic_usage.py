"""Token counts in the Messages format: input_tokens there leaves out what the cache took part in (SPEC 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zurelay.usage import Usage, count, is_count


def from_anthropic(value: Mapping[str, Any]) -> Usage:
    """Read a usage object; what is absent or no number counts as nothing, and makes the whole an estimate."""
    cached, written = _count(value, "cache_read_input_tokens"), _count(value, "cache_creation_input_tokens")
    details = value.get("output_tokens_details")
    prompt = _count(value, "input_tokens") + cached + written
    return Usage(
        prompt=prompt,
        completion=_count(value, "output_tokens"),
        cached=cached,
        cache_written=written,
        reasoning=_count(details, "thinking_tokens") if isinstance(details, dict) else 0,
        estimated=not prompt or not all(is_count(value.get(name)) for name in ("input_tokens", "output_tokens")),
    )


def as_anthropic(usage: Usage) -> dict[str, Any]:
    """Write a usage object; the three kinds of input add up to the prompt."""
    found: dict[str, Any] = {
        "input_tokens": max(0, usage.prompt - usage.cached - usage.cache_written),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
    if usage.reasoning:
        found["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return found


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Put a later report over an earlier one: the counts of a stream are totals, those left out stand."""
    return {**old, **{name: value for name, value in new.items() if value is not None}}


def tells_output(counts: object) -> bool:
    """Tell whether a report says how much the model wrote; a stream's head says only how it began."""
    return isinstance(counts, dict) and is_count(counts.get("output_tokens"))


def _count(value: Mapping[str, Any], name: str) -> int:
    return count(value.get(name))
