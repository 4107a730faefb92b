"""The content blocks of the Messages format, as they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from anthropic.types import ContentBlockParam

from formats import sdk
from zurelay.formats.blocks import (
    Base64,
    Document,
    Image,
    PlainText,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
    Url,
)

MARK = {"type": "ephemeral"}
BLOCKS = [
    Text("a"),
    Text("a", MARK),
    Image(Url("https://e.com/a")),
    Image(Base64("image/png", "AA"), MARK),
    Document(Base64("application/pdf", "AA")),
    Document(PlainText("text/plain", "a"), "t", MARK),
    ToolUse("i", "f", msgspec.Raw(b"{}")),
    ToolResult("i"),
    ToolResult("i", "a", MARK),
    ToolResult("i", [Text("a"), Image(Url("https://e.com/a"))]),
    Thinking("t", "s"),
    RedactedThinking("d"),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_a_block_is_one_that_the_sdk_knows(block: Any) -> None:
    (written,) = msgspec.json.decode(msgspec.json.encode(Turn("user", [block])))["content"]

    assert sdk.problems(written, ContentBlockParam) == []


def test_what_is_left_out_isn_t_written() -> None:
    assert msgspec.json.encode(Text("a")) == b'{"type":"text","text":"a"}'
    assert msgspec.json.encode(ToolResult("i")) == b'{"type":"tool_result","tool_use_id":"i"}'
