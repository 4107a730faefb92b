"""A complete message of an Anthropic-format provider: what is one, and what changes in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from formats.answers import message
from zurelay import messages_answer
from zurelay.openai_answer import Answer, BadAnswerError
from zurelay.plan import Reason
from zurelay.usage import Usage

SAID = b'"content":[{"type":"text","text":"Hi"}]'
CACHED = b'"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"output_tokens":8}'
PASS: dict[str, tuple[bytes, bytes, Usage | None, tuple[str, ...]]] = {
    "a message": (
        b'{"model":"up",' + SAID + b',"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}',
        b'{"model":"mine",' + SAID + b',"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}',
        Usage(prompt=3, completion=1),
        ("end_turn",),
    ),
    "cache counts are part of the prompt": (
        b'{"model":"up","content":[],' + CACHED + b"}",
        b'{"model":"mine","content":[],' + CACHED + b"}",
        Usage(prompt=7, completion=8, cached=2, cache_written=4),
        (),
    ),
    "empty content": (b'{"model":"up","content":[]}', b'{"model":"mine","content":[]}', None, ()),
    "no model": (b"{" + SAID + b"}", b"{" + SAID + b',"model":"mine"}', None, ()),
    "an error of null": (
        b'{"error":null,"model":"up",' + SAID + b"}",
        b'{"error":null,"model":"mine",' + SAID + b"}",
        None,
        (),
    ),
    "white space, order, digits and escapes stay": (
        b' {"x" : 1e400,"y":0.10,\n"model" : "up", "content": [ {"type":"z","v":"\\u00e9\\/"} ] } ',
        b' {"x" : 1e400,"y":0.10,\n"model" : "mine", "content": [ {"type":"z","v":"\\u00e9\\/"} ] } ',
        None,
        (),
    ),
    "half an emoji": (
        b'{"model":"up","content":[{"type":"text","text":"\\ud83d"}]}',
        b'{"model":"mine","content":[{"type":"text","text":"\\ud83d"}]}',
        None,
        (),
    ),
    "odd members": (
        b'{"model":"up","content":[],"usage":[1],"stop_reason":7}',
        b'{"model":"mine","content":[],"usage":[1],"stop_reason":7}',
        None,
        (),
    ),
}


@pytest.mark.parametrize(("body", "expected", "used", "reasons"), PASS.values(), ids=PASS)
def test_a_message_gets_the_catalogs_model(
    body: bytes, expected: bytes, used: Usage | None, reasons: tuple[str, ...]
) -> None:
    assert Answer(expected, used, reasons) == messages_answer.read(body, "mine")


BAD = {
    "an error": (b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}', Reason.ERROR_BODY),
    "an error of another API": (b'{"error":{"message":"m"}}', Reason.ERROR_BODY),
    "a type of error alone": (b'{"type":"error"}', Reason.ERROR_BODY),
    "nothing": (b"", Reason.NOT_JSON),
    "no JSON": (b"<html>", Reason.NOT_JSON),
    "half a message": (b'{"model":"up","content":[', Reason.NOT_JSON),
    "no object": (b"[]", Reason.NOT_JSON),
    "no content": (b'{"model":"up"}', Reason.NOT_JSON),
    "content of null": (b'{"model":"up","content":null}', Reason.NOT_JSON),
    "content that is no list": (b'{"model":"up","content":"Hi"}', Reason.NOT_JSON),
    "a chat completion": (b'{"model":"up","choices":[{"message":{"content":"Hi"}}]}', Reason.NOT_JSON),
    "what isn't UTF-8": (b'{"content":[],"x":"\xff"}', Reason.NOT_JSON),
    "half an emoji in what is none": (b'{"x":"\\ud83d"}', Reason.NOT_JSON),
}


@pytest.mark.parametrize(("body", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_message(body: bytes, reason: Reason) -> None:
    with pytest.raises(BadAnswerError) as caught:
        messages_answer.read(body, "mine")
    assert reason is caught.value.reason


@given(message())
def test_any_message_keeps_all_but_its_model(value: dict[str, Any]) -> None:
    found = messages_answer.read(json.dumps(value).encode(), "mine")
    assert {**value, "model": "mine"} == json.loads(found.body)
    assert found.finish_reasons == (value["stop_reason"],)


def test_a_count_passes_as_it_is() -> None:
    body = b' {"input_tokens": 12, "x":1e400}'
    assert Answer(body, None) == messages_answer.read_count(body)


COUNTS = {b'{"input_tokens":null}': Reason.NOT_JSON, b"{}": Reason.NOT_JSON, b"12": Reason.NOT_JSON}
COUNTS |= {b'{"error":{"message":"m"}}': Reason.ERROR_BODY}


@pytest.mark.parametrize(("body", "reason"), COUNTS.items())
def test_what_is_no_count(body: bytes, reason: Reason) -> None:
    with pytest.raises(BadAnswerError) as caught:
        messages_answer.read_count(body)
    assert reason is caught.value.reason
