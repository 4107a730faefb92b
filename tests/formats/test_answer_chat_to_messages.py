"""An OpenAI-format provider's complete answer for a Messages client."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from anthropic.types import Message
from hypothesis import given, settings

from formats import answers, golden
from formats.answers import STAMP
from zurelay.formats import BadAnswer, Stamp, Target
from zurelay.formats.answer_chat_to_messages import answer, response
from zurelay.formats.request_messages_to_chat import request
from zurelay.usage import Usage


def translated(finish: str | None = "stop", stamp: Stamp = STAMP, **said: Any) -> Any:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", **said}, "finish_reason": finish}]}
    return json.loads(response(json.dumps(body).encode(), stamp))


@pytest.mark.parametrize("case", golden.cases("answer_chat_to_messages", ".in.json"))
def test_golden_answers_come_out_byte_for_byte(case: str) -> None:
    golden.check(f"{case}.out.json", response(golden.read(f"{case}.in.json"), STAMP))


@settings(max_examples=60, deadline=None)
@given(answers.completion())
def test_every_answer_is_one_that_the_sdk_knows(completion: dict[str, Any]) -> None:
    found = answer(json.dumps(completion).encode(), STAMP)

    message = Message.model_validate_json(found.body, strict=True)
    assert ("msg_7", "opus", found.finish_reason) == (message.id, message.model, message.stop_reason)
    usage = message.usage
    parts = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    assert completion["usage"]["prompt_tokens"] == parts


STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "end_turn",
    "content_filter": "refusal",
    "from_the_future": "end_turn",
    None: "end_turn",
}


@pytest.mark.parametrize(("finish", "stop"), STOPS.items())
def test_finish_reasons_become_stop_reasons(finish: str | None, stop: str) -> None:
    assert stop == translated(finish, content="a")["stop_reason"]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("finish", "stop"), {"tool_calls": "tool_use", "stop": "tool_use", "length": "max_tokens"}.items()
)
def test_calls_stop_for_tool_use_unless_they_were_cut(finish: str, stop: str) -> None:
    assert stop == translated(finish, tool_calls=[CALL])["stop_reason"]


ARGUMENTS = {
    "an object keeps its digits": ('{"a": 1.00, "b": 1e400}', b'"input":{"a": 1.00, "b": 1e400}'),
    "none": ("", b'"input":{}'),
    "null": (None, b'"input":{}'),
    "no JSON": ('{"a', b'"input":{"invalid_arguments":"{\\"a"}'),
    "no object": ("[1]", b'"input":{"invalid_arguments":"[1]"}'),
    "an object where a string should be": ({"a": 1}, b'"input":{"a":1}'),
}


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_become_an_input(arguments: Any, expected: bytes) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    assert expected in response(json.dumps(body).encode(), STAMP)


CONTENTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "words": ({"content": "a"}, ["text"]),
    "nothing": ({"content": None}, []),
    "empty": ({"content": ""}, []),
    "parts": ({"content": [{"type": "text", "text": "a"}, {"type": "x", "text": 3}]}, ["text"]),
    "reasoning, by either name": ({"content": "a", "reasoning": "r"}, ["thinking", "text"]),
    "reasoning that is no text": ({"content": "a", "reasoning": {"x": 1}}, ["text"]),
    "a refusal": ({"content": None, "refusal": "No."}, ["text"]),
    "a call without an id": ({"tool_calls": [{"function": {"name": "f"}}]}, ["tool_use"]),
}


@pytest.mark.parametrize(("said", "kinds"), CONTENTS.values(), ids=CONTENTS)
def test_what_was_said_becomes_blocks(said: dict[str, Any], kinds: list[str]) -> None:
    assert kinds == [block["type"] for block in translated(**said)["content"]]


def test_a_refusal_is_text_and_a_stop_reason_with_details() -> None:
    found = translated(refusal="No.")

    assert (
        found["content"],
        found["stop_reason"],
        found["stop_details"]["explanation"],
    ) == ([{"type": "text", "text": "No."}], "refusal", "No.")


def test_a_client_that_wants_no_thinking_gets_none() -> None:
    stamp = msgspec.structs.replace(STAMP, thinking=False)

    assert [b["type"] for b in translated(stamp=stamp, content="a", reasoning_content="r")["content"]] == ["text"]


def test_reasoning_finds_back_to_the_same_model_only() -> None:
    content = translated("tool_calls", content="a", reasoning_content="r", tool_calls=[CALL])["content"]
    result = [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]
    turns = [("user", "Hi"), ("assistant", content), ("user", result)]
    body = {"max_tokens": 9, "messages": [{"role": role, "content": said} for role, said in turns]}

    def sent_back(model: str) -> Any:
        return json.loads(request(json.dumps(body).encode(), Target(model=model)))["messages"][1]

    same, other = sent_back("gpt-up"), sent_back("gpt-other")
    assert same == {"role": "assistant", "content": "a", "reasoning_content": "r", "tool_calls": [CALL]}
    assert other == {"role": "assistant", "content": "a", "tool_calls": [CALL]}


def test_usage_counts_cached_and_written_tokens_once() -> None:
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 200},
    }

    found = answer(json.dumps({"choices": [{"message": {"content": "a"}}], "usage": usage}).encode(), STAMP)

    counts = {"input_tokens": 0, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 300, "output_tokens": 9}
    assert (counts, Usage(prompt=500, completion=9, cached=300, cache_written=200)) == (
        json.loads(found.body)["usage"],
        found.usage,
    )


def test_no_usage_is_none_and_zeros_for_the_client() -> None:
    found = answer(b'{"choices":[{"message":{"content":"a"}}]}', STAMP)

    assert found.usage is None
    assert json.loads(found.body)["usage"]["input_tokens"] == 0


BAD = {
    "no JSON": b"<html>",
    "no choices": b'{"object":"chat.completion"}',
    "empty choices": b'{"choices":[]}',
    "no message": b'{"choices":[{"finish_reason":"stop"}]}',
    "content that is a number": b'{"choices":[{"message":{"content":3}}]}',
    "a call without a name": b'{"choices":[{"message":{"tool_calls":[{"id":"c"}]}}]}',
    "not UTF-8": b'{"choices":[{"message":{"content":"\xff"}}]}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_is_not_the_format_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        response(body, STAMP)


def test_an_error_with_status_200_is_a_bad_answer_that_says_what_the_provider_said() -> None:
    with pytest.raises(BadAnswer, match=r"^an error: No image here$"):
        response(b'{"error":{"message":"No image here","code":400}}', STAMP)
