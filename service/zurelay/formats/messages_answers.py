"""What a Messages provider answers, read so that kinds of blocks that we don't know are passed over."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.formats.arguments import to_arguments
from zurelay.formats.blocks import RedactedThinking, Thinking
from zurelay.formats.contract import BadAnswer

NO_INPUT = b"{}"
REFUSED = "The model declined to answer this request."
"""What a refusal says where the provider doesn't say why."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_KINDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


class Content(msgspec.Struct):
    """A block of a kind that we know."""

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(NO_INPUT)

    def thought(self) -> Thinking | RedactedThinking | None:
        """Give the thinking that can be sent back; None where there is no signature to send it under."""
        if self.type == "redacted_thinking":
            return RedactedThinking(self.data) if self.data else None
        return Thinking(self.thinking or "", self.signature) if self.signature else None


class _Kind(msgspec.Struct):
    type: str = ""


class StopDetails(msgspec.Struct):
    """Why a model stopped, where it was a refusal."""

    explanation: str | None = None


class Message(msgspec.Struct):
    """A complete answer."""

    content: list[msgspec.Raw]
    stop_reason: str | None = None
    stop_details: StopDetails | None = None
    usage: dict[str, Any] | None = None


_KIND = msgspec.json.Decoder(_Kind)
_CONTENT = msgspec.json.Decoder(Content)


def content(raw: bytes | msgspec.Raw) -> Content | None:
    """Read a block; None for one of a kind that chat has no place for (searches, code runs, kinds to come)."""
    try:
        if _KIND.decode(raw).type not in _KINDS:
            return None
        return _CONTENT.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"a content block: {error}") from error


def arguments(block: Content) -> str:
    """Give a tool call's arguments as chat has them."""
    try:
        return to_arguments(block.input)
    except UnicodeDecodeError as error:
        raise BadAnswer(f"a tool call's input: {error}") from error


def finish_reason(stop_reason: str | None, *, calls: bool) -> str:
    """Give chat's word for why the model stopped; reasons to come count as an ordinary stop."""
    if stop_reason in _FINISH and stop_reason != "end_turn":
        return _FINISH[stop_reason]
    return "tool_calls" if calls else "stop"


def refusal(details: StopDetails | None) -> str:
    """Give the words of a refusal."""
    return (details.explanation if details is not None else None) or REFUSED
