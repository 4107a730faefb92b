from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from simulate.helpers import CHAT, USER, WEATHER, answer
from zurelay.simulate import openai
from zurelay.simulate.nouns import Answer, Ask, Call, Choice, Event, Finish, Kind, Refusal, Tool, Usage

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}
TOLD = {"role": "tool", "tool_call_id": "a", "content": "12 C"}
CALLS = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}

READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the model": ({"model": "x"}, {"model": "x"}),
    "a stream": ({"stream": True}, {"stream": True}),
    "usage in it": ({"stream_options": {"include_usage": True}}, {"include_usage": True}),
    "the last user message": (
        {"messages": [USER, {"role": "assistant"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}]},
        {"text": "b"},
    ),
    "a result at the end": ({"messages": [USER, CALLS, TOLD, TOLD]}, {"results": ("12 C", "12 C")}),
    "a result before the end": ({"messages": [USER, CALLS, TOLD, USER]}, {"results": ()}),
    "tools": ({"tools": [TOOL, {"type": "custom"}]}, {"tools": (Tool("get_weather", WEATHER),)}),
    "no tool": ({"tool_choice": "none"}, {"choice": "none"}),
    "any tool": ({"tool_choice": "required"}, {"choice": "required"}),
    "a tool": ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"choice": "f"}),
    "some tools": (
        {
            "tools": [TOOL, {"type": "function", "function": {"name": "f"}}],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        },
        {"tools": (Tool("f", None),), "choice": "required"},
    ),
    "one tool at a time": ({"parallel_tool_calls": False}, {"parallel": False}),
    "effort": ({"reasoning_effort": "high"}, {"level": 4}),
    "no effort": ({"reasoning_effort": "none"}, {"level": 0}),
    "a schema": ({"response_format": {"type": "json_schema", "json_schema": {"schema": WEATHER}}}, {"schema": WEATHER}),
    "text": ({"response_format": {"type": "text"}}, {"schema": None}),
    "a stop": ({"stop": "a"}, {"stop": ("a",)}),
    "stops": ({"stop": ["a", "b"]}, {"stop": ("a", "b")}),
    "the old limit": ({"max_tokens": 5}, {"limit": 5}),
    "the new limit": ({"max_tokens": 5, "max_completion_tokens": 6}, {"limit": 6}),
    "several choices": ({"n": 3}, {"n": 3}),
    "too many choices": ({"n": 10**9}, {"n": 128}),
}


@pytest.mark.parametrize("name", READ)
def test_a_request_is_taken_apart(name: str) -> None:
    body, expected = READ[name]
    found = msgspec.structs.asdict(openai.read({**CHAT, **body}))
    assert expected == {field: found[field] for field in expected}


def test_an_empty_request_is_read_too() -> None:
    assert Ask(model="") == openai.read({})


def test_any_object_may_be_asked_for() -> None:
    assert openai.read({"response_format": {"type": "json_object"}}).schema["type"] == "object"


