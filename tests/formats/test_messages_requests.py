"""Messages' turns as they are read."""

from __future__ import annotations

import msgspec
import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats.messages_requests import MESSAGES, SOURCE, Block, Source, blocks_of, inner

CONTENTS = {"a string": b'"a"', "blocks": b'[{"type":"text","text":"a"}]'}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_content_is_blocks_either_way(content: bytes) -> None:
    (message,) = MESSAGES.decode(b'[{"role":"user","content":%b}]' % content)

    assert [Block("text", text="a")] == message.blocks() == blocks_of(msgspec.Raw(content), "here")


@pytest.mark.parametrize("raw", [b"null", b"[]"])
def test_nothing_is_no_blocks(raw: bytes) -> None:
    assert blocks_of(msgspec.Raw(raw), "here") == []


def test_a_block_of_any_kind_can_be_read() -> None:
    block = b'{"type":"web_search_tool_result","content":{"error_code":"x"},"source":"s","input":[1]}'

    (message,) = MESSAGES.decode(b'[{"role":"user","content":[%b]}]' % block)

    assert message.blocks()[0].type == "web_search_tool_result"


def test_a_member_of_the_wrong_type_names_its_place() -> None:
    assert inner(msgspec.Raw(b'{"type":"url","url":"u"}'), SOURCE, "here") == Source("url", url="u")
    with pytest.raises(InvalidRequest, match=r"^`here`: ") as caught:
        inner(msgspec.Raw(b"3"), SOURCE, "here")
    assert caught.value.param == "here"
