"""A provider's messages stream on its way to a client of the same format: the model changes, all else stays."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.answers import message, message_events
from formats.sdk import JSON
from zurelay import sse
from zurelay.chat_stream import StreamError
from zurelay.messages_stream import MessagesStream
from zurelay.sse import Decoder, Event
from zurelay.usage import Usage

ROOT = pathlib.Path(__file__).parent / "fixtures"
GOLDEN = sorted([ROOT / "sse" / "anthropic.sse", *(ROOT / "formats" / "stream_messages_to_chat").glob("*.in.sse")])
START = {"type": "message_start", "message": {"id": "m", "model": "up", "content": [], "usage": {"input_tokens": 9}}}
STOP = {"type": "message_stop"}
MINE = b'"model":"mine"'


def named(value: dict[str, Any]) -> bytes:
    return sse.encode(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), value["type"])


def text(said: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}}


def finish(**usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **({"usage": usage} if usage else {})}


def events(raw: bytes, size: int | None = None) -> list[Event]:
    decoder = Decoder(1 << 24)
    step = size or len(raw) or 1
    found = [one for place in range(0, len(raw), step) for one in decoder.feed(raw[place : place + step])]
    last = decoder.flush()
    return found if last is None else [*found, last]


def fed(raw: bytes, made: MessagesStream | None = None, size: int | None = None) -> bytes:
    made = made or MessagesStream("mine")
    return b"".join(made.feed(one) for one in events(raw, size))


def whole(values: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(map(named, values))


@pytest.mark.parametrize("path", GOLDEN, ids=[path.name for path in GOLDEN])
def test_a_real_stream_changes_in_its_model_only(path: pathlib.Path) -> None:
    raw = path.read_bytes()
    found = fed(raw)
    before, after = events(raw), events(found)
    head = json.loads(before[0].data or b"")
    head["message"]["model"] = "mine"
    assert head == json.loads(after[0].data or b"")
    assert [one.raw for one in before[1:] if one.data] == [one.raw for one in after[1:]]
    for size in (1, 2, 3, 7, 64, 1000):
        assert found == fed(raw, size=size)


@settings(max_examples=60)
@given(st.data(), message())
def test_any_chunking_gives_the_same_bytes_and_one_head(data: st.DataObject, answer: dict[str, Any]) -> None:
    raw = whole(data.draw(message_events(answer)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    decoder, made, found = Decoder(1 << 20), MessagesStream("mine"), b""
    for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += b"".join(made.feed(one) for one in decoder.feed(raw[begin:end]))
    assert raw.replace(b'"model":"claude-up"', MINE, 1) == found
    assert found.count(b"event: message_start\n") == 1
    assert made.done
    assert made.finish_reasons == [answer["stop_reason"]]


UNKNOWN = {
    "an event to come": b'event: progress\ndata: {"type":"progress","message":{"a":1},"n":1e400}\n\n',
    "one with odd members": b'event: x\ndata: {"type":"x","delta":3,"usage":[],"content_block":"b"}\n\n',
    "one that tells of an error": b'event: x\ndata: {"type":"x","error":{"message":"m"}}\n\n',
    "one with a model": b'event: x\ndata: {"type":"x","message":{"model":"up"}}\n\n',
    "a block to come": named({"type": "content_block_start", "content_block": {"type": "z"}}),
    "a delta to come": named({"type": "content_block_delta", "delta": {"type": "z"}}),
    "a ping": b'event: ping\ndata: {"type": "ping"}\n\n',
    "white space and fields around": b'id: 1\nevent:ping\nretry: 5\ndata:  {"type": "ping"} \n\n',
    "CR LF": b'event: ping\r\ndata: {"type": "ping"}\r\n\r\n',
    "CR": b'event: ping\rdata: {"type": "ping"}\r\r',
    "two data lines": b'event: ping\ndata: {"type":\ndata: "ping"}\n\n',
    "a comment within": b': hm\nevent: ping\ndata: {"type": "ping"}\n\n',
    "half an emoji": named(text("x")).replace(b'"x"', b'"\\ud83d"'),
    "digits": b'event: ping\ndata: {"type":"ping","a":0.1000,"b":12345678901234567890123}\n\n',
    "a stop with no block": b'event: content_block_stop\ndata: {"type":"content_block_stop","index":7}\n\n',
    "no type but a name to come": b'event: later\ndata: {"a":1}\n\n',
    "neither type nor name": b'data: {"a":1}\n\n',
}


@pytest.mark.parametrize("raw", UNKNOWN.values(), ids=UNKNOWN)
def test_what_we_do_not_know_passes_byte_for_byte(raw: bytes) -> None:
    made = MessagesStream("mine")
    made.feed(events(named(START))[0])
    assert raw == fed(raw, made)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.from_regex(r"[a-z]{4,9}", fullmatch=True))
def test_any_event_of_a_type_to_come_passes_byte_for_byte(value: dict[str, Any], kind: str) -> None:
    raw = named({**value, "type": kind + "_future"})
    assert raw == fed(raw)


@given(JSON)
def test_any_block_of_a_type_to_come_passes_byte_for_byte(inner: Any) -> None:
    made = MessagesStream("mine")
    made.feed(events(named(START))[0])
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "future", "x": inner}}
    raw = named(start) + named({"type": "content_block_delta", "index": 0, "delta": {"type": "future", "x": inner}})
    assert raw == fed(raw, made)


def test_an_event_without_a_name_gets_its_type_for_one() -> None:
    raw = whole([START, text("a"), finish(), STOP])
    bare = b"".join(b"data: " + (one.data or b"") + b"\n\n" for one in events(raw))
    assert raw.replace(b'"model":"up"', MINE) == fed(bare)
    assert b"event: a b" not in fed(b'data: {"type":"a b"}\n\n')


def test_a_byte_order_mark_goes_as_something_of_ours_may_stand_before_it() -> None:
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    assert ping == fed(b"\xef\xbb\xbf" + ping)
    assert fed(b"\xef\xbb\xbf" + named(START)).startswith(b"event: message_start\n")


HEADS = {
    "a model": (b'{"model":"up"}', b'{"model":"mine"}'),
    "an escaped key, digits, order": (b'{"n":1.0, "\\u006dodel":"up"}', b'{"n":1.0, "\\u006dodel":"mine"}'),
    "no model": (b'{"id":"m"}', b'{"id":"m","model":"mine"}'),
    "odd counts": (b'{"model":"up","usage":[1]}', b'{"model":"mine","usage":[1]}'),
    "half an emoji": (b'{"model":"up","id":"\\ud83d"}', b'{"model":"mine","id":"\\ud83d"}'),
    "no object": (b'"m"', b'"m"'),
}


@pytest.mark.parametrize(("inner", "expected"), HEADS.values(), ids=HEADS)
def test_the_head_gets_the_model_and_keeps_the_rest(inner: bytes, expected: bytes) -> None:
    raw = b'event: message_start\ndata: {"message":%b,"type":"message_start"}\n\n'
    assert raw % expected == fed(raw % inner)


def test_a_head_that_comes_again_before_any_content_goes() -> None:
    assert whole([START, text("a")]).replace(b'"model":"up"', MINE) == fed(whole([START, START, text("a")]))


BROKEN = {
    "an error": (whole([START, text("a")]) + named({"type": "error", "error": {"message": "Busy."}}), "Busy."),
    "an error of another API": (named(START) + b'data: {"error":{"message":"Busy."}}\n\n', "Busy."),
    "an error in prose": (named(START) + b"event: error\ndata: Overloaded\n\n", ""),
    "no JSON": (named(START) + b"event: x\ndata: {\n\n", ""),
    "a head in the midst": (whole([START, text("a"), START]), ""),
    "content without a head": (named(text("a")), ""),
    "an end without a head": (named(STOP), ""),
}


@pytest.mark.parametrize(("raw", "said"), BROKEN.values(), ids=BROKEN)
def test_what_no_client_could_read_breaks_the_stream(raw: bytes, said: str) -> None:
    with pytest.raises(StreamError) as caught:
        fed(raw)
    assert said == caught.value.message


ENDS: dict[str, tuple[list[dict[str, Any]], bytes | None]] = {
    "whole": ([START, text("a"), finish(), STOP], b""),
    "only the last event is missing": ([START, text("a"), finish()], named(STOP)),
    "cut in the midst": ([START, text("a")], None),
    "cut at once": ([], None),
    "counts without a reason": ([START, {"type": "message_delta", "delta": {"stop_reason": None}}], None),
}


@pytest.mark.parametrize(("values", "expected"), ENDS.values(), ids=ENDS)
def test_the_end_of_the_providers_stream(values: list[dict[str, Any]], expected: bytes | None) -> None:
    made = MessagesStream("mine")
    fed(whole(values), made)
    assert expected == made.end()
    assert made.done is (expected is not None)


def test_nothing_follows_the_end() -> None:
    made = MessagesStream("mine")
    found = fed(whole([START, text("a"), finish(), STOP, STOP, text("b"), START]) + b"data: [DONE]\n\n", made)
    assert found == whole([START, text("a"), finish(), STOP]).replace(b'"model":"up"', MINE)


def used(prompt: int, completion: int, **more: Any) -> Usage:
    return Usage(prompt=prompt, completion=completion, **more)


USED: dict[str, tuple[list[dict[str, Any]], Usage]] = {
    "as reported": ([START, text("abcd"), finish(output_tokens=5), STOP], used(9, 5)),
    "all counts at the end": (
        [START, finish(input_tokens=3, output_tokens=5, cache_read_input_tokens=4), STOP],
        used(7, 5, cached=4),
    ),
    "broken off: the head's prompt, the text by its bytes": ([START, text("안녕")], used(9, 2, estimated=True)),
    "whole without counts": ([START, text("abcde"), finish(), STOP], used(9, 2, estimated=True)),
    "whole with a report that doesn't say what was written": (
        [START, text("abcde"), finish(input_tokens=9), STOP],
        used(9, 2, estimated=True),
    ),
    "nothing said yet": ([START], used(9, 0, estimated=True)),
    "nothing at all": ([], used(7, 0, estimated=True)),
}


@pytest.mark.parametrize(("values", "expected"), USED.values(), ids=USED)
def test_what_was_used(values: list[dict[str, Any]], expected: Usage) -> None:
    made = MessagesStream("mine")
    fed(whole(values), made)
    assert expected == made.estimate(lambda: 7)
    assert (False, b"") == (made.wants_usage, made.usage_chunk(lambda: 7))
