"""One event of an Anthropic-format stream, read for what decides: tokens, finishes, errors (SPEC 8).

Members may be of any type: what isn't what we expect counts as absent, and the event passes as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import surrogates
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

    @property
    def spoken(self) -> int:
        """How many bytes of text the model said here."""
        text = self.text or self.thinking or self.partial_json
        if not isinstance(text, str):
            return 0
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


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

    usage: Any = None


class MessageEvent(msgspec.Struct, gc=False):
    """An event of any type. `error` is the bytes of whatever stands there."""

    type: Any = None
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | None = None
    usage: Any = None
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_error(self) -> bool:
        """Whether it tells an error: by its type, or, where it has none, as other APIs do."""
        return self.type == "error" or (not self.type and bytes(self.error) not in _NO_ERROR)


class _Head(msgspec.Struct, gc=False):
    """What is read of an event whose members aren't as we know them."""

    type: Any = None
    error: msgspec.Raw = msgspec.Raw()


_NO_ERROR = (b"", b"null", b"{}", b"[]", b'""', b"false")
_EVENT = msgspec.json.Decoder(MessageEvent)
_HEAD = msgspec.json.Decoder(_Head)


def read(data: bytes, name: str = "") -> MessageEvent | None:
    """Decode an event; None where its data is no object. `name` stands in for a type that the data doesn't say."""
    found = _decoded(data)
    if found is None and (hidden := surrogates.hidden(data)) is not None:
        found = _decoded(hidden)
    if found is not None and not found.type and not found.is_error:
        found.type = name
    return found


def _decoded(data: bytes) -> MessageEvent | None:
    try:
        return _EVENT.decode(data)
    except msgspec.ValidationError:
        return _loosely(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _loosely(data: bytes) -> MessageEvent | None:
    try:
        head = _HEAD.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return MessageEvent(type=head.type, error=head.error)


def seen(name: str, data: bytes | None) -> Seen:
    """Classify an event of a messages stream that has not had its first token yet."""
    if data is None or not data.strip():
        return Seen.NOTHING
    event = read(data, name)
    if name == "error" or (event is not None and event.is_error):
        return Seen.ERROR
    if event is None:
        return Seen.BAD
    if event.type == "message_stop":
        return Seen.END
    said = event.delta is not None and event.delta.has_token
    begun = event.content_block is not None and event.content_block.has_token
    return Seen.TOKEN if said or begun else Seen.NOTHING
