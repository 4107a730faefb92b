"""An OpenAI-format provider's stream for a Messages client."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from anthropic._models import construct_type
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formats import answers, golden, sdk, streams
from formats.answers import STAMP
from zurelay.formats import BadAnswer, Failure, FailureKind
from zurelay.formats.answer_chat_to_messages import response
from zurelay.formats.stream_chat_to_messages import Stream
from zurelay.usage import Usage

EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
DONE = "[DONE]"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int | None, arguments: str | None = None, **members: Any) -> dict[str, Any]:
    function = {name: members.pop(name) for name in ("name",) if name in members}
    if arguments is not None:
        function["arguments"] = arguments
    piece = {**members, "function": function}
    return chunk(tool_calls=[piece if index is None else {"index": index, **piece}])


def accumulated(events: list[Any]) -> Message:
    """Put events together as the SDK does, and check each against its types and the order that the API keeps."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    opened: int | None = None
    for event in events:
        EVENT.validate_python(event)
        match event["type"]:
            case "content_block_start":
                assert opened is None
                opened = event["index"]
                assert opened == len(snapshot.content)
            case "content_block_delta" | "content_block_stop":
                assert opened == event["index"]
                opened = None if event["type"] == "content_block_stop" else opened
        typed: Any = construct_type(value=event, type_=RawMessageStreamEvent)
        snapshot = accumulate_event(event=typed, current_snapshot=snapshot, json_bufs=buffers)
    assert opened is None
    assert [events[0]["type"], events[-2]["type"], events[-1]["type"]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    found: Message = snapshot
    return found


@pytest.mark.parametrize("case", golden.cases("stream_chat_to_messages", ".in.sse"))
def test_golden_streams_come_out_byte_for_byte_however_they_are_cut(case: str) -> None:
    stream = golden.read(f"{case}.in.sse") + b"\n"

    for chunks in streams.cuts(stream):
        golden.check(f"{case}.out.sse", b"".join(streams.through(Stream(STAMP), chunks)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_stream_adds_up_to_the_whole_answer(data: st.DataObject) -> None:
    answer = data.draw(answers.completion())
    stamp = msgspec.structs.replace(STAMP, thinking=data.draw(st.booleans()))
    stream = Stream(stamp)

    found = accumulated(streams.data(streams.events(stream, data.draw(answers.chunks(answer)), names=False)))

    whole = Message.model_validate_json(response(json.dumps(answer).encode(), stamp))
    assert (stream.done, stream.failure) == (True, None)
    kept = {"id", "model", "role", "type", "stop_reason", "stop_sequence", "stop_details"}
    assert whole.model_dump(include=kept) == found.model_dump(include=kept)
    assert _content(whole) == _content(found)
    assert whole.usage.model_dump() == found.usage.model_dump()


def _content(message: Message) -> list[Any]:
    """The blocks; texts in a row as one, as a refusal streams behind the words."""
    found: list[Any] = []
    for block in message.content:
        value = block.model_dump(exclude_none=True, exclude={"parsed_output"})
        if found and value["type"] == found[-1]["type"] == "text":
            found[-1]["text"] += value["text"]
        else:
            found.append(value)
    return found


NO_TOKEN = {
    "a role": [chunk(role="assistant", content="")],
    "nulls": [chunk(role="assistant", content=None, refusal=None, tool_calls=None, reasoning_content=None)],
    "usage": [{"choices": [], "usage": {"prompt_tokens": 1}}],
    "no choices": [{"choices": None}],
    "another choice": [{"choices": [{"index": 1, "delta": {"content": "x"}}]}],
    "blank data": [" "],
    "an unknown object": [{"object": "from.the.future"}],
}


@pytest.mark.parametrize("events", NO_TOKEN.values(), ids=NO_TOKEN)
def test_nothing_comes_out_before_the_first_token(events: list[Any]) -> None:
    stream = Stream(STAMP)

    assert streams.events(stream, events, names=False) == []
    assert (stream.first_token, stream.failure) == (False, Failure(kind=FailureKind.CUT))


TOKENS = {
    "text": chunk(content="a"),
    "reasoning": chunk(reasoning_content="a"),
    "reasoning by its other name": chunk(reasoning="a"),
    "a refusal": chunk(refusal="a"),
    "a tool call": call(0, id="c", name="f"),
    "a finish": chunk("stop"),
    "content as parts": chunk(content=[{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}]),
}


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("event", TOKENS.values(), ids=TOKENS)
def test_the_first_token_brings_message_start(event: dict[str, Any], thinking: bool) -> None:
    stream = Stream(msgspec.structs.replace(STAMP, thinking=thinking))

    first, *_ = streams.data(stream.feed("", json.dumps(event).encode()))

    assert stream.first_token
    assert (first["type"], first["message"]["id"], first["message"]["model"]) == ("message_start", "msg_7", "opus")


CALLS: dict[str, tuple[list[Any], list[tuple[str, str, Any]]]] = {
    "bit by bit": (
        [call(0, "", id="a", name="f"), call(0, '{"x"'), call(0, ": 1}")],
        [("a", "f", {"x": 1})],
    ),
    "whole in one piece": ([call(0, '{"x": 1}', id="a", name="f")], [("a", "f", {"x": 1})]),
    "as an object": (
        [chunk(tool_calls=[{"function": {"name": "f", "arguments": {"x": 1}}}])],
        [("toolu_7_0", "f", {"x": 1})],
    ),
    "no arguments": ([call(0, "", id="a", name="f")], [("a", "f", {})]),
    "one after the other": (
        [call(0, "{}", id="a", name="f"), call(1, "", id="b", name="g"), call(1, '{"y": 2}')],
        [("a", "f", {}), ("b", "g", {"y": 2})],
    ),
    "mixed": (
        [
            *(
                call(0, "", id="a", name="f"),
                call(1, "", id="b", name="g"),
                call(1, '{"y"'),
                call(0, '{"x": '),
                call(1, ": 2}"),
            ),
            call(0, "1}"),
        ],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
    ),
    "all numbered 0": (
        [call(0, '{"x": 1}', id="a", name="f"), call(0, '{"y"', id="b", name="g"), call(0, ": 2}")],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
    ),
    "not numbered": (
        [call(None, "{}", id="a", name="f"), call(None, "{", id="b", name="g"), call(None, "}")],
        [("a", "f", {}), ("b", "g", {})],
    ),
    "the name comes later": ([call(0, id="a"), call(0, "{}", name="f")], [("a", "f", {})]),
    "the id stands in every piece": (
        [call(0, "{", id="a", name="f"), call(0, "}", id="a", name="f")],
        [("a", "f", {})],
    ),
}


@pytest.mark.parametrize(("events", "expected"), CALLS.values(), ids=CALLS)
def test_calls_are_put_together_exactly(events: list[Any], expected: list[Any]) -> None:
    found = accumulated(streams.data(streams.events(Stream(STAMP), [*events, chunk("tool_calls"), DONE], names=False)))

    assert expected == [(block.id, block.name, block.input) for block in found.content if block.type == "tool_use"]
    assert found.stop_reason == "tool_use"


def test_the_first_of_several_calls_is_streamed_as_it_comes() -> None:
    stream = Stream(STAMP)

    *_, head = streams.data(stream.feed("", json.dumps(call(0, '{"x', id="a", name="f")).encode()))
    (piece,) = streams.data(stream.feed("", json.dumps(call(0, '": 1}')).encode()))

    assert (head["delta"]["partial_json"], piece["delta"]["partial_json"]) == ('{"x', '": 1}')


def test_words_in_the_midst_of_a_call_come_behind_it() -> None:
    events = [
        call(0, '{"x"', id="a", name="f"),
        chunk(content="by the way"),
        call(0, ": 1}"),
        chunk("tool_calls"),
        DONE,
    ]

    found = accumulated(streams.data(streams.events(Stream(STAMP), events, names=False)))

    assert [block.type for block in found.content] == ["tool_use", "text"]
    assert found.content[0].model_dump()["input"] == {"x": 1}


def test_reasoning_is_signed_with_the_provider_s_name_of_the_model() -> None:
    events = [chunk(reasoning_content="hm"), chunk(reasoning_content="!"), chunk(content="a"), chunk("stop"), DONE]

    found = accumulated(streams.data(streams.events(Stream(STAMP), events, names=False)))

    assert found.content[0].model_dump() == {"type": "thinking", "thinking": "hm!", "signature": "zurelay:gpt-up"}


def test_usage_counts_cached_and_written_tokens_once() -> None:
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 200},
    }
    stream = Stream(STAMP)

    events = [chunk(content="a"), chunk("stop"), {"choices": [], "usage": usage}, DONE]
    found = accumulated(streams.data(streams.events(stream, events, names=False))).usage

    assert Usage(prompt=500, completion=9, cached=300, cache_written=200) == stream.usage
    counts = (found.input_tokens, found.cache_read_input_tokens, found.cache_creation_input_tokens, found.output_tokens)
    assert counts == (0, 300, 200, 9)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], (7, 10)),
        ([{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": -1}}], (3, 10)),
        ([{"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 4}}], (7, 4)),
        ([{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}], (3, 4)),
        (
            [
                {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
                {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
            ],
            (3, 4),
        ),
    ],
    ids=["nothing", "a negative completion", "no prompt", "all", "all, then zeros"],
)
def test_what_the_provider_does_not_tell_of_its_usage_is_estimated(
    told: list[dict[str, Any]], expected: tuple[int, int]
) -> None:
    stream = Stream(STAMP, lambda: 7)
    events = [chunk(content="x" * 40), chunk("stop"), *told, DONE]
    found = accumulated(streams.data(streams.events(stream, events, names=False))).usage
    assert expected == (found.input_tokens, found.output_tokens)


def test_partial_usage_is_known_when_the_stream_breaks() -> None:
    stream = Stream(STAMP)

    streams.events(stream, [{**chunk(content="a"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}}], names=False)

    assert Usage(prompt=3, completion=1) == stream.usage


SAID = [chunk(content="Hi")]
ENDS = {
    "only [DONE] is missing": ([*SAID, chunk("stop")], None, True),
    "no finish, but [DONE]": ([*SAID, DONE], None, True),
    "cut in the words": (SAID, FailureKind.CUT, False),
    "ended before a word": ([DONE], FailureKind.EMPTY, False),
    "never begun": ([], FailureKind.CUT, False),
}


@pytest.mark.parametrize(("events", "failure", "done"), ENDS.values(), ids=ENDS)
def test_a_stream_that_is_cut_short_is_a_failure(events: list[Any], failure: FailureKind | None, done: bool) -> None:
    stream = Stream(STAMP)

    found = streams.data(streams.events(stream, events, names=False))

    assert (failure, done) == (stream.failure and stream.failure.kind, stream.done)
    assert done == bool(found and found[-1]["type"] == "message_stop")
    assert not done or accumulated(found).content[0].model_dump(include={"text"}) == {"text": "Hi"}


ERRORS = {
    "an error chunk": ("", {"error": {"message": "Rate limit", "code": "rate_limit", "type": "x"}}, "rate_limit"),
    "an error event": ("error", {"message": "Rate limit"}, None),
    "an error of a type": (
        "",
        {"error": {"message": "Rate limit", "type": "server_error", "code": 429}},
        "server_error",
    ),
}


@pytest.mark.parametrize(("name", "value", "code"), ERRORS.values(), ids=ERRORS)
def test_an_error_ends_all(name: str, value: Any, code: str | None) -> None:
    stream = Stream(STAMP)
    stream.feed("", json.dumps(SAID[0]).encode())

    assert stream.feed(name, json.dumps(value).encode()) == []
    assert stream.feed("", b"[DONE]") == stream.finish() == []
    assert (Failure(kind=FailureKind.ERROR, message="Rate limit", code=code), False) == (stream.failure, stream.done)


BAD = {
    "no JSON": b"{",
    "no object": b"[1]",
    "not UTF-8": b'{"choices":[{"delta":{"content":"\xff"}}]}',
    "content that is a number": b'{"choices":[{"delta":{"content":3}}]}',
    "choices that are an object": b'{"choices":{"delta":{}}}',
    "arguments that are a number": b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":3}}]}}]}',
    "a call that never gets a name": b'{"choices":[{"delta":{"tool_calls":[{"id":"a"}]},"finish_reason":"stop"}]}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_not_the_format_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        Stream(STAMP).feed("", data)


KEYS = st.sampled_from(
    ["choices", "delta", "index", "content", "tool_calls", "function", "arguments", "usage", "finish_reason"]
)
GARBAGE = st.recursive(
    sdk.JSON, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner), max_leaves=12
)


@settings(max_examples=60, deadline=None)
@given(st.lists(GARBAGE, max_size=4))
def test_garbage_is_at_worst_a_bad_answer(events: list[Any]) -> None:
    stream = Stream(STAMP)

    try:
        streams.events(stream, events, names=False)
        bad = False
    except BadAnswer:
        bad = True

    assert bad or stream.done or stream.failure is not None
