"""Reasoning that finds its way back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from zurelay.formats import thinking
from zurelay.formats.blocks import RedactedThinking, Text, Thinking, ToolUse
from zurelay.formats.thinking import ChatThinking

BLOCKS: dict[str, tuple[dict[str, Any], Any]] = {
    "signed": ({"type": "thinking", "thinking": "t", "signature": "s"}, Thinking("t", "s")),
    "without words": ({"type": "thinking", "signature": "s"}, Thinking("", "s")),
    "not signed": ({"type": "thinking", "thinking": "t"}, None),
    "redacted": ({"type": "redacted_thinking", "data": "d"}, RedactedThinking("d")),
    "redacted to nothing": ({"type": "redacted_thinking"}, None),
    "of another kind": ({"type": "x", "signature": "s", "data": "d"}, None),
}


@pytest.mark.parametrize(("value", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_only_what_a_provider_made_goes_back_to_it(value: dict[str, Any], expected: Any) -> None:
    assert expected == msgspec.convert(value, ChatThinking).block()


@pytest.mark.parametrize("block", [Thinking("t", "s"), RedactedThinking("d")])
@pytest.mark.parametrize("at", [(0, 0), (3, 1)])
def test_what_a_chat_client_gets_is_what_it_can_send_back(block: Any, at: tuple[int, int]) -> None:
    found = msgspec.convert(thinking.for_chat(block, at, index=2), ChatThinking)

    assert (block, at) == (found.block(), found.at)


def test_texts_with_marks_stay_whole_where_thinking_came_first() -> None:
    texts = [Text("a", {"type": "ephemeral"}), Text("b")]
    call = ToolUse("i", "f", msgspec.Raw(b"{}"))

    found = thinking.in_order([ChatThinking("thinking", "t", "s")], texts, [call])

    assert found == [Thinking("t", "s"), *texts, call]


OURS = {"type": "thinking", "thinking": "t", "signature": thinking.signature("gpt-up")}
THEIRS = {"type": "thinking", "thinking": "t", "signature": "EqQB"}
WORDS = {"type": "text", "text": "zurelay: is a word"}


def stripped(*contents: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "assistant", "content": content} for content in contents]}
    return [
        message["content"] for message in json.loads(thinking.strip_unsigned(json.dumps(body).encode()))["messages"]
    ]


STRIPPED: dict[str, tuple[list[Any], list[Any]]] = {
    "ours goes, the rest stays": ([[OURS, THEIRS, WORDS]], [[THEIRS, WORDS]]),
    "a message of ours alone goes": ([[OURS], [WORDS]], [[WORDS]]),
    "a message without any stays": ([[OURS, THEIRS], [THEIRS]], [[THEIRS], [THEIRS]]),
    "words stay": (["zurelay: hi", [WORDS]], ["zurelay: hi", [WORDS]]),
    "odd content stays": ([{"zurelay:": 1}, [{"type": "thinking", "signature": {"zurelay:": 1}}]],) * 2,
}


@pytest.mark.parametrize(("contents", "expected"), STRIPPED.values(), ids=STRIPPED)
def test_thinking_that_no_provider_signed_is_taken_out(contents: list[Any], expected: list[Any]) -> None:
    assert expected == stripped(*contents)


UNTOUCHED = [b'{"messages" : [ ]}', b"not JSON", b'{"messages": "zurelay:"}', b'{"x": "zurelay:"}']


@pytest.mark.parametrize("body", UNTOUCHED)
def test_a_body_without_any_keeps_every_byte(body: bytes) -> None:
    assert body == thinking.strip_unsigned(body)


def test_numbers_keep_their_digits() -> None:
    content = b'[{"type":"thinking","thinking":"","signature":"zurelay:m"},{"type":"text","text":"a","x": 1e400}]'
    body = b'{"top_p": 0.10, "messages":[{"role":"assistant","content":%b}]}' % content

    expected = b'{"top_p": 0.10, "messages":[{"role":"assistant","content":[{"type":"text","text":"a","x": 1e400}]}]}'
    assert expected == thinking.strip_unsigned(body)