ANSWERS = {
    "text": answer(),
    "thoughts": answer(Choice(thoughts=("hm", " well"), text=("one",))),
    "calls": answer(
        Choice(
            calls=(Call("i", "f", ('{"a"', ": 1}")), Call("j", "g", ("{}",))),
            finish=Finish.TOOLS,
        )
    ),
    "a refusal": answer(Choice(text=("no",), finish=Finish.REFUSAL)),
    "a cut": answer(Choice(text=("one",), finish=Finish.LENGTH)),
    "nothing": answer(Choice()),
    "several": answer(choices=(Choice(text=("one", " two")), Choice(text=("three",)))),
    "letters of many scripts": answer(Choice(text=("é", "東", "🎉", "\u2028", '"'))),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sdk_finds_in_a_stream_what_it_finds_in_the_whole(name: str) -> None:
    made = ANSWERS[name]
    whole = ChatCompletion.model_validate_json(openai.whole(made), strict=True)
    expected = [
        {
            "index": choice.index,
            "finish_reason": choice.finish_reason,
            "content": choice.message.content or "",
            "refusal": choice.message.refusal or "",
            "reasoning_content": (choice.message.model_extra or {}).get("reasoning_content", ""),
            "calls": [
                (call.id, call.function.name, call.function.arguments)
                for call in choice.message.tool_calls or []
                if call.type == "function"
            ],
        }
        for choice in whole.choices
    ]
    assert expected == joined(openai.events(made), len(made.choices))


def joined(events: Iterator[Event], count: int) -> list[dict[str, Any]]:
    """Put a stream together as a client does."""
    texts = ("content", "refusal", "reasoning_content")
    found: list[dict[str, Any]] = [{"index": n, **dict.fromkeys(texts, ""), "calls": {}} for n in range(count)]
    for event in events:
        if event.data == b"[DONE]":
            break
        for choice in ChatCompletionChunk.model_validate_json(event.data, strict=True).choices:
            one = found[choice.index]
            delta = {**choice.delta.model_dump(), **(choice.delta.model_extra or {})}
            for name in texts:
                one[name] += delta.get(name) or ""
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                before = one["calls"].setdefault(call.index, (call.id, call.function.name, ""))
                one["calls"][call.index] = (*before[:2], before[2] + (call.function.arguments or ""))
            one["finish_reason"] = choice.finish_reason or one.get("finish_reason")
    return [{**one, "calls": list(one["calls"].values())} for one in found]


def kinds(made: Answer) -> list[str]:
    return [event.kind.name for event in openai.events(made)]


def test_a_stream_begins_with_the_role_alone_and_ends_with_done() -> None:
    first, *_, last = openai.events(answer())
    delta = msgspec.json.decode(first.data)["choices"][0]["delta"]
    assert (delta, last.data) == ({"role": "assistant", "content": "", "refusal": None}, b"[DONE]")


def test_events_say_what_they_are() -> None:
    made = answer(Choice(thoughts=("a",), text=("b",), calls=(Call("i", "f", ("{}",)),)), include_usage=True)
    assert ["AROUND", *["TOKEN"] * 4, "FINISH", "FINISH", "END"] == kinds(made)


def test_usage_comes_in_a_chunk_without_choices_and_is_null_before() -> None:
    made = answer(include_usage=True, usage=Usage(input=9, output=5, cached=3, written=2, reasoning=1))
    *before, last = [msgspec.json.decode(event.data) for event in openai.events(made) if event.data != b"[DONE]"]
    expected = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 1,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    assert (expected, [], {None}) == (last["usage"], last["choices"], {one["usage"] for one in before})


def test_usage_is_left_out_where_it_is_not_asked_for() -> None:
    assert [event for event in openai.events(answer()) if b'"usage"' in event.data] == []


def test_no_usage_is_no_usage_anywhere() -> None:
    made = answer(include_usage=True, usage=None)
    chunks = [msgspec.json.decode(event.data) for event in openai.events(made) if event.data != b"[DONE]"]
    assert (False, {None}) == ("usage" in msgspec.json.decode(openai.whole(made)), {one["usage"] for one in chunks})


def test_reasoning_may_be_reported_beside() -> None:
    made = answer(usage_beside=True, usage=Usage(input=9, output=5, reasoning=2))
    usage = msgspec.json.decode(openai.whole(made))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (9, 3, 14)


def test_reasoning_may_have_another_name() -> None:
    made = answer(Choice(thoughts=("hm",), text=("one",)), reasoning_field="reasoning")
    message = msgspec.json.decode(openai.whole(made))["choices"][0]["message"]
    deltas = [
        msgspec.json.decode(event.data)["choices"][0]["delta"]
        for event in openai.events(made)
        if event.kind is Kind.TOKEN
    ]
    assert (message["reasoning"], deltas) == ("hm", [{"reasoning": "hm"}, {"content": "one"}])


REFUSED: dict[str, tuple[Refusal, dict[str, Any]]] = {
    "400": (Refusal(400, "no"), {"type": "invalid_request_error", "code": None}),
    "401": (Refusal(401, "no"), {"type": "invalid_request_error", "code": "invalid_api_key"}),
    "404": (
        Refusal(404, "no", param="model"),
        {"type": "invalid_request_error", "code": "model_not_found", "param": "model"},
    ),
    "429": (Refusal(429, "no"), {"type": "requests", "code": "rate_limit_exceeded"}),
    "quota": (Refusal(429, "no", "insufficient_quota"), {"type": "insufficient_quota", "code": "insufficient_quota"}),
    "500": (Refusal(500, "no"), {"type": "server_error", "code": None}),
    "503": (Refusal(503, "no"), {"type": "server_error", "code": None}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_has_the_shape_of_its_status_alone_and_in_a_stream(name: str) -> None:
    refusal, fields = REFUSED[name]
    expected = {"error": {"message": "no", "param": None, **fields}}
    body, event = openai.refuse(refusal), openai.error_event(refusal)
    assert (expected, body, None) == (msgspec.json.decode(body), event.data, event.name)


def test_too_long_a_prompt_is_told_with_its_code() -> None:
    refusal = openai.too_long(5000)
    assert (refusal.status, refusal.code, "5000 tokens" in refusal.message) == (400, "context_length_exceeded", True)
