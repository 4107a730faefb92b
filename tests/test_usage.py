"""Usage in every dialect: read into one shape, written as OpenAI writes it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import usage
from zurelay.usage import Usage


def whole(prompt: Any, completion: Any, total: Any = ..., **fields: Any) -> dict[str, Any]:
    found = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **fields}
    return {name: value for name, value in found.items() if value is not ...}


UNKNOWN = Usage(estimated=True)
DIALECTS: dict[str, tuple[dict[str, Any], Usage]] = {
    "OpenAI": (
        whole(
            100,
            50,
            150,
            prompt_tokens_details={"cached_tokens": 80, "audio_tokens": 0},
            completion_tokens_details={"reasoning_tokens": 30, "accepted_prediction_tokens": 0},
        ),
        Usage(prompt=100, completion=50, cached=80, reasoning=30),
    ),
    "no details": (whole(100, 50, 150), Usage(prompt=100, completion=50)),
    "details that are null": (
        whole(100, 50, 150, prompt_tokens_details=None, completion_tokens_details=None),
        Usage(prompt=100, completion=50),
    ),
    "details that are no objects": (
        whole(100, 50, 150, prompt_tokens_details=[1], completion_tokens_details="x"),
        Usage(prompt=100, completion=50),
    ),
    "xAI: reasoning beside, less than the completion": (
        whole(10, 40, 70, completion_tokens_details={"reasoning_tokens": 20}),
        Usage(prompt=10, completion=60, reasoning=20),
    ),
    "reasoning beside, more than the completion": (
        whole(10, 5, 15, completion_tokens_details={"reasoning_tokens": 20}),
        Usage(prompt=10, completion=25, reasoning=20),
    ),
    "one token of reasoning beside": (
        whole(10, 5, 16, completion_tokens_details={"reasoning_tokens": 1}),
        Usage(prompt=10, completion=6, reasoning=1),
    ),
    "reasoning inside": (
        whole(10, 60, 70, completion_tokens_details={"reasoning_tokens": 20}),
        Usage(prompt=10, completion=60, reasoning=20),
    ),
    "all of the completion is reasoning": (
        whole(10, 20, 30, completion_tokens_details={"reasoning_tokens": 20}),
        Usage(prompt=10, completion=20, reasoning=20),
    ),
    "reasoning at the top": (whole(10, 60, 70, reasoning_tokens=20), Usage(prompt=10, completion=60, reasoning=20)),
    "no total, reasoning inside": (
        whole(10, 60, completion_tokens_details={"reasoning_tokens": 20}),
        Usage(prompt=10, completion=60, reasoning=20),
    ),
    "DeepSeek's cache": (
        whole(100, 5, 105, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36),
        Usage(prompt=100, completion=5, cached=64),
    ),
    "Moonshot's cache": (whole(100, 5, 105, cached_tokens=64), Usage(prompt=100, completion=5, cached=64)),
    "cache reads and writes": (
        whole(500, 5, 505, prompt_tokens_details={"cached_tokens": 300, "cache_write_tokens": 200}),
        Usage(prompt=500, completion=5, cached=300, cache_written=200),
    ),
    "cache writes by another name": (
        whole(500, 5, 505, prompt_tokens_details={"cached_tokens": 300, "cache_creation_tokens": 100}),
        Usage(prompt=500, completion=5, cached=300, cache_written=100),
    ),
    "more cached than there is": (
        whole(100, 5, 105, prompt_tokens_details={"cached_tokens": 900, "cache_write_tokens": 900}),
        Usage(prompt=100, completion=5, cached=100),
    ),
    "more written than is left": (
        whole(100, 5, 105, prompt_tokens_details={"cached_tokens": 40, "cache_write_tokens": 900}),
        Usage(prompt=100, completion=5, cached=40, cache_written=60),
    ),
    "nothing": ({}, UNKNOWN),
    "counts that are null": (whole(None, None, None), UNKNOWN),
    "negative counts": (whole(-5, -1, -6), UNKNOWN),
    "a negative prompt": (whole(-5, 7, 2), Usage(completion=7, estimated=True)),
    "a negative completion": (whole(5, -7, -2), Usage(prompt=5, estimated=True)),
    "no completion": (whole(5, ..., 12), Usage(prompt=5, estimated=True)),
    "a completion that is null": (whole(5, None), Usage(prompt=5, estimated=True)),
    "no prompt": (whole(..., 5), Usage(completion=5, estimated=True)),
    "zeros": (whole(0, 0, 0), UNKNOWN),
    "fractions": (whole(5.0, 2.9, 8), Usage(prompt=5, completion=2)),
    "text": (whole("5", "x", "9"), UNKNOWN),
    "booleans": (whole(True, False, True), UNKNOWN),
    "beyond any model": (whole(10**30, 1 << 41, 7), UNKNOWN),
    "infinite": (whole(float("inf"), float("-inf"), float("nan")), UNKNOWN),
}


@pytest.mark.parametrize(("value", "expected"), [pytest.param(*row, id=name) for name, row in DIALECTS.items()])
def test_a_dialect_is_read(value: dict[str, Any], expected: Usage) -> None:
    assert expected == usage.from_openai(value)


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        (Usage(prompt=3), None, True),
        (Usage(), None, True),
        (Usage(prompt=3, completion=4), Usage(prompt=3, completion=2), True),
        (Usage(prompt=3), Usage(prompt=3, completion=2), True),
        (Usage(), Usage(prompt=3, completion=2), False),
        (Usage(), Usage(), True),
    ],
)
def test_a_later_report_counts_unless_it_is_all_zeros(after: Usage, before: Usage | None, *, expected: bool) -> None:
    assert expected is usage.says_more(after, before)


def test_a_total_is_a_sum() -> None:
    assert Usage(prompt=3, completion=4, cached=1, reasoning=2).total == 7


def test_usage_is_written_as_openai_writes_it() -> None:
    assert {
        "prompt_tokens": 500,
        "completion_tokens": 60,
        "total_tokens": 560,
        "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 20},
    } == usage.as_openai(Usage(prompt=500, completion=60, cached=300, cache_written=100, reasoning=20))
    assert usage.as_openai(Usage())["prompt_tokens_details"] == {"cached_tokens": 0}


KEPT = {
    "OpenAI's own": b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,'
    b'"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}',
    "no details": b'{ "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.1000 }',
    "details of nothing": b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":null}',
    "empty": b"{}",
    "null": b"null",
    "no object": b"[1]",
    "no JSON": b"",
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in KEPT.items()])
def test_what_is_right_keeps_its_bytes(raw: bytes) -> None:
    assert raw == usage.normal(raw)


CORRECTED = {
    "reasoning beside": (
        (
            b'{"prompt_tokens":10,"completion_tokens":40,"total_tokens":70,'
            b'"completion_tokens_details":{"reasoning_tokens":20}}'
        ),
        (
            b'{"prompt_tokens":10,"completion_tokens":60,"total_tokens":70,'
            b'"completion_tokens_details":{"reasoning_tokens":20}}'
        ),
    ),
    "a total that is no sum": (
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}',
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}',
    ),
    "no total": (
        b'{"prompt_tokens":1,"completion_tokens":2}',
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}',
    ),
    "DeepSeek's cache": (
        b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_cache_hit_tokens":4}',
        (
            b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_cache_hit_tokens":4,'
            b'"prompt_tokens_details":{"cached_tokens":4}}'
        ),
    ),
    "cache writes by another name": (
        b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cache_creation_tokens":4}}',
        (
            b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cache_creation_tokens":4,'
            b'"cache_write_tokens":4}}'
        ),
    ),
    "reasoning at the top": (
        b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"reasoning_tokens":1}',
        (
            b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"reasoning_tokens":1,'
            b'"completion_tokens_details":{"reasoning_tokens":1}}'
        ),
    ),
    "other fields keep their digits": (
        b'{"prompt_tokens":1,"cost":0.1000,"big":12345678901234567890123,"completion_tokens":2,"total_tokens":0}',
        b'{"prompt_tokens":1,"cost":0.1000,"big":12345678901234567890123,"completion_tokens":2,"total_tokens":3}',
    ),
    "a number beyond a float": (
        b'{"prompt_tokens":1e400,"completion_tokens":2,"total_tokens":3}',
        b'{"prompt_tokens":0,"completion_tokens":2,"total_tokens":2}',
    ),
    "fractions": (
        b'{"prompt_tokens":1.0,"completion_tokens":2,"total_tokens":3}',
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}',
    ),
    "a detail that is no number": (
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":"x"}}',
        b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}',
    ),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in CORRECTED.items()])
def test_what_is_wrong_is_put_right(raw: bytes, expected: bytes) -> None:
    assert expected == usage.normal(raw)


DECODED = {
    "an object": (b'{"prompt_tokens":1}', {"prompt_tokens": 1}),
    "null": (b"null", None),
    "nothing": (b"", None),
    "empty": (b"{}", None),
    "a list": (b"[1]", None),
    "text": (b'"12"', None),
    "a number beyond a float": (b'{"a":-1e999}', {"a": float("-inf")}),
    "a number of 5,000 digits": (b'{"a":' + b"9" * 5_000 + b"}", {"a": float("inf")}),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in DECODED.items()])
def test_a_usage_object_is_an_object_with_something_in_it(raw: bytes, expected: dict[str, Any] | None) -> None:
    assert expected == usage.decoded(raw)


COUNTS = st.integers(-5, 1 << 42) | st.floats() | st.booleans() | st.text(max_size=3) | st.none()
NAMES = st.sampled_from(
    [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "prompt_cache_hit_tokens",
        "cache_write_tokens",
        "cache_creation_tokens",
        "other",
    ]
)
OBJECTS = st.dictionaries(NAMES, COUNTS, max_size=6)
USAGES = st.builds(
    lambda flat, inner, outer: flat | {"prompt_tokens_details": inner, "completion_tokens_details": outer},
    OBJECTS,
    OBJECTS | st.none(),
    OBJECTS | st.none(),
)


@given(USAGES)
def test_any_object_gives_counts_that_add_up(value: dict[str, Any]) -> None:
    read = usage.from_openai(value)
    assert min(read.prompt, read.completion, read.cached, read.cache_written, read.reasoning) >= 0
    assert read.cached + read.cache_written <= read.prompt
    assert read.reasoning <= read.completion


@given(st.builds(lambda p, c, r, k, w: (p, c, r, k, w), st.integers(1, 1 << 30), *[st.integers(0, 1 << 30)] * 4))
def test_what_is_written_is_read_back(counts: tuple[int, int, int, int, int]) -> None:
    prompt, completion, reasoning, cached, written = counts
    cached = min(cached, prompt)
    before = Usage(
        prompt=prompt,
        completion=completion + reasoning,
        reasoning=reasoning,
        cached=cached,
        cache_written=min(written, prompt - cached),
    )
    assert before == usage.from_openai(usage.as_openai(before))


def test_what_is_unknown_is_filled_with_our_own_figures() -> None:
    own = Usage(prompt=11, completion=12, estimated=True)
    assert own == usage.filled(UNKNOWN, own)
    assert Usage(prompt=3, completion=12, estimated=True) == usage.filled(Usage(prompt=3, estimated=True), own)
    told = Usage(prompt=3)
    assert told == usage.filled(told, own)


@given(USAGES)
def test_putting_right_twice_is_putting_right_once(value: dict[str, Any]) -> None:
    raw = json.dumps(value).replace("NaN", "0").replace("-Infinity", "-1e999").replace("Infinity", "1e999").encode()
    once = usage.normal(raw)
    assert once == usage.normal(once)
    assert counts_of(raw) == counts_of(once)


def counts_of(raw: bytes) -> Usage:
    """The counts, whether or not they are known to be told: what is put right doesn't show what stood there."""
    return msgspec.structs.replace(usage.from_openai(usage.decoded(raw) or {}), estimated=False)
