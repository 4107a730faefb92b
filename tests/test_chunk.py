"""Chunks of a chat stream: what counts as a first token, an error, an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from making import chunk as made
from zurelay import chunk
from zurelay.chunk import Seen

NOTHING, TOKEN, ERROR, BAD, END = Seen.NOTHING, Seen.TOKEN, Seen.ERROR, Seen.BAD, Seen.END
DELTAS: dict[str, tuple[Any, Seen]] = {
    "content": ({"content": "H"}, TOKEN),
    "a space": ({"content": " "}, TOKEN),
    "content in parts": ({"content": [{"type": "text", "text": "H"}]}, TOKEN),
    "reasoning_content": ({"reasoning_content": "hm"}, TOKEN),
    "reasoning": ({"reasoning": "hm"}, TOKEN),
    "a refusal": ({"refusal": "no"}, TOKEN),
    "a tool call": ({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": ""}}]}, TOKEN),
    "a function call": ({"function_call": {"name": "f"}}, TOKEN),
    "audio": ({"audio": {"id": "1"}}, TOKEN),
    "an image": ({"content": "", "images": [{"type": "image_url"}]}, TOKEN),
    "a role": ({"role": "assistant"}, NOTHING),
    "a role and nothing said": ({"role": "assistant", "content": "", "refusal": None}, NOTHING),
    "content of null": ({"role": "assistant", "content": None}, NOTHING),
    "empty reasoning": ({"reasoning_content": "", "reasoning": None}, NOTHING),
    "no tool calls": ({"tool_calls": []}, NOTHING),
    "nothing": ({}, NOTHING),
    "null": (None, NOTHING),
    "no object": ([], BAD),
    "text": ("H", BAD),
}


@pytest.mark.parametrize(("delta", "expected"), [pytest.param(*row, id=name) for name, row in DELTAS.items()])
def test_what_is_a_first_token(delta: object, expected: Seen) -> None:
    assert expected is chunk.seen("", made(delta=delta))


EVENTS: dict[str, tuple[str, bytes | None, Seen]] = {
    "a finish": ("", made(finish="stop"), TOKEN),
    "an empty finish": ("", made(finish=""), NOTHING),
    "the second choice speaks": (
        "",
        b'{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"H"}}]}',
        TOKEN,
    ),
    "no choices": ("", b'{"choices":[]}', NOTHING),
    "Azure's filter results": ("", b'{"choices":[],"model":"","prompt_filter_results":[{}]}', NOTHING),
    "choices of null": ("", b'{"choices":null}', NOTHING),
    "usage alone": ("", b'{"choices":[],"usage":{"prompt_tokens":1}}', NOTHING),
    "an empty object": ("", b"{}", NOTHING),
    "a chunk with an event's name": ("message", made("H"), TOKEN),
    "an error": ("", b'{"error":{"message":"overloaded","code":400}}', ERROR),
    "an error by the event's name": ("error", b'{"type":"overloaded"}', ERROR),
    "an error by the event's name alone": ("error", b"overloaded", ERROR),
    "an error beside a token": ("", b'{"error":{"code":1},"choices":[{"delta":{"content":"H"}}]}', ERROR),
    "an error of null beside a token": ("", b'{"error":null,"choices":[{"delta":{"content":"H"}}]}', TOKEN),
    "an empty error beside a token": ("", b'{"error":{},"choices":[{"delta":{"content":"H"}}]}', TOKEN),
    "an error that is text": ("", b'{"error":"overloaded"}', ERROR),
    "the end": ("", b"[DONE]", END),
    "the end, with spaces": ("", b" [DONE] ", END),
    "no data": ("", None, NOTHING),
    "empty data": ("", b"", NOTHING),
    "data of spaces": ("", b"  ", NOTHING),
    "a ping": ("ping", b"{}", NOTHING),
    "no JSON": ("", b"hello", BAD),
    "cut short": ("", made("H")[:-3], BAD),
    "a list": ("", b"[]", BAD),
    "a number": ("", b"7", BAD),
    "choices that are text": ("", b'{"choices":"x"}', BAD),
    "no UTF-8": ("", b'{"choices":[{"delta":{"content":"\xff"}}]}', BAD),
    "nested deeply": ("", b'{"x":' * 5_000 + b"1" + b"}" * 5_000, BAD),
}


@pytest.mark.parametrize(("name", "data", "expected"), [pytest.param(*row, id=name) for name, row in EVENTS.items()])
def test_what_an_event_means_before_the_first_token(name: str, data: bytes | None, expected: Seen) -> None:
    assert expected is chunk.seen(name, data)


USED = {
    "an object": (b'{"prompt_tokens":1}', b'{"prompt_tokens":1}'),
    "an object with spaces": (b' { "prompt_tokens" : 1 } ', b'{ "prompt_tokens" : 1 }'),
    "numbers out of range": (b'{"prompt_tokens":1e400}', b'{"prompt_tokens":1e400}'),
    "null": (b"null", None),
    "a list": (b"[1]", None),
    "a number": (b"7", None),
}


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(*row, id=name) for name, row in USED.items()])
def test_usage_is_an_object(raw: bytes, expected: bytes | None) -> None:
    read = chunk.read(b'{"choices":[],"usage":' + raw + b"}")
    assert read is not None
    assert expected == read.used


def test_usage_may_be_left_out() -> None:
    read = chunk.read(b"{}")
    assert read is not None
    assert read.used is None


def test_fields_that_nobody_reads_may_hold_anything() -> None:
    data = json.dumps({"choices": [{"delta": {"content": "H"}, "logprobs": {"x": 1}}], "x": [{}]}).encode()
    assert TOKEN is chunk.seen("", data.replace(b'"x": 1', b'"x": -1e999'))


def test_a_choice_without_an_index_is_the_first() -> None:
    read = chunk.read(b'{"choices":[{"delta":{}}]}')
    assert read is not None
    assert [0] == [choice.index for choice in read.choices or ()]


HALVES = {
    "half a pair": b'{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    "the other half": b'{"choices":[{"delta":{"content":"\\uDE00"}}]}',
    "a whole pair": b'{"choices":[{"delta":{"content":"\\ud83d\\ude00"}}]}',
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in HALVES.items()])
def test_half_a_surrogate_pair_is_a_token(data: bytes) -> None:
    assert TOKEN is chunk.seen("", data)
