"""The events of a Messages stream, read so that kinds that we don't know are passed over."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.formats.contract import BadAnswer
from zurelay.formats.messages_answers import StopDetails


class Delta(msgspec.Struct, gc=False):
    """What an event adds: to a block, or to the message at its end."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class MessageStart(msgspec.Struct):
    """What is known of a message before it is said."""

    usage: dict[str, Any] | None = None


class Event(msgspec.Struct):
    """An event of any type."""

    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: msgspec.Raw = msgspec.Raw(b"{}")
    message: MessageStart | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class _Kind(msgspec.Struct):
    type: str = ""


class _Inner(msgspec.Struct):
    delta: _Kind | None = None


_EVENT = msgspec.json.Decoder(Event)
_KIND = msgspec.json.Decoder(_Kind)
_INNER = msgspec.json.Decoder(_Inner)
_EVENTS = frozenset(
    {
        *("message_start", "message_delta", "message_stop", "error"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
_DELTAS = frozenset({"text_delta", "thinking_delta", "signature_delta", "input_json_delta"})


def read(name: str, data: bytes) -> Event | None:
    """Decode an event; None for one that gives nothing. Members of kinds that we don't know may have any type."""
    try:
        event = _EVENT.decode(data)
    except msgspec.ValidationError as error:
        if not _is_known(name, data):
            return None
        raise BadAnswer(f"an event: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"an event: {error}") from error
    event.type = event.type or ("error" if event.error is not None else name)
    return event if event.type in _EVENTS else None


def _is_known(name: str, data: bytes) -> bool:
    try:
        kind = _KIND.decode(data).type or name
        if kind != "content_block_delta":
            return kind in _EVENTS
        delta = _INNER.decode(data).delta
    except msgspec.ValidationError:
        return True
    return delta is None or delta.type in _DELTAS
