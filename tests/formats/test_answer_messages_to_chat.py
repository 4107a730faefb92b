"""A Messages provider's complete answer for a chat client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from openai.types.chat import ChatCompletion

from formats import answers, golden
from formats.answers import STAMP
from zurelay.formats import BadAnswer, Target
from zurelay.formats.answer_messages_to_chat import answer, response
from zurelay.formats.request_chat_to_messages import request
from zurelay.usage import Usage


def translated(content: list[Any], stop: str | None = "end_turn", **members: Any) -> Any:
    body = {"type": "message", "content": content, "stop_reason": stop, "usage": {}, **members}
    return json.loads(response(json.dumps(body).encode(), STAMP))


@pytest.mark.parametrize("case", golden.cases("answer_messages_to_chat", ".in.json"))
def test_golden_answers_come_out_byte_for_byte(case: str) -> None:
    golden.check(f"{case}.out.json", response(golden.read(f"{case}.in.json"), STAMP))


@settings(max_examples=60, deadline=None)
@given(answers.message())
def test_every_answer_is_one_that_the_sdk_knows(message: dict[str, Any]) -> None:
    found = answer(json.dumps(message).encode(), STAMP)

    completion = ChatCompletion.model_validate_json(found.body, strict=True)
    assert (completion.id, completion.created, completion.model) == ("chatcmpl-7", 1_700_000_000, "opus")
    assert completion.choices[0].finish_reason == found.finish_reason
    assert found.usage is not None
    assert completion.usage is not None
    assert found.usage.prompt + found.usage.completion == completion.usage.total_tokens


FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "stop",
    "from_the_future": "stop",
    None: "stop",
}


@pytest.mark.parametrize(("stop", "finish"), FINISHES.items())
def test_stop_reasons_become_finish_reasons(stop: str | None, finish: str) -> None:
    assert finish == translated([{"type": "text", "text": "a"}], stop)["choices"][0]["finish_reason"]


CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("stop", "finish"), {"tool_use": "tool_calls", None: "tool_calls", "max_tokens": "length"}.items()
)
def test_calls_finish_with_tool_calls_unless_they_were_cut(stop: str | None, finish: str) -> None:
    assert finish == translated([CALL], stop)["choices"][0]["finish_reason"]


CONTENTS = {
    "texts make one": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "end_turn", "ab"),
    "nothing said": ([], "end_turn", ""),
    "only a call": ([CALL], "tool_use", None),
    "only a refusal": ([], "refusal", None),
    "only a search": ([{"type": "server_tool_use", "id": 3, "text": []}], "end_turn", ""),
}


@pytest.mark.parametrize(("content", "stop", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_content_is_what_was_said(content: list[Any], stop: str, expected: str | None) -> None:
    assert expected == translated(content, stop)["choices"][0]["message"]["content"]


def test_thinking_that_is_not_signed_can_only_be_read() -> None:
    message = translated([{"type": "thinking", "thinking": "t", "signature": ""}])["choices"][0]["message"]

    assert message["reasoning_content"] == "t"
    assert "thinking_blocks" not in message


def test_a_refusal_without_a_reason_says_so() -> None:
    message = translated([], "refusal")["choices"][0]["message"]

    assert message["refusal"] == "The model declined to answer this request."


def test_usage_counts_what_the_cache_took() -> None:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 2455, "output_tokens": 9, "cache_creation_input_tokens": 10}

    found = answer(json.dumps({"content": [], "usage": usage}).encode(), STAMP)

    assert found.usage == Usage(prompt=2469, completion=9, cached=2455, cache_written=10)
    assert json.loads(found.body)["usage"]["prompt_tokens_details"] == {"cached_tokens": 2455, "cache_write_tokens": 10}


def test_no_usage_is_none() -> None:
    found = answer(b'{"content":[]}', STAMP)

    assert found.usage is None
    assert b"usage" not in found.body


def test_an_input_keeps_its_digits() -> None:
    body = b'{"content":[{"type":"tool_use","id":"t","name":"f","input":{"x": 1e400, "y":0.1000}}]}'

    call = json.loads(response(body, STAMP))["choices"][0]["message"]["tool_calls"][0]

    assert call["function"]["arguments"] == '{"x": 1e400, "y":0.1000}'


def test_thinking_survives_the_round_trip_through_a_client_that_dumps_messages() -> None:
    content = [
        {"type": "thinking", "thinking": "a", "signature": "sigA"},
        {"type": "text", "text": "One. "},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "Two."},
        {"type": "thinking", "thinking": "b", "signature": "sigB"},
        CALL,
    ]
    message = ChatCompletion.model_validate(translated(content, "tool_use")).choices[0].message.model_dump()
    turns = [{"role": "user", "content": "Hi"}, message, {"role": "tool", "tool_call_id": "t", "content": "ok"}]

    body = json.loads(request(json.dumps({"model": "opus", "messages": turns}).encode(), Target(model="m")))

    assert content == body["messages"][1]["content"]
    assert message["reasoning_content"] == "ab"


BAD = {
    "no JSON": b"<html>",
    "no object": b"[]",
    "no content": b'{"type":"message"}',
    "content that is a string": b'{"content":"hi"}',
    "a text that is a number": b'{"content":[{"type":"text","text":3}]}',
    "a call without an id": b'{"content":[{"type":"tool_use","name":"f","input":{}}]}',
    "a block that is a word": b'{"content":["a"]}',
    "not UTF-8": b'{"content":[{"type":"tool_use","id":"t","name":"f","input":{"a":"\xff"}}]}',
    "usage that is a list": b'{"content":[],"usage":[]}',
    "cut short": b'{"content":[{"type":"text","text":"a"}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_is_not_the_format_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        response(body, STAMP)


def test_an_error_with_status_200_is_a_bad_answer_that_says_what_the_provider_said() -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'

    with pytest.raises(BadAnswer, match=r"^an error: Overloaded$"):
        response(body, STAMP)
