"""One walk over a request, in either format."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.auto import content
from zurelay.auto.content import Content, Role, Turn
from zurelay.model import Input

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def turn(role: str, text: str, **more: Any) -> Turn:
    return Turn(role=Role(role), text=text, **more)


@pytest.mark.parametrize(
    ("name", "messages", "turns"),
    [
        ("text", [{"role": "user", "content": "hi"}], [turn("user", "hi")]),
        (
            "parts",
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            [turn("user", "a\n\nb")],
        ),
        (
            "an image",
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}],
                }
            ],
            [turn("user", "a", media=frozenset({Input.IMAGE}))],
        ),
        (
            "tool calls and results of OpenAI",
            [
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]},
                {"role": "tool", "tool_call_id": "1", "content": "ok"},
            ],
            [turn("assistant", "", calls=2), turn("tool", "ok", results=1)],
        ),
        (
            "a function call of old",
            [{"role": "assistant", "function_call": {"name": "f"}}, {"role": "function", "content": "ok"}],
            [turn("assistant", "", calls=1), turn("tool", "ok", results=1)],
        ),
        (
            "tool use and results of Anthropic",
            [
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "t"}, {"type": "tool_use", "input": {}}],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": "ok"}, {"type": "text", "text": "go on"}],
                },
            ],
            [turn("assistant", "", calls=1), turn("tool", "ok", results=1), turn("user", "go on")],
        ),
        (
            "results alone are no turn of the user",
            [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}]}],
            [turn("tool", "ok", results=1)],
        ),
        (
            "an image in a result",
            [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image", "source": {}}]}]}],
            [turn("tool", "", results=1, media=frozenset({Input.IMAGE}))],
        ),
        (
            "a document as text",
            [{"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "plain"}}]}],
            [turn("user", "plain")],
        ),
        (
            "a document of parts",
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "p"}]}}
                    ],
                }
            ],
            [turn("user", "p")],
        ),
        ("an unknown role", [{"role": "critic", "content": "hi"}, {"content": "hi"}, {"role": 3, "content": "hi"}], []),
        ("wrong types", [3, None, [], {"role": "user", "content": 5}], [turn("user", "")]),
    ],
)
def test_messages_become_turns(name: str, messages: list[Any], turns: list[Turn]) -> None:
    assert content.read({"messages": messages}).turns == tuple(turns), name


@pytest.mark.parametrize(
    ("body", "system"),
    [
        ({"messages": [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}]}, "a\nb"),
        ({"system": "a", "messages": []}, "a"),
        ({"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\n\nb"),
        ({"system": {"a": 1}}, ""),
    ],
)
def test_the_system_prompt_stands_apart(body: dict[str, Any], system: str) -> None:
    read = content.read(body)

    assert (read.system, read.turns) == (system, ())


@pytest.mark.parametrize(
    ("body", "tools"),
    [({"tools": [{}, {}]}, 2), ({"functions": [{}]}, 1), ({"tools": "x"}, 0), ({}, 0)],
)
def test_tools_are_counted(body: dict[str, Any], tools: int) -> None:
    assert content.read(body).tools == tools


@pytest.mark.parametrize(
    ("body", "schema"),
    [
        ({"response_format": {"type": "json_schema"}}, True),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": {"type": "text"}}, False),
        ({"output_format": {"type": "json_schema"}}, True),
        ({"output_config": {"format": {"type": "json_schema"}}}, True),
        ({"output_config": {"effort": "high"}}, False),
        ({"response_format": "json_schema"}, False),
    ],
)
def test_structured_output_is_seen(body: dict[str, Any], schema: bool) -> None:
    assert content.read(body).schema is schema


def test_media_of_all_turns_comes_together() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "u"}}]
    files = [{"type": "file", "file": {"file_id": "f"}}]
    read = content.read({"messages": [{"role": "user", "content": parts}, {"role": "tool", "content": files}]})

    assert read.media == {Input.IMAGE, Input.PDF}


@settings(max_examples=80)
@given(JSON)
def test_any_json_is_read_without_error(value: Any) -> None:
    bodies: list[Any] = [value, {"messages": value, "system": value, "tools": value, "response_format": value}]
    bodies += [{"messages": [{"role": role, "content": value}]} for role in ("system", "user", "assistant", "tool")]
    bodies += [{"messages": [{"role": "user", "content": [{"type": "tool_result", "content": value}, value]}]}]

    assert all(isinstance(content.read(body), Content) for body in bodies)
