"""A provider's chat stream, made the client's: event by event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import chunk, event
from zurelay import sse
from zurelay.chat_stream import ChatStream, StreamError
from zurelay.sse import DONE, Decoder, Event
from zurelay.usage import Usage

END = event(b"[DONE]")
USED = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def stream(*, ask: bool = False, choices: int = 1, model: str = "cat") -> ChatStream:
    return ChatStream(model, ask_usage=ask, choices=choices)


def events(*raw: bytes) -> list[Event]:
    decoder = Decoder(1 << 20)
    found = decoder.feed(b"".join(raw))
    last = decoder.flush()
    return found if last is None else [*found, last]


def fed(made: ChatStream, *raw: bytes) -> bytes:
    return b"".join(made.feed(each) for each in events(*raw))


def decoded(raw: bytes) -> list[Any]:
    """The JSON of every event, the end as it stands."""
    return [each.data if each.data == b"[DONE]" else json.loads(each.data or b"null") for each in events(raw)]


def seven() -> int:
    return 7


NAMED = b'"model":"gpt-x"'
MINE = b'"model":"cat"'
CHUNK = chunk("Hi")
SHAPES = {
    "OpenAI": event(CHUNK),
    "no space": b"data:" + CHUNK + b"\n\n",
    "CR LF": b"data: " + CHUNK + b"\r\n\r\n",
    "CR": b"data: " + CHUNK + b"\r\r",
    "spaces behind": b"data: " + CHUNK + b"  \n\n",
    "an event's name and id": b"event: message\nid: 7\ndata: " + CHUNK + b"\n\n",
    "a comment within": b": hm\ndata: " + CHUNK + b"\n\n",
    "two data lines": b"data: " + CHUNK.replace(b',"model"', b',\ndata: "model"') + b"\n\n",
    "spaces around": event(CHUNK.replace(b":", b" : ").replace(b",", b" , ")),
    "the model last": event(b'{"choices":[{"index":0,"delta":{"content":"Hi"}}],"model":"gpt-x"}'),
    "digits": event(CHUNK[:-1] + b',"a":1e400,"b":0.1000,"c":12345678901234567890123}'),
    "escapes": event(CHUNK.replace(b"Hi", b"\\u00e9\\/\\ud83d\\ude00")),
    "half a surrogate pair": event(CHUNK.replace(b"Hi", b"\\ud83d")),
    "any writing": event(chunk("안녕 ✅ \u2028\u0085 \U0001f469\u200d\U0001f4bb")),
    "the model's name in the text": event(chunk('say "model":"gpt-x" now')),
    "the model's name in a tool's arguments": event(
        chunk(delta={"tool_calls": [{"index": 0, "function": {"arguments": '{"model":"gpt-x"}'}}]})
    ),
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in SHAPES.items()])
def test_the_model_changes_and_every_other_byte_stays(raw: bytes) -> None:
    made = stream()
    where = raw.replace(NAMED, MINE).replace(b'"model" : "gpt-x"', b'"model" : "cat"')
    for _ in range(3):
        assert where == fed(made, raw)


def test_a_model_of_the_same_name_changes_nothing() -> None:
    made = stream(model="gpt-x")
    for raw in SHAPES.values():
        assert raw == fed(made, raw)


INNER = chunk("Hi").replace(b'"content"', NAMED + b',"content"')
CHANGING = {
    "another name later": (
        [event(chunk("a", model="")), event(chunk("b", model="x")), event(chunk("c", model="x"))],
        ["cat", "cat", "cat"],
    ),
    "an escaped name": ([b'data: {"model":"gpt\\u002dx","choices":[]}\n\n'] * 2, ["cat", "cat"]),
    "an escaped key": ([b'data: {"\\u006dodel":"gpt-x","choices":[]}\n\n'] * 2, ["cat", "cat"]),
    "a name of null": ([event(chunk("a", model=None))] * 2, ["cat", "cat"]),
    "a name that is a number": ([event(chunk("a", model=5))] * 2, ["cat", "cat"]),
    "no name": ([event(b'{"choices":[]}')] * 2, ["cat", "cat"]),
    "a name that comes and goes": ([event(chunk("a")), event(b'{"choices":[]}'), event(chunk("b"))], ["cat"] * 3),
    "a name twice": ([b'data: {"model":"gpt-x","choices":[],"model":"gpt-x"}\n\n'] * 2, ["cat", "cat"]),
    "a quote in the name": ([event(chunk("a", model='g"\\x'))] * 2, ["cat", "cat"]),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in CHANGING.items()])
def test_the_model_is_the_catalogs_in_every_chunk(raw: list[bytes], expected: list[str]) -> None:
    made = stream()
    assert expected == [decoded(fed(made, each))[0]["model"] for each in raw]


@pytest.mark.parametrize("first", [CHUNK, INNER])
def test_a_model_within_the_delta_stays(first: bytes) -> None:
    made = stream()
    for data in (first, INNER, CHUNK, INNER):
        inner = json.loads(data)["choices"]
        assert inner == decoded(fed(made, event(data)))[0]["choices"]


def test_a_name_within_is_not_taken_for_another_chunks_own() -> None:
    made = stream()
    fed(made, event(CHUNK))
    data = json.loads(INNER) | {"model": "other"}
    assert [data | {"model": "cat"}] == decoded(fed(made, event(json.dumps(data, separators=(",", ":")).encode())))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["gpt-x", '"model":"gpt-x"', "é"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["model", "x"]), inner, max_size=2),
    max_leaves=5,
)
DELTAS = st.dictionaries(st.sampled_from(["content", "model", "reasoning_content", "tool_calls"]), JSON, max_size=3)
CHUNKS = st.builds(
    lambda fields, delta, order: dict(
        sorted({**fields, "choices": [{"index": 0, "delta": delta}]}.items(), reverse=order)
    ),
    st.dictionaries(st.sampled_from(["id", "model", "service_tier"]), JSON, max_size=3),
    DELTAS,
    st.booleans(),
)


@given(st.lists(st.tuples(CHUNKS, st.sampled_from([(",", ":"), (", ", ": ")])), min_size=1, max_size=6))
def test_the_model_is_replaced_and_nothing_else(chunks: list[tuple[dict[str, Any], tuple[str, str]]]) -> None:
    made = stream()
    for value, separators in chunks:
        raw = event(json.dumps(value, separators=separators).encode())
        assert [value | {"model": "cat"}] == decoded(fed(made, raw))


REASONING = {
    "reasoning": ({"reasoning": "hm"}, {"reasoning_content": "hm"}),
    "reasoning beside content": ({"reasoning": "hm", "content": ""}, {"reasoning_content": "hm", "content": ""}),
    "reasoning_content": ({"reasoning_content": "hm"}, {"reasoning_content": "hm"}),
    "both": ({"reasoning": "a", "reasoning_content": "a"}, {"reasoning": "a", "reasoning_content": "a"}),
    "reasoning_content of null beside": ({"reasoning_content": None, "reasoning": "a"}, {"reasoning_content": "a"}),
    "reasoning of null": ({"reasoning": None, "content": "a"}, {"reasoning": None, "content": "a"}),
    "the word in a text": ({"content": '"reasoning"'}, {"content": '"reasoning"'}),
}


@pytest.mark.parametrize(("sent", "seen"), [pytest.param(*row, id=name) for name, row in REASONING.items()])
def test_reasoning_is_reasoning_content(sent: dict[str, Any], seen: dict[str, Any]) -> None:
    made = fed(stream(), event(chunk(delta=sent)))
    assert seen == decoded(made)[0]["choices"][0]["delta"]
    assert decoded(made)[0]["model"] == "cat"


DROPPED = {
    "a comment": b": OPENROUTER PROCESSING\n\n",
    "blank lines": b"\n\n",
    "empty data": b"data:\n\n",
    "a field that nobody knows": b"retry: 5\n\n",
    "a ping": b"event: ping\ndata: {}\n\n",
    "an object that is no chunk": b'data: {"type":"keepalive"}\n\n',
    "choices of null": b'data: {"choices":null}\n\n',
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in DROPPED.items()])
def test_what_is_no_chunk_is_dropped(raw: bytes) -> None:
    assert event(chunk("Hi", model="cat")) == fed(stream(), raw, event(CHUNK), raw)


ERRORS = {
    "an error": (event(b'{"error":{"message":"overloaded","code":529}}'), "overloaded"),
    "an error that is text": (event(b'{"error":"overloaded"}'), "overloaded"),
    "an error by the event's name": (b'event: error\ndata: {"message":"overloaded"}\n\n', "overloaded"),
    "an error by the event's name alone": (b"event: error\ndata: x\n\n", ""),
    "an error beside choices": (
        event(b'{"error":{"message":"overloaded"},"choices":[{"delta":{},"finish_reason":"error"}]}'),
        "overloaded",
    ),
    "no JSON": (event(b"hello"), ""),
    "cut short": (event(CHUNK[:-5]), ""),
    "no UTF-8": (event(chunk("x").replace(b'"x"', b'"\xff"')), ""),
    "nested too deeply": (event(b'{"choices":[],"x":' + b"[" * 600 + b"]" * 600 + b"}"), ""),
}


@pytest.mark.parametrize(("raw", "says"), [pytest.param(*row, id=name) for name, row in ERRORS.items()])
def test_an_error_within_the_stream(raw: bytes, says: str) -> None:
    made = stream()
    fed(made, event(CHUNK))
    with pytest.raises(StreamError) as caught:
        fed(made, raw)
    assert says == caught.value.message
    assert not made.done


@pytest.mark.parametrize("raw", [event(b"[DONE]"), b"data:[DONE]\n\n", b"data: [DONE] \r\n\r\n", b"data: [DONE]"])
def test_the_end_is_the_end(raw: bytes) -> None:
    made = stream()
    assert DONE == fed(made, raw)
    assert made.done
    assert b"" == fed(made, event(CHUNK), END, b": hm\n\n", event(b"hello"))
    assert made.end() == b""


def finishes(*indexes: int) -> list[bytes]:
    return [event(chunk(index=index, finish="stop")) for index in indexes]


CUT: dict[str, tuple[int, list[bytes], bytes | None]] = {
    "nothing said": (1, [], None),
    "no finish": (1, [event(CHUNK)], None),
    "an empty finish": (1, [event(chunk("Hi", finish=""))], None),
    "a finish": (1, finishes(0), DONE),
    "two choices asked, one finished": (2, finishes(0), None),
    "two choices asked, both finished": (2, finishes(0, 1), DONE),
    "two choices asked, one of two open": (2, [event(chunk("b", index=1)), *finishes(0)], None),
    "one choice asked, two opened": (1, [event(chunk("b", index=1)), *finishes(0)], None),
    "a choice that finishes twice": (2, finishes(0, 0), None),
    "a finish, then usage": (1, [*finishes(0), event(json.dumps({"choices": [], "usage": USED}).encode())], DONE),
}


@pytest.mark.parametrize(("choices", "raw", "expected"), [pytest.param(*row, id=name) for name, row in CUT.items()])
def test_a_stream_without_its_end_is_whole_when_every_choice_finished(
    choices: int, raw: list[bytes], expected: bytes | None
) -> None:
    made = stream(choices=choices)
    fed(made, *raw)
    assert expected == made.end()
    assert made.done is (expected is not None)


def test_each_choice_ends_for_one_reason() -> None:
    made = stream(choices=2)
    fed(made, *finishes(0, 0), event(chunk(index=1, finish="length")))
    assert ["stop", "length"] == made.finish_reasons


LAST = event(json.dumps({"id": "1", "choices": [], "model": "gpt-x", "usage": USED, "x": 1}).encode())


def test_the_usage_chunk_is_kept_back() -> None:
    made = stream()
    assert b"" == fed(made, LAST)
    assert Usage(prompt=9, completion=2) == made.usage


USAGE_CHUNKS = {
    "the provider's own": ([event(CHUNK), LAST], {"id": "1", "choices": [], "model": "cat", "usage": USED, "x": 1}),
    "the provider's, with reasoning beside": (
        [
            LAST.replace(
                b'"total_tokens": 11', b'"total_tokens": 16, "completion_tokens_details": {"reasoning_tokens": 5}'
            )
        ],
        {
            "id": "1",
            "choices": [],
            "model": "cat",
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 7,
                "total_tokens": 16,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            "x": 1,
        },
    ),
    "usage in the last chunk with choices": (
        [event(chunk("Hi", finish="stop", usage=USED))],
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "cat",
            "choices": [],
            "usage": USED,
        },
    ),
    "usage without choices of any kind": (
        [event(CHUNK), event(json.dumps({"usage": USED}).encode())],
        {"usage": USED, "choices": [], "model": "cat"},
    ),
    "usage in each chunk: the last": (
        [event(chunk("a", usage={**USED, "completion_tokens": 1})), event(chunk("b", usage=USED))],
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "cat",
            "choices": [],
            "usage": USED,
        },
    ),
    "no usage: an estimate": (
        [event(chunk("12345678"))],
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "cat",
            "choices": [],
            "usage": {
                "prompt_tokens": 7,
                "completion_tokens": 2,
                "total_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        },
    ),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in USAGE_CHUNKS.items()])
def test_the_usage_chunk_has_no_choices(raw: list[bytes], expected: dict[str, Any]) -> None:
    made = stream(ask=True)
    fed(made, *raw)
    assert [expected] == decoded(made.usage_chunk(seven))


def test_a_usage_chunk_counts_what_came_after_the_report() -> None:
    made = stream(ask=True)
    fed(made, event(chunk("1234", usage=USED)), event(chunk("12345678")))
    assert decoded(made.usage_chunk(seven))[0]["usage"]["completion_tokens"] == 4


def test_zeros_at_the_end_do_not_undo_what_was_reported_before() -> None:
    made = stream(ask=True)
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    fed(made, event(chunk("1234", usage=USED)), event(chunk(choices=[], usage=zeros)))
    shown = decoded(made.usage_chunk(seven))[0]["usage"]
    assert USED["completion_tokens"] == shown["completion_tokens"]
    assert made.usage is not None
    assert USED["prompt_tokens"] == made.usage.prompt


def test_a_stream_of_nothing_has_a_usage_chunk_too() -> None:
    assert [] == decoded(stream().usage_chunk(seven))[0]["choices"]


def test_usage_is_no_part_of_a_chunk_with_choices() -> None:
    made = fed(stream(ask=True), event(chunk("Hi", usage=USED)))
    assert [json.loads(chunk("Hi", model="cat"))] == decoded(made)


def test_usage_of_null_stays() -> None:
    raw = event(chunk("Hi", usage=None))
    assert raw.replace(NAMED, MINE) == fed(stream(ask=True), raw)


ESTIMATES: dict[str, tuple[list[bytes], Usage]] = {
    "nothing said": ([], Usage(prompt=7, estimated=True)),
    "content": ([event(chunk("12345678"))], Usage(prompt=7, completion=2, estimated=True)),
    "rounded up": ([event(chunk("12345"))], Usage(prompt=7, completion=2, estimated=True)),
    "in any writing, by its bytes": ([event(chunk("안녕"))], Usage(prompt=7, completion=2, estimated=True)),
    "reasoning, by either name once": (
        [event(chunk(delta={"reasoning": "1234", "reasoning_content": "1234"}))],
        Usage(prompt=7, completion=1, estimated=True),
    ),
    "reasoning": ([event(chunk(delta={"reasoning": "1234"}))], Usage(prompt=7, completion=1, estimated=True)),
    "reasoning_content": (
        [event(chunk(delta={"reasoning_content": "1234"}))],
        Usage(prompt=7, completion=1, estimated=True),
    ),
    "a refusal": ([event(chunk(delta={"refusal": "1234"}))], Usage(prompt=7, completion=1, estimated=True)),
    "every choice": (
        [event(chunk("1234")), event(chunk("1234", index=1))],
        Usage(prompt=7, completion=2, estimated=True),
    ),
    "reported": ([event(chunk("1234")), LAST], Usage(prompt=9, completion=2)),
    "reported with the last chunk": ([event(chunk("1234", usage=USED))], Usage(prompt=9, completion=2)),
    "reported before the end": (
        [event(chunk("1234", usage=USED)), event(chunk("12345678"))],
        Usage(prompt=9, completion=4, estimated=True),
    ),
    "reported as nothing": (
        [event(chunk("1234")), event(b'{"choices":[],"usage":{}}')],
        Usage(prompt=7, completion=1, estimated=True),
    ),
    "reported out of range": (
        [event(b'{"choices":[],"usage":{"prompt_tokens":1e400,"completion_tokens":2}}')],
        Usage(prompt=7, completion=2, estimated=True),
    ),
    "a negative completion": (
        [event(chunk("x" * 40)), event(b'{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":-2}}')],
        Usage(prompt=5, completion=10, estimated=True),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in ESTIMATES.items()])
def test_what_was_used_is_reported_or_estimated(raw: list[bytes], expected: Usage) -> None:
    made = stream()
    fed(made, *raw)
    assert expected == made.estimate(seven)


def test_what_isnt_text_is_not_counted() -> None:
    made = stream()
    fed(made, event(b'{"choices":[{"delta":{"content":[{"type":"text"}],"refusal":5}},{"delta":null}]}'))
    assert made.estimate(seven).completion == 0


def test_a_tool_call_counts_too() -> None:
    made = stream()
    fed(made, event(chunk(delta={"tool_calls": [{"index": 0, "function": {"arguments": "x" * 400}}]})))
    assert 50 < made.estimate(seven).completion < 150


def test_the_prompt_is_counted_only_where_nobody_reports_it() -> None:
    def never() -> int:
        raise AssertionError("the prompt was counted")

    made = stream(ask=True)
    fed(made, event(CHUNK), LAST)
    assert made.usage == made.estimate(never)
    assert made.usage_chunk(never)


def test_a_chunk_without_its_blank_line_gets_one() -> None:
    made = stream()
    raw = b"data: " + chunk("Hi", finish="stop")
    assert event(chunk("Hi", finish="stop", model="cat")) == fed(made, raw)
    assert made.end() == DONE


def test_a_byte_order_mark_goes() -> None:
    """It stands at the start of the provider's stream, perhaps in the middle of the client's."""
    made = stream()
    raw = b"\xef\xbb\xbf" + event(CHUNK)
    assert event(CHUNK).replace(NAMED, MINE) == b"".join(made.feed(each) for each in Decoder(1 << 20).feed(raw))


def test_whether_usage_is_wanted_is_known() -> None:
    assert (True, False) == (stream(ask=True).wants_usage, stream().wants_usage)


def test_what_is_sent_are_events() -> None:
    sent = fed(stream(), *SHAPES.values(), *finishes(0), END)
    assert sse.DONE == sent[-len(sse.DONE) :]
    assert [each.whole for each in events(sent)] == [True] * (len(SHAPES) + 2)
