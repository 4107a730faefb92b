"""Events of a messages stream: what each means to one who waits for the first token."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.sdk import JSON
from zurelay import message_event
from zurelay.chunk import Seen

START = b'{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}'


def block(inner: str) -> bytes:
    return f'{{"type":"content_block_start","index":0,"content_block":{inner}}}'.encode()


def delta(inner: str) -> bytes:
    return f'{{"type":"content_block_delta","index":0,"delta":{inner}}}'.encode()


SEEN: dict[str, tuple[str, bytes | None, Seen]] = {
    "a comment": ("", None, Seen.NOTHING),
    "empty data": ("ping", b" ", Seen.NOTHING),
    "a head": ("message_start", START, Seen.NOTHING),
    "a ping": ("ping", b'{"type": "ping"}', Seen.NOTHING),
    "an empty text block": ("content_block_start", block('{"type":"text","text":""}'), Seen.NOTHING),
    "an empty thinking block": (
        "content_block_start",
        block('{"type":"thinking","thinking":"","signature":""}'),
        Seen.NOTHING,
    ),
    "a block of no type": ("content_block_start", block("{}"), Seen.NOTHING),
    "a text block with text": ("content_block_start", block('{"type":"text","text":"a"}'), Seen.TOKEN),
    "a tool call": ("content_block_start", block('{"type":"tool_use","id":"t","name":"n","input":{}}'), Seen.TOKEN),
    "a search": ("content_block_start", block('{"type":"server_tool_use","id":"t"}'), Seen.TOKEN),
    "thinking that nobody can read": (
        "content_block_start",
        block('{"type":"redacted_thinking","data":"x"}'),
        Seen.TOKEN,
    ),
    "a block to come": ("content_block_start", block('{"type":"hologram"}'), Seen.TOKEN),
    "text": ("content_block_delta", delta('{"type":"text_delta","text":"a"}'), Seen.TOKEN),
    "no text": ("content_block_delta", delta('{"type":"text_delta","text":""}'), Seen.NOTHING),
    "thinking": ("content_block_delta", delta('{"type":"thinking_delta","thinking":"a"}'), Seen.TOKEN),
    "a signature": ("content_block_delta", delta('{"type":"signature_delta","signature":"s"}'), Seen.NOTHING),
    "arguments": ("content_block_delta", delta('{"type":"input_json_delta","partial_json":"{"}'), Seen.TOKEN),
    "half an emoji": ("content_block_delta", delta('{"type":"text_delta","text":"\\ud83d"}'), Seen.TOKEN),
    "a block's end": ("content_block_stop", b'{"type":"content_block_stop","index":0}', Seen.NOTHING),
    "a finish": ("message_delta", b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', Seen.TOKEN),
    "counts alone": ("message_delta", b'{"type":"message_delta","delta":{"stop_reason":null}}', Seen.NOTHING),
    "the end": ("message_stop", b'{"type":"message_stop"}', Seen.END),
    "the end, named outside only": ("message_stop", b"{}", Seen.END),
    "an error": ("error", b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}', Seen.ERROR),
    "an error without a name": ("", b'{"type":"error","error":{}}', Seen.ERROR),
    "an error by its name": ("error", b"overloaded", Seen.ERROR),
    "an error of another API": ("", b'{"error":{"message":"m","code":400}}', Seen.ERROR),
    "an error that is none": ("", b'{"error":null}', Seen.NOTHING),
    "an event to come that tells of an error": ("hm", b'{"type":"hm","error":{"message":"m"}}', Seen.NOTHING),
    "an event to come": ("progress", b'{"type":"progress","delta":3,"message":"x","n":1e400}', Seen.NOTHING),
    "an end whose counts are odd": ("message_stop", b'{"type":"message_stop","delta":7}', Seen.END),
    "no JSON": ("", b"<html>", Seen.BAD),
    "half an event": ("", START[:-5], Seen.BAD),
    "no object": ("", b"[]", Seen.BAD),
    "what isn't UTF-8": ("", b'{"type":"\xff"}', Seen.BAD),
    "nested beyond reason": ("", b'{"type":"x","y":' + b"[" * 100_000, Seen.BAD),
    "chat's end": ("", b"[DONE]", Seen.BAD),
}


@pytest.mark.parametrize(("name", "data", "expected"), [pytest.param(*row, id=key) for key, row in SEEN.items()])
def test_what_an_event_means_before_the_first_token(name: str, data: bytes | None, expected: Seen) -> None:
    assert expected is message_event.seen(name, data)


SPOKEN = {
    '{"text":"abc"}': 3,
    '{"text":"안녕"}': 6,
    '{"thinking":"ab"}': 2,
    '{"partial_json":"{"}': 1,
    '{"signature":"abc"}': 0,
    '{"text":7}': 0,
    '{"text":null}': 0,
}


@pytest.mark.parametrize(("inner", "expected"), SPOKEN.items(), ids=SPOKEN)
def test_what_was_said_is_measured_in_bytes(inner: str, expected: int) -> None:
    event = message_event.read(delta(inner))
    assert event is not None
    assert event.delta is not None
    assert expected == event.delta.spoken


NAMES = st.sampled_from(["type", "delta", "content_block", "message", "usage", "error", "index", "text"])


@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_object_is_an_event_with_its_type(value: dict[str, object]) -> None:
    event = message_event.read(json.dumps(value).encode())
    assert event is not None
    assert event.type == value.get("type") or not value.get("type")
