"""Chat's messages as they are read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from openai.types.chat import ChatCompletionMessageParam

from formats import sdk
from zurelay.formats.chat_messages import MESSAGES, Message

PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
MARK = {"type": "ephemeral"}


def read(**members: Any) -> Message:
    (message,) = MESSAGES.decode(json.dumps([{"role": "user", **members}]))
    return message


@settings(max_examples=60, deadline=None)
@given(sdk.allowed(ChatCompletionMessageParam, lambda *_: None))
def test_every_message_that_the_sdk_allows_can_be_read(message: dict[str, Any]) -> None:
    (found,) = MESSAGES.decode(json.dumps([message]))

    assert found.role == message["role"]
    assert isinstance(found.parts(), list)


MARKS: dict[str, tuple[dict[str, Any], Any]] = {
    "none": ({}, None),
    "null": ({"cache_control": None}, None),
    "Messages' own": ({"cache_control": {**MARK, "ttl": "5m"}}, {**MARK, "ttl": "5m"}),
    "OpenAI's": ({"prompt_cache_breakpoint": {"mode": "explicit"}}, MARK),
    "OpenAI's for half an hour": (
        {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}},
        {**MARK, "ttl": "1h"},
    ),
    "both": ({"cache_control": MARK, "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}, MARK),
}


@pytest.mark.parametrize(("members", "expected"), MARKS.values(), ids=MARKS)
def test_a_part_s_mark_for_the_cache_is_messages_own_or_made_so(members: dict[str, Any], expected: Any) -> None:
    (part,) = read(content=[{**PARTS[0], **members}]).parts()

    assert expected == msgspec.json.decode(msgspec.json.encode(part.cache))


CONTENTS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "nothing": ({"content": None}, []),
    "a string": ({"content": "a"}, [None]),
    "a string under a mark": ({"content": "a", "cache_control": MARK}, [MARK]),
    "parts under a mark": ({"content": PARTS, "cache_control": MARK}, [None, MARK]),
    "a part that has its own": (
        {"content": [{**PARTS[0], "cache_control": {**MARK, "ttl": "1h"}}], "cache_control": MARK},
        [{**MARK, "ttl": "1h"}],
    ),
    "no parts under a mark": ({"content": [], "cache_control": MARK}, []),
}


@pytest.mark.parametrize(("members", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_a_message_s_mark_is_its_last_part_s(members: dict[str, Any], expected: list[Any]) -> None:
    assert expected == [msgspec.json.decode(msgspec.json.encode(part.cache)) for part in read(**members).parts()]
