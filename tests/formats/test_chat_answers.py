"""What an OpenAI-format provider answers, as it is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from zurelay.formats.chat_answers import Function, Said, arguments, stop_details, stop_reason

SAID: dict[str, tuple[dict[str, Any], str, str]] = {
    "words": ({"content": "a"}, "a", ""),
    "nothing": ({"content": None, "reasoning_content": None}, "", ""),
    "parts": (
        {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}, {"text": "c"}]},
        "a",
        "",
    ),
    "reasoning": ({"reasoning_content": "r"}, "", "r"),
    "reasoning by its other name": ({"reasoning": "r"}, "", "r"),
    "both names": ({"reasoning_content": "r", "reasoning": "r"}, "", "r"),
    "an empty one": ({"reasoning_content": "", "reasoning": "r"}, "", "r"),
    "no text": ({"reasoning": {"x": 1}, "reasoning_content": 3}, "", ""),
}


@pytest.mark.parametrize(("value", "text", "thought"), SAID.values(), ids=SAID)
def test_what_was_said_and_thought(value: dict[str, Any], text: str, thought: str) -> None:
    said = msgspec.convert(value, Said)

    assert (text, thought) == (said.text, said.thought)


@pytest.mark.parametrize(("given", "expected"), [(None, ""), ("", ""), ("{", "{"), ({"a": 1}, '{"a":1}'), ({}, "{}")])
def test_arguments_are_a_string(given: Any, expected: str) -> None:
    assert expected == arguments(Function("f", given))


STOPS = {
    "stop": ("end_turn", "tool_use"),
    "length": ("max_tokens", "max_tokens"),
    "tool_calls": ("end_turn", "tool_use"),
    "function_call": ("end_turn", "tool_use"),
    "content_filter": ("refusal", "refusal"),
    "eos": ("end_turn", "tool_use"),
    None: ("end_turn", "tool_use"),
}


@pytest.mark.parametrize(("finish", "stops"), STOPS.items())
def test_finish_reasons_become_stop_reasons(finish: str | None, stops: tuple[str, str]) -> None:
    assert stops == (stop_reason(finish, calls=False, refused=False), stop_reason(finish, calls=True, refused=False))
    assert stop_reason(finish, calls=True, refused=True) == "refusal"


def test_details_are_for_refusals() -> None:
    assert stop_details("") is None
    assert stop_details("No.") == {"type": "refusal", "category": None, "explanation": "No."}
