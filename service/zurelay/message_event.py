"""One event of an Anthropic-format stream, read for what decides: tokens, finishes, errors (SPEC 8)."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.chunk import Seen


class Delta(msgspec.Struct, gc=False):
    """What an event adds: to a block, or to the message at its end."""

    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    stop_reason: Any = None

    @property
    def has_token(self) -> bool:
        """Whether the model said anything here, or ended."""
        return bool(self.text or self.thinking or self.partial_json or self.stop_reason)


class Block(msgspec.Struct, gc=False):
    """The start of a content block."""

    type: Any = None
    text: Any = None
    thinking: Any = None

    @property
    def has_token(self) -> bool:
        """Whether the block is content by itself: all but text and thinking that have yet to come."""
        return bool(self.text or self.thinking) or self.type not in ("text", "thinking", None)


class Message(msgspec.Struct, gc=False):
    """The head of a message."""

    model: Any = None
    usage: dict[str, Any] | None = None


class MessageEvent(msgspec.Struct, gc=False):
    """An event of any type; those that we don't know pass as they are."""

    type: Any = None
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(MessageEvent)
_any = msgspec.json.Decoder(dict[str, Any])


def read(data: bytes) -> MessageEvent | None:
    """Decode an event's data; None where it is no object. Members of unknown events may have any type."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return _loosely(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _loosely(data: bytes) -> MessageEvent | None:
    try:
        value = _any.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return MessageEvent(type=value.get("type"), error=value.get("error"))


def seen(name: str, data: bytes | None) -> Seen:
    """Classify an event of a messages stream that has not had its first token yet."""
    if data is None or not data.strip():
        return Seen.NOTHING
    event = read(data)
    if name == "error" or (event is not None and (event.type == "error" or event.error)):
        return Seen.ERROR
    if event is None:
        return Seen.BAD
    if event.type == "message_stop":
        return Seen.END
    said = event.delta is not None and event.delta.has_token
    begun = event.content_block is not None and event.content_block.has_token
    return Seen.TOKEN if said or begun else Seen.NOTHING
