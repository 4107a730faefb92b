"""Messages requests for an OpenAI-format provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from formats import conversations, golden, sdk
from zurelay.errors import InvalidRequest
from zurelay.formats import Target, request_chat_to_messages
from zurelay.formats.request_messages_to_chat import request
from zurelay.model import Effort

HI = [{"role": "user", "content": "Hi"}]
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def translated(fields: dict[str, Any], **target: Any) -> Any:
    body = json.dumps({"model": "gpt", "max_tokens": 9, "messages": HI, **fields}).encode()
    return json.loads(request(body, Target(model="gpt-up", **target)))


@pytest.mark.parametrize("case", golden.cases("request_messages_to_chat", ".in.json"))
def test_golden_requests_come_out_byte_for_byte(case: str) -> None:
    body = golden.read(f"{case}.in.json")
    target = Target(model="gpt-up", max_output=64_000, effort=golden.effort(body, "output_config", "effort"))

    golden.check(f"{case}.out.json", request(body, target))


@pytest.mark.parametrize("effort", list(Effort))
def test_effort_is_the_level_s_word(effort: Effort) -> None:
    assert {**translated({}), "reasoning_effort": effort.name} == translated({}, effort=effort)


SCHEMA = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
LOOSE = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}


def _format(schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    json_schema = {"name": "answer", "schema": schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}


FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
MAPPED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "stream asks for usage": ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    "no stream": ({"stream": False}, {}),
    "system": (
        {"system": "Be brief."},
        {"messages": [{"role": "system", "content": "Be brief."}, *HI]},
    ),
    "stops": ({"stop_sequences": ["a", "b"]}, {"stop": ["a", "b"]}),
    "user": ({"metadata": {"user_id": "u"}}, {"user": "u"}),
    "no user": ({"metadata": {"user_id": None}}, {}),
    "tier": ({"service_tier": "standard_only"}, {"service_tier": "default"}),
    "any tool": ({"tools": [TOOL], "tool_choice": {"type": "any"}}, {"tools": [FUNCTION], "tool_choice": "required"}),
    "no tool": ({"tools": [TOOL], "tool_choice": {"type": "none"}}, {"tools": [FUNCTION], "tool_choice": "none"}),
    "one tool": (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "f"}}},
    ),
    "one at a time": (
        {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"tools": [FUNCTION], "tool_choice": "auto", "parallel_tool_calls": False},
    ),
    "a choice without tools": ({"tool_choice": {"type": "auto"}}, {}),
    "a strict schema": (
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        _format(SCHEMA, True),
    ),
    "a looser one": ({"output_config": {"format": {"type": "json_schema", "schema": LOOSE}}}, _format(LOOSE, False)),
    "the older field": ({"output_format": {"type": "json_schema", "schema": SCHEMA}}, _format(SCHEMA, True)),
    "chat's own fields": ({"seed": 5}, {"seed": 5}),
    "what changes nothing": (
        {"cache_control": {"type": "ephemeral"}, "thinking": {"type": "adaptive"}, "models": ["a"], "diagnostics": {}},
        {},
    ),
    "what asks for nothing": ({"speed": "standard", "mcp_servers": [], "top_k": None, "container": None}, {}),
    "edits that need nothing": ({"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}, {}),
}


@pytest.mark.parametrize(("fields", "expected"), MAPPED.values(), ids=MAPPED)
def test_fields_are_mapped(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {**translated({}), **expected} == translated(fields)


UNMAPPED = {
    "top_k": {"top_k": 5},
    "container": {"container": "c"},
    "mcp_servers": {"mcp_servers": [{}]},
    "inference_geo": {"inference_geo": "eu"},
    "speed": {"speed": "fast"},
    "service_tier": {"service_tier": "x"},
    "tools[0]": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "tool_choice": {"tool_choice": {"type": "any"}},
    "output_config.task_budget": {"output_config": {"task_budget": 3}},
    "context_management": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
}


@pytest.mark.parametrize(("param", "fields"), UNMAPPED.items(), ids=UNMAPPED)
def test_what_has_no_counterpart_is_refused_of_a_named_model(param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        translated(fields)

    assert (400, param) == (caught.value.status, caught.value.param)
    assert param in caught.value.message


@pytest.mark.parametrize("fields", UNMAPPED.values(), ids=UNMAPPED)
def test_what_has_no_counterpart_is_dropped_for_another_model(fields: dict[str, Any]) -> None:
    assert translated({}) == translated(fields, named=False)


def test_more_stops_than_openai_takes() -> None:
    five = {"stop_sequences": list("abcde")}

    with pytest.raises(InvalidRequest, match="5 for a model that takes 4"):
        translated(five)
    assert translated(five, named=False)["stop"] == list("abcd")


MAX_TOKENS = {
    "kept": ({}, 9),
    "over the model's, and named": ({"max_output": 8}, 9),
    "over the model's, and not named": ({"max_output": 8, "named": False}, 8),
}


@pytest.mark.parametrize(("target", "expected"), MAX_TOKENS.values(), ids=MAX_TOKENS)
def test_max_tokens_is_kept(target: dict[str, Any], expected: int) -> None:
    assert expected == translated({}, **target)["max_tokens"]


REFUSED: dict[str, list[dict[str, Any]]] = {
    "max_tokens": [{"max_tokens": None}, {"max_tokens": 0}, {"max_tokens": "9"}],
    "messages": [
        {"messages": []},
        {"messages": None},
        {"messages": "x"},
        {"messages": [{"role": "user", "content": ""}]},
    ],
    "output_config.format": [
        {"output_config": {"format": {"type": "text"}}},
        {"output_config": {"format": {"type": "json_schema"}}},
    ],
    "tools": [{"tools": [{}]}],
    "system": [{"system": 3}],
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("param", "fields"), [(param, fields) for param, all_ in REFUSED.items() for fields in all_])
def test_what_is_wrong_is_refused_of_every_model(param: str, fields: dict[str, Any], named: bool) -> None:
    with pytest.raises(InvalidRequest) as caught:
        translated(fields, named=named)

    assert (400, param) == (caught.value.status, caught.value.param)


def _checked(body: bytes, target: Target) -> None:
    found = json.loads(request(body, target))
    for message in found["messages"]:
        message.pop("reasoning_content", None)
    kind = CompletionCreateParamsStreaming if found.get("stream") else CompletionCreateParamsNonStreaming
    assert not sdk.problems(found, kind)
    assert not conversations.chat_problems(found)


TARGETS = st.builds(
    Target,
    model=st.just("gpt-up"),
    max_output=st.none() | st.just(64_000),
    effort=st.none() | st.sampled_from(Effort),
    named=st.booleans(),
)
ANY_REQUEST = sdk.allowed(MessageCreateParamsNonStreaming, conversations.messages_fields) | sdk.allowed(
    MessageCreateParamsStreaming, conversations.messages_fields
)


@settings(max_examples=60, deadline=None)
@given(ANY_REQUEST, TARGETS)
def test_whatever_the_sdk_allows_is_translated_or_refused_by_name(fields: dict[str, Any], target: Target) -> None:
    refused = None
    try:
        _checked(json.dumps(fields).encode(), target)
    except InvalidRequest as error:
        refused = error.param or ""

    assert refused is None or refused.split("[")[0].split(".")[0] in {*fields, "messages"}


@settings(max_examples=60, deadline=None)
@given(conversations.chat_request(), TARGETS)
def test_what_came_from_chat_goes_back_to_chat(fields: dict[str, Any], target: Target) -> None:
    there = request_chat_to_messages.request(json.dumps(fields).encode(), Target(model="m", effort=target.effort))

    _checked(there, target)
