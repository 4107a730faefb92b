"""Token counts in the Messages format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.formats.anthropic_usage import as_anthropic, from_anthropic, merged
from zurelay.usage import Usage

READ: dict[str, tuple[dict[str, Any], Usage]] = {
    "nothing": ({}, Usage(estimated=True)),
    "plain": ({"input_tokens": 5, "output_tokens": 7}, Usage(prompt=5, completion=7)),
    "from the cache": (
        {"input_tokens": 4, "cache_read_input_tokens": 2455, "output_tokens": 1},
        Usage(prompt=2459, completion=1, cached=2455),
    ),
    "into the cache": (
        {"input_tokens": 4, "cache_creation_input_tokens": 10, "output_tokens": 1},
        Usage(prompt=14, completion=1, cache_written=10),
    ),
    "thinking is inside": (
        {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 40}},
        Usage(completion=50, reasoning=40, estimated=True),
    ),
    "no output": ({"input_tokens": 5}, Usage(prompt=5, estimated=True)),
    "no input beside the cache": (
        {"cache_read_input_tokens": 5, "output_tokens": 2},
        Usage(prompt=5, completion=2, cached=5, estimated=True),
    ),
    "nulls": ({"input_tokens": None, "output_tokens_details": None}, Usage(estimated=True)),
    "no numbers": ({"input_tokens": "5", "output_tokens": True, "output_tokens_details": 3}, Usage(estimated=True)),
    "no counts": ({"input_tokens": -1, "output_tokens": 1e300}, Usage(estimated=True)),
    "a negative input beside the cache": (
        {"input_tokens": -1, "cache_read_input_tokens": 5, "output_tokens": 2},
        Usage(prompt=5, completion=2, cached=5, estimated=True),
    ),
}


@pytest.mark.parametrize(("value", "expected"), READ.values(), ids=READ)
def test_usage_is_read(value: dict[str, Any], expected: Usage) -> None:
    assert expected == from_anthropic(value)


COUNT = st.integers(0, 10**6)


@given(st.integers(1, 10**6), COUNT, COUNT, COUNT, COUNT)
def test_what_is_written_is_read_back(rest: int, cached: int, written: int, output: int, reasoning: int) -> None:
    prompt = rest + cached + written
    usage = Usage(prompt=prompt, completion=output, cached=cached, cache_written=written, reasoning=reasoning)

    assert usage == from_anthropic(as_anthropic(usage))


def test_more_cached_than_sent_is_no_input_at_all() -> None:
    assert as_anthropic(Usage(prompt=5, cached=9))["input_tokens"] == 0


def test_later_counts_stand_over_earlier_ones_and_nulls_over_none() -> None:
    assert merged({"a": 1, "b": 2}, {"a": 3, "b": None, "c": 4}) == {"a": 3, "b": 2, "c": 4}
