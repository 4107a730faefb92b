"""One chunk of an OpenAI-format stream, read for what decides: tokens, finishes, usage, errors (SPEC 8)."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from zurelay import surrogates


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds to a choice; `reasoning` and `reasoning_content` are one thing by two names."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None
    audio: Any = None
    images: Any = None

    @property
    def has_token(self) -> bool:
        """Whether the model said anything here."""
        return bool(
            self.content
            or self.reasoning_content
            or self.reasoning
            or self.refusal
            or self.tool_calls
            or self.function_call
            or self.audio
            or self.images
        )


class Choice(msgspec.Struct, gc=False):
    """One choice's part of a chunk. Some send an empty finish_reason until there is one."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct, gc=False):
    """A chunk. `model` is what the provider calls it; `usage` is an object's bytes, or whatever stands there."""

    choices: list[Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: Any = None
    model: Any = None

    @property
    def used(self) -> bytes | None:
        """The usage object's bytes; None where the provider gave none."""
        raw = bytes(self.usage)
        return raw if raw.startswith(b"{") else None

    @property
    def has_token(self) -> bool:
        """Whether this is a first token: content, reasoning, refusal, a tool call, or a finish."""
        return any(
            choice.finish_reason or (choice.delta is not None and choice.delta.has_token)
            for choice in self.choices or ()
        )


_decoder = msgspec.json.Decoder(Chunk)


def read(data: bytes) -> Chunk | None:
    """Decode an event's data; None where it is no chunk."""
    found = _decoded(data)
    if found is None and (hidden := surrogates.hidden(data)) is not None:
        found = _decoded(hidden)
    return found


def _decoded(data: bytes) -> Chunk | None:
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


class Seen(enum.Enum):
    """What an event means to one who waits for the first token."""

    NOTHING = "nothing"
    TOKEN = "token"  # noqa: S105  # an event's kind, not a secret
    ERROR = "error"
    BAD = "bad"
    END = "end"


def seen(name: str, data: bytes | None) -> Seen:
    """Classify an event of a chat stream that has not had its first token yet."""
    if data is None or not data.strip():
        return Seen.NOTHING
    if data.strip() == b"[DONE]":
        return Seen.END
    chunk = read(data)
    if name == "error" or (chunk is not None and chunk.error):
        return Seen.ERROR
    if chunk is None:
        return Seen.BAD
    return Seen.TOKEN if chunk.has_token else Seen.NOTHING
