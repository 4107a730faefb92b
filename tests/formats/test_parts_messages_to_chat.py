"""Messages' blocks as chat's parts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats.messages_requests import Block
from zurelay.formats.parts_messages_to_chat import content, translate


def parts(**block: Any) -> Any:
    return translate(msgspec.json.decode(json.dumps(block), type=Block), "here")


def source(kind: str, **members: Any) -> dict[str, Any]:
    return {"source": {"type": kind, **members}}


TEXT = {"type": "text", "text": "a"}
PARTS: dict[str, tuple[dict[str, Any], Any]] = {
    "text": (TEXT, [TEXT]),
    "no text": ({"type": "text", "text": ""}, []),
    "an image": (
        {"type": "image", **source("base64", media_type="image/png", data="AAAA")},
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
    ),
    "an image's address": (
        {"type": "image", **source("url", url="https://e.com/a")},
        [{"type": "image_url", "image_url": {"url": "https://e.com/a"}}],
    ),
    "a PDF": (
        {"type": "document", **source("base64", media_type="application/pdf", data="JVBE")},
        [{"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"}}],
    ),
    "text that is a document": ({"type": "document", **source("text", data="a")}, [TEXT]),
    "a document of blocks": ({"type": "document", **source("content", content=[TEXT])}, [TEXT]),
    "a document of words": ({"type": "document", **source("content", content="a")}, [TEXT]),
    "a block without a counterpart": ({"type": "tool_reference", "tool_name": "x"}, None),
}


@pytest.mark.parametrize(("block", "expected"), PARTS.values(), ids=PARTS)
def test_blocks_become_parts(block: dict[str, Any], expected: Any) -> None:
    assert expected == parts(**block)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an image by file": ({"type": "image", **source("file", file_id="f")}, "here.source"),
    "a document by url": ({"type": "document", **source("url", url="https://e.com")}, "here.source"),
    "a search in a document": (
        {"type": "document", **source("content", content=[{"type": "search_result"}])},
        "here.source.content[0]",
    ),
    "a source that is a word": ({"type": "image", "source": "x"}, "here.source"),
    "no source": ({"type": "image"}, "here.source"),
    "content that is a number": ({"type": "search_result", "source": "s", "content": 3}, "here.content"),
}


@pytest.mark.parametrize(("block", "param"), REFUSED.values(), ids=REFUSED)
def test_what_the_model_can_t_read_is_refused_by_place(block: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parts(**block)

    assert caught.value.param == param


def test_texts_alone_make_one_string() -> None:
    assert content([TEXT, TEXT]) == "a\n\na"
    assert content([]) == ""


def test_texts_beside_an_image_stay_parts() -> None:
    both: list[dict[str, Any]] = [TEXT, {"type": "image_url", "image_url": {"url": "u"}}]

    assert content(both) == both
