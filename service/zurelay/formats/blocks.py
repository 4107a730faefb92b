"""The content blocks of the Messages format that we write, and the turns that hold them (Anthropic API reference)."""

from __future__ import annotations

from typing import Any

import msgspec


class Base64(msgspec.Struct, tag="base64", gc=False):
    """Bytes of an image or a document."""

    media_type: str
    data: str


class Url(msgspec.Struct, tag="url", gc=False):
    """Where the provider fetches an image or a document."""

    url: str


class PlainText(msgspec.Struct, tag="text", gc=False):
    """A document that is text."""

    media_type: str
    data: str


class Text(msgspec.Struct, tag="text", omit_defaults=True):
    """Text; `cache_control` is the client's own, as sent."""

    text: str
    cache_control: Any = None


class Image(msgspec.Struct, tag="image", omit_defaults=True):
    """An image."""

    source: Base64 | Url
    cache_control: Any = None


class Document(msgspec.Struct, tag="document", omit_defaults=True):
    """A PDF or a text file."""

    source: Base64 | PlainText
    title: str | None = None
    cache_control: Any = None


class ToolUse(msgspec.Struct, tag="tool_use"):
    """A tool call of the model."""

    id: str
    name: str
    input: msgspec.Raw


class ToolResult(msgspec.Struct, tag="tool_result", omit_defaults=True):
    """What a tool gave back."""

    tool_use_id: str
    content: str | list[Text | Image | Document] | None = None
    cache_control: Any = None


class Thinking(msgspec.Struct, tag="thinking", gc=False):
    """Reasoning, signed by the provider that made it."""

    thinking: str
    signature: str


class RedactedThinking(msgspec.Struct, tag="redacted_thinking", gc=False):
    """Reasoning that only its provider can read."""

    data: str


Block = Text | Image | Document | ToolUse | ToolResult | Thinking | RedactedThinking


class Turn(msgspec.Struct):
    """A message: all that one side said before the other spoke."""

    role: str
    content: list[Block]
