from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.simulate import anthropic, checks, openai, reading

LEGAL: dict[str, tuple[bytes, Any]] = {
    "an object": (b'{"a": [1, "b", null]}', {"a": [1, "b", None]}),
    "a number beyond floats": (b"[1e400]", [float("inf")]),
    "a long integer": (b"[12345678901234567890123]", [12345678901234567890123]),
    "half a surrogate pair": (b'["\\ud83d"]', ["\ud83d"]),
}


@pytest.mark.parametrize("name", LEGAL)
def test_any_legal_json_is_read(name: str) -> None:
    body, expected = LEGAL[name]
    assert expected == reading.decode(body)


@pytest.mark.parametrize("body", [b"", b"{", b"[NaN]", b"{'a': 1}", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|utf-8"):
        reading.decode(body)


def test_text_is_joined_from_parts_and_made_fit_for_utf8() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "image"}, {"text": 5}, "x", {"type": "text", "text": "\ud83d"}]
    assert reading.text_of(content) == "a\n?"


def test_tokens_are_counted_by_characters_messages_and_media() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "a" * 40}, {"type": "image", "source": "b" * 9999}]}
    assert reading.count_tokens([message]) == 1 + 4 + 2 + (2 + 11) + 800


def test_tokens_of_deep_json_are_counted() -> None:
    deep: Any = "a"
    for _ in range(5000):
        deep = [{"a": deep}]
    assert reading.count_tokens(deep) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
NAMES = (
    *("model", "messages", "tools", "tool_choice", "response_format", "output_config", "thinking", "stop", "n"),
    *("max_tokens", "stream", "stream_options", "reasoning_effort", "temperature", "system", "parallel_tool_calls"),
    *("role", "content", "type", "name", "function", "format", "schema", "json_schema", "tool_calls", "tool_call_id"),
    *("id", "tool_use_id", "effort", "budget_tokens", "allowed_tools", "signature"),
)
OBJECTS = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@given(body=st.dictionaries(st.sampled_from(NAMES), OBJECTS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_readers_and_checks_take_any_json(body: dict[str, Any]) -> None:
    asks = (openai.read(body), anthropic.read(body))
    problems = (checks.openai(body), checks.messages(body, "2023-06-01"))
    assert (
        all(ask.n >= 1 for ask in asks),
        all(problem is None or problem.status == 400 for problem in problems),
    ) == (True, True)
