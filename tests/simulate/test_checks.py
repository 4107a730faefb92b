from typing import Any

import pytest

from simulate.helpers import CHAT, MESSAGES, USER
from zurelay.simulate import checks

CALLS = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
USES = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
ADAPTIVE = {"type": "adaptive"}


def told(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "x"}


def result(name: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "x"}]}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


CHATS: dict[str, tuple[dict[str, Any], str | None]] = {
    "whole": ({}, None),
    "with an unknown field": ({"simulate": {}, "new": 1}, None),
    "without a model": ({"model": ""}, "you must provide a model parameter"),
    "without messages": ({"messages": None}, "Missing required parameter: 'messages'."),
    "with messages of another type": ({"messages": "hi"}, "Invalid type for 'messages'"),
    "with a message of another type": ({"messages": [USER, "hi"]}, "Invalid type for 'messages'"),
    "with no message": ({"messages": []}, "Invalid 'messages': empty array"),
    "with an unknown effort": ({"reasoning_effort": "most"}, "Invalid value: 'most'"),
    "with a gateway's field": ({"models": ["a"]}, "Unrecognized request argument supplied: models"),
    "with results": ({"messages": [USER, CALLS, told("b"), told("a"), USER]}, None),
    "with a result missing": ({"messages": [USER, CALLS, told("b"), USER]}, "must be followed by tool messages"),
    "with results missing at the end": ({"messages": [USER, CALLS]}, "must be followed by tool messages"),
    "with a result of nothing": ({"messages": [USER, told("a")]}, "must be a response to a preceding message"),
    "with a result twice": ({"messages": [USER, CALLS, told("a"), told("a")]}, "must be a response to a preceding"),
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_request_is_refused_as_openai_does(name: str) -> None:
    body, expected = CHATS[name]
    refusal = checks.openai({**CHAT, **body})
    if expected is None:
        assert refusal is None
        return
    assert refusal is not None
    assert (refusal.status, expected in refusal.message) == (400, True)


SENT: dict[str, tuple[dict[str, Any], str | None]] = {
    "whole": ({}, None),
    "with an unknown field": ({"simulate": {}, "new": 1}, None),
    "without a model": ({"model": None}, "model: Field required"),
    "without messages": ({"messages": None}, "messages: Field required"),
    "without a limit": ({"max_tokens": None}, "max_tokens: Field required"),
    "with no room": ({"max_tokens": 0}, "max_tokens: Input should be"),
    "with no message": ({"messages": []}, "at least one message is required"),
    "with a message of another type": ({"messages": [USER, 1]}, "each must be an object"),
    "with another role": ({"messages": [{"role": "developer"}]}, "messages.0.role: Input should be"),
    "with the other format's field": ({"reasoning_effort": "low"}, "reasoning_effort: Extra inputs are not permitted"),
    "with a gateway's field": ({"models": []}, "models: Extra inputs are not permitted"),
    "with an empty text": (user({"type": "text", "text": ""}), "messages.0.content.0: text content blocks must be"),
    "with changed thinking": (user({"type": "thinking", "thinking": "x"}), "Invalid `signature` in `thinking` block"),
    "with thinking": ({"thinking": ADAPTIVE, "temperature": 1, "tool_choice": {"type": "auto"}}, None),
    "with too small a budget": ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "greater than or equal to 1024"),
    "with too big a budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 5000}},
        "must be greater than",
    ),
    "with thinking and temperature": ({"thinking": ADAPTIVE, "temperature": 0.5}, "`temperature` may only be set to 1"),
    "with thinking and a forced tool": ({"thinking": ADAPTIVE, "tool_choice": {"type": "any"}}, "forces tool use"),
    "without thinking and a forced tool": ({"thinking": {"type": "disabled"}, "tool_choice": {"type": "any"}}, None),
    "with an effort": ({"output_config": {"effort": "max"}}, None),
    "with no effort": ({"output_config": {"effort": "none"}}, "output_config.effort: Input should be one of 'low'"),
    "with a result": ({"messages": [USER, USES, result("a")]}, None),
    "with a result at the end missing": ({"messages": [USER, USES]}, None),
    "with a result missing": ({"messages": [USER, USES, USER]}, "messages.1: `tool_use` ids were found without"),
    "with a result of nothing": ({"messages": [result("a")]}, "messages.0: unexpected `tool_use_id`"),
}


@pytest.mark.parametrize("name", SENT)
def test_a_message_is_refused_as_anthropic_does(name: str) -> None:
    body, expected = SENT[name]
    refusal = checks.messages({**MESSAGES, **body}, "2023-06-01")
    if expected is None:
        assert refusal is None
        return
    assert refusal is not None
    assert (refusal.status, expected in refusal.message) == (400, True)


def test_a_version_is_needed() -> None:
    refusal = checks.messages(MESSAGES, None)
    assert refusal is not None
    assert refusal.message == "anthropic-version: header is required"


def test_counting_needs_no_limit() -> None:
    assert checks.messages({**MESSAGES, "max_tokens": None}, "2023-06-01", counting=True) is None
