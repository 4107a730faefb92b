"""Chat's messages as a client may send them: read loosely here, judged where they are translated."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.formats.thinking import ChatThinking


class ImageUrl(msgspec.Struct, gc=False):
    """An image's address, or the image itself as a data URL. `detail` is a hint that Messages has no counterpart of."""

    url: str


class File(msgspec.Struct, gc=False):
    """A file inside a message."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class Breakpoint(msgspec.Struct, gc=False):
    """OpenAI's mark for the prompt cache."""

    ttl: str | None = None


class Part(msgspec.Struct):
    """A part of a message's content, of any type."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None
    file: File | None = None
    cache_control: msgspec.Raw = msgspec.Raw()
    prompt_cache_breakpoint: Breakpoint | None = None

    @property
    def cache(self) -> Any:
        """The cache mark for Messages: its own as sent, or OpenAI's, whose least 30 minutes are an hour there."""
        if self.cache_control and bytes(self.cache_control) != b"null":
            return self.cache_control
        if self.prompt_cache_breakpoint is None:
            return None
        mark = {"type": "ephemeral"}
        return mark if self.prompt_cache_breakpoint.ttl is None else {**mark, "ttl": "1h"}


class Function(msgspec.Struct, gc=False):
    """What a call calls."""

    name: str
    arguments: str = ""


class ToolCall(msgspec.Struct):
    """A call that the model made in an earlier turn."""

    id: str
    type: str = "function"
    function: Function | None = None


class Message(msgspec.Struct):
    """A message of any role."""

    role: str
    content: str | list[Part] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    function_call: Any = None
    audio: Any = None
    thinking_blocks: list[ChatThinking] | None = None
    cache_control: msgspec.Raw = msgspec.Raw()

    def parts(self) -> list[Part]:
        """Give the content as parts; a mark for the cache on the message is one on its last part."""
        if self.content is None:
            return []
        if isinstance(self.content, str):
            return [Part("text", text=self.content, cache_control=self.cache_control)]
        if self.content and self.cache_control and not self.content[-1].cache_control:
            self.content[-1].cache_control = self.cache_control
        return self.content


MESSAGES = msgspec.json.Decoder(list[Message])
