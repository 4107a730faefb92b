"""A Messages provider's stream for a chat client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk

from formats import answers, golden, sdk, streams
from formats.answers import STAMP
from zurelay.formats import BadAnswer, Failure, FailureKind
from zurelay.formats.answer_messages_to_chat import response
from zurelay.formats.stream_messages_to_chat import Stream
from zurelay.usage import Usage

START = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 1}},
}
STOP = {"type": "message_stop"}


def block(kind: str, index: int = 0, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def delta(kind: str, index: int = 0, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def ended(reason: str | None) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}


def closed(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


TEXT = [START, block("text", text=""), delta("text_delta", text="Hi"), closed()]


@pytest.mark.parametrize("case", golden.cases("stream_messages_to_chat", ".in.sse"))
def test_golden_streams_come_out_byte_for_byte_however_they_are_cut(case: str) -> None:
    stream = golden.read(f"{case}.in.sse") + b"\n"

    for chunks in streams.cuts(stream):
        golden.check(f"{case}.out.sse", b"".join(streams.through(Stream(STAMP, include_usage=True), chunks)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_stream_adds_up_to_the_whole_answer(data: st.DataObject) -> None:
    answer = data.draw(answers.message())
    events = data.draw(answers.message_events(answer))
    stream = Stream(STAMP, include_usage=True)

    *chunks, end = streams.data(streams.events(stream, events, names=True))

    assert (end, stream.done, stream.failure) == ("[DONE]", True, None)
    state = ChatCompletionStreamState()
    for chunk in chunks:
        assert chunk.get("usage") is None or chunk["choices"] == []
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True))
    found = state.current_completion_snapshot.model_dump(mode="json")
    whole = json.loads(response(json.dumps(answer, ensure_ascii=False).encode(), STAMP))
    assert _plain(whole) == _plain(found)
    assert found["usage"] == CompletionUsage.model_validate(whole["usage"]).model_dump()


def _plain(completion: dict[str, Any]) -> dict[str, Any]:
    """What whole and streamed answers share, arguments as values and absent texts as empty."""
    choice = completion["choices"][0]
    message = choice["message"]
    calls = [
        (call["id"], call["type"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    thoughts = [{k: v for k, v in thought.items() if k != "index"} for thought in message.get("thinking_blocks") or ()]
    texts = [message.get(name) or "" for name in ("content", "refusal", "reasoning_content")]
    shared = [completion[name] for name in ("id", "created", "model")]
    return {"texts": texts, "calls": calls, "thoughts": thoughts, "finish": choice["finish_reason"], "shared": shared}


def test_the_sdk_gives_thinking_blocks_back_with_the_dumped_message() -> None:
    state = ChatCompletionStreamState()
    events = [
        *(START, block("thinking", thinking="", signature=""), delta("thinking_delta", thinking="hm")),
        *(delta("signature_delta", signature="sig=="), closed(), block("text", 1, text="")),
        *(delta("text_delta", 1, text="Hi"), closed(1), ended("end_turn"), STOP),
    ]
    for chunk in streams.data(streams.events(Stream(STAMP), events, names=True))[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))

    message = state.get_final_completion().choices[0].message.model_dump()

    thought = {"index": 0, "type": "thinking", "thinking": "hm", "signature": "sig=="}
    assert ([thought], "hm", "Hi") == (message["thinking_blocks"], message["reasoning_content"], message["content"])


NO_TOKEN = {
    "the start": [START],
    "a ping": [START, {"type": "ping"}],
    "an empty block": [START, block("text", text="")],
    "an empty delta": [START, block("text", text=""), delta("text_delta", text="")],
    "thinking without words": [
        *(START, block("thinking", thinking="", signature="")),
        *(delta("signature_delta", signature="s"), closed()),
    ],
    "an unknown block": [
        START,
        block("server_tool_use", id="s", input={}),
        delta("input_json_delta", partial_json="{}"),
    ],
    "an unknown event": [START, {"type": "from_the_future"}],
}


@pytest.mark.parametrize("events", NO_TOKEN.values(), ids=NO_TOKEN)
def test_nothing_comes_out_before_the_first_token(events: list[Any]) -> None:
    stream = Stream(STAMP)

    assert streams.events(stream, events, names=True) == []
    assert (stream.first_token, stream.failure) == (False, Failure(kind=FailureKind.CUT))


TOKENS = {
    "text": delta("text_delta", text="a"),
    "reasoning": delta("thinking_delta", thinking="a"),
    "a tool call": block("tool_use", id="t", name="f", input={}),
    "text in the block's start": block("text", text="a"),
    "reasoning in the block's start": block("thinking", thinking="a", signature=""),
    "a refusal": ended("refusal"),
    "a finish": ended("end_turn"),
}


@pytest.mark.parametrize("event", TOKENS.values(), ids=TOKENS)
def test_the_first_token_brings_the_role_before_it(event: dict[str, Any]) -> None:
    stream = Stream(STAMP)

    assert stream.feed("message_start", json.dumps(START).encode()) == []
    first, *rest = streams.data(stream.feed(event["type"], json.dumps(event).encode()))

    assert stream.first_token
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert rest


def test_thinking_says_behind_how_much_it_stood() -> None:
    events = [
        *(START, block("text", text="ab"), delta("text_delta", text="c"), closed()),
        *(block("tool_use", 1, id="t", name="f", input={}), closed(1)),
        *(block("redacted_thinking", 2, data="d"), closed(2), ended("tool_use"), STOP),
    ]

    *chunks, _ = streams.data(streams.events(Stream(STAMP), events, names=True))

    (thought,) = [each for chunk in chunks for each in chunk["choices"][0]["delta"].get("thinking_blocks", ())]
    assert thought == {"index": 0, "type": "redacted_thinking", "data": "d", "at": [3, 1]}


ARGUMENTS = {
    "bit by bit": ({}, ['{"a":', " 1.0", "0}"], '{"a": 1.00}'),
    "whole in the start": ({"a": 1}, [], '{"a": 1}'),
    "none": ({}, [], "{}"),
    "empty pieces": ({}, ["", ""], "{}"),
    "no JSON": ({}, ['{"a'], '{"a'),
}


@pytest.mark.parametrize(("given_input", "pieces", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_put_together_exactly(given_input: Any, pieces: list[str], expected: str) -> None:
    deltas = [delta("input_json_delta", partial_json=piece) for piece in pieces]
    events = [START, block("tool_use", id="t", name="f", input=given_input), *deltas, closed(), ended("tool_use"), STOP]

    *chunks, _ = streams.data(streams.events(Stream(STAMP), events, names=True))

    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert expected == "".join(call["function"]["arguments"] for call in calls)
    assert {0} == {call["index"] for call in calls}


def test_usage_is_what_was_said_last_and_counts_the_cache() -> None:
    stream = Stream(STAMP, include_usage=True)

    streams.events(stream, TEXT, names=True)
    assert Usage(prompt=95, cached=90, estimated=True) == stream.usage  # how much it wrote is told at the end

    stream = Stream(STAMP, include_usage=True)
    *_, last, done = streams.data(streams.events(stream, [*TEXT, ended("end_turn"), STOP], names=True))
    assert (
        last["choices"],
        *(last["usage"][f"{n}_tokens"] for n in ("prompt", "completion", "total")),
    ) == ([], 95, 7, 102)
    assert done == "[DONE]"


def test_a_client_that_did_not_ask_gets_no_usage() -> None:
    found = b"".join(streams.events(Stream(STAMP), [*TEXT, ended("end_turn"), STOP], names=True))

    assert b"usage" not in found


def test_a_refusal_says_why_and_is_filtered_content() -> None:
    end = ended("refusal")
    end["delta"]["stop_details"] = {"type": "refusal", "category": "bio", "explanation": "Not that."}

    *_, refusal, finish, _ = streams.data(streams.events(Stream(STAMP), [*TEXT, end, STOP], names=True))

    assert refusal["choices"][0]["delta"] == {"refusal": "Not that."}
    assert finish["choices"][0]["finish_reason"] == "content_filter"


ENDS = {
    "only message_stop is missing": ([*TEXT, ended("end_turn")], None, True),
    "no stop reason, but the end": ([*TEXT, STOP], None, True),
    "cut in the words": (TEXT, FailureKind.CUT, False),
    "ended before a word": ([START, STOP], FailureKind.EMPTY, False),
    "never begun": ([], FailureKind.CUT, False),
}


@pytest.mark.parametrize(("events", "failure", "done"), ENDS.values(), ids=ENDS)
def test_a_stream_that_is_cut_short_is_a_failure(events: list[Any], failure: FailureKind | None, done: bool) -> None:
    stream = Stream(STAMP)

    found = streams.events(stream, events, names=True)

    assert (failure, done) == (stream.failure and stream.failure.kind, stream.done)
    assert done == (b"data: [DONE]\n\n" in found)


@pytest.mark.parametrize("before", [[START], TEXT], ids=["before content", "after content"])
def test_an_error_event_ends_all(before: list[Any]) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = Stream(STAMP)

    said = streams.events(Stream(STAMP), before, names=True)
    found = streams.events(stream, [*before, error, *TEXT, STOP], names=True)

    assert said == found
    assert Failure(kind=FailureKind.ERROR, message="Overloaded", code="overloaded_error") == stream.failure
    assert not stream.done


BAD = {
    "no JSON": b"{",
    "no object": b"[1]",
    "not UTF-8": b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"\xff"}}',
    "a text that is a number": b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":3}}',
    "an index that is a word": b'{"type":"content_block_stop","index":"a"}',
    "a delta that is a word": b'{"type":"content_block_delta","delta":"a"}',
    "no delta": b'{"type":"content_block_delta"}',
    "a call without a name": b'{"type":"content_block_start","content_block":{"type":"tool_use","id":"t"}}',
    "a block whose text is a list": b'{"type":"content_block_start","content_block":{"type":"text","text":[]}}',
    "arguments without a call": (
        b'{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}'
    ),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_not_the_format_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        Stream(STAMP).feed("", data)


KNOWN = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "error",
    "x",
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KNOWN),
            sdk.JSON
            | st.dictionaries(
                st.sampled_from(["type", "index", "delta", "content_block", "message", "usage", "error"]),
                sdk.JSON | answers.BLOCKS,
            ),
        ),
        max_size=5,
    )
)
def test_garbage_is_at_worst_a_bad_answer(events: list[tuple[str, Any]]) -> None:
    stream = Stream(STAMP)

    for name, value in events:
        try:
            stream.feed(name, json.dumps(value).encode())
        except BadAnswer:
            break
    stream.finish()


def test_an_event_without_a_type_goes_by_its_name() -> None:
    stream = Stream(STAMP)

    (_, chunk) = streams.data(
        stream.feed("content_block_delta", b'{"index":0,"delta":{"type":"text_delta","text":"a"}}')
    )

    assert chunk["choices"][0]["delta"] == {"content": "a"}
