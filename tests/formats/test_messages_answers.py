"""What a Messages provider answers, as it is read."""

from __future__ import annotations

import msgspec
import pytest

from zurelay.formats import BadAnswer
from zurelay.formats.blocks import RedactedThinking, Thinking
from zurelay.formats.messages_answers import REFUSED, Content, StopDetails, arguments, content, finish_reason, refusal

UNKNOWN = {
    "of a kind to come": b'{"type":"hologram","text":3,"id":[]}',
    "of no kind": b'{"text":"a"}',
    "a provider's own tool": b'{"type":"server_tool_use","id":"s","name":"web_search","input":{}}',
}


@pytest.mark.parametrize("raw", UNKNOWN.values(), ids=UNKNOWN)
def test_blocks_of_other_kinds_are_passed_over(raw: bytes) -> None:
    assert content(raw) is None


BAD = {
    "no object": b"3",
    "a kind that is a number": b'{"type":3}',
    "a text that is a list": b'{"type":"text","text":[]}',
    "no JSON": b'{"type":"text"',
    "not UTF-8": b'{"type":"text","text":"\xff"}',
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_a_block_that_is_none_is_a_bad_answer(raw: bytes) -> None:
    with pytest.raises(BadAnswer, match=r"^a content block: "):
        content(raw)


THOUGHTS = {
    "signed": (Content("thinking", thinking="t", signature="s"), Thinking("t", "s")),
    "not shown": (Content("thinking", thinking=None, signature="s"), Thinking("", "s")),
    "not signed": (Content("thinking", thinking="t", signature=""), None),
    "redacted": (Content("redacted_thinking", data="d"), RedactedThinking("d")),
    "redacted to nothing": (Content("redacted_thinking"), None),
}


@pytest.mark.parametrize(("block", "expected"), THOUGHTS.values(), ids=THOUGHTS)
def test_only_thinking_that_can_go_back_is_kept_for_it(block: Content, expected: object) -> None:
    assert expected == block.thought()


@pytest.mark.parametrize(
    ("stop", "finish"), {"max_tokens": "length", "refusal": "content_filter", None: "tool_calls"}.items()
)
def test_calls_change_only_an_ordinary_end(stop: str | None, finish: str) -> None:
    assert finish == finish_reason(stop, calls=True)


def test_a_refusal_has_words() -> None:
    assert [refusal(StopDetails("why")), refusal(StopDetails()), refusal(None)] == ["why", REFUSED, REFUSED]


def test_arguments_that_are_not_utf_8_are_a_bad_answer() -> None:
    assert arguments(Content("tool_use", input=msgspec.Raw(b'{"a":1}'))) == '{"a":1}'
    with pytest.raises(BadAnswer):
        arguments(Content("tool_use", input=msgspec.Raw(b'{"a":"\xff"}')))
