"""Messages' turns as a client may send them: read loosely here, judged where they are translated."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from zurelay.errors import InvalidRequest

T = TypeVar("T")

_NONE = msgspec.Raw(b"null")


class Source(msgspec.Struct):
    """Where an image or a document is."""

    type: str
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: msgspec.Raw = _NONE


class Block(msgspec.Struct):
    """A content block of any type. `content` and `source` are of one type here and of another there."""

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = _NONE
    tool_use_id: str | None = None
    is_error: bool | None = None
    title: str | None = None
    context: str | None = None
    source: msgspec.Raw = _NONE
    content: msgspec.Raw = _NONE


class Message(msgspec.Struct):
    """A turn of either side, or words of the system between turns."""

    role: str
    content: str | list[Block]

    def blocks(self) -> list[Block]:
        """Give the content as blocks."""
        return [Block("text", text=self.content)] if isinstance(self.content, str) else self.content


MESSAGES = msgspec.json.Decoder(list[Message])
BLOCKS = msgspec.json.Decoder(str | list[Block] | None)
SOURCE = msgspec.json.Decoder(Source)
TEXT = msgspec.json.Decoder(str)


def inner(raw: msgspec.Raw, kind: msgspec.json.Decoder[T], place: str) -> T:
    """Decode a member that was left as sent."""
    try:
        return kind.decode(raw)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"`{place}`: {error}", param=place) from error


def blocks_of(raw: msgspec.Raw, place: str) -> list[Block]:
    """Give content inside a block as blocks; none where there is none."""
    found = inner(raw, BLOCKS, place)
    if isinstance(found, str):
        return [Block("text", text=found)]
    return found or []
