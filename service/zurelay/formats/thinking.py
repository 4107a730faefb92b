"""Reasoning that must find its way back to the model that made it, through a client of the other format (SPEC 9).

A Messages model signs its reasoning, and takes it back only signed and unchanged. A chat client gets it twice: as
`reasoning_content`, to read, and as `thinking_blocks`, to send back: a list of `{"type": "thinking", "thinking",
"signature"}` and `{"type": "redacted_thinking", "data"}`. OpenAI's SDK keeps fields that it doesn't know, so a message
that was dumped and sent back has them. A block that didn't stand first also has `at`: after how many characters of the
content and how many tool calls it stood. In a stream a block comes whole at its end, with an `index`, as the SDK's own
accumulator wants it. A client that sends back no blocks loses nothing but the reasoning itself.

An OpenAI-format model doesn't sign. A Messages client gets its reasoning under a signature of ours that names the
model; only that model gets it back, as `reasoning_content`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.formats.blocks import Block, RedactedThinking, Text, Thinking, ToolUse
from zurelay.jsonedit import Document, elements

_OURS = "zurelay:"


class ChatThinking(msgspec.Struct):
    """A thinking block as a chat client has it; fields of other kinds of blocks are left out."""

    type: str
    thinking: str = ""
    signature: str | None = None
    data: str | None = None
    at: tuple[int, int] = (0, 0)

    def block(self) -> Thinking | RedactedThinking | None:
        """Give the block that its provider made; None for one that no provider would take."""
        if self.type == "thinking" and self.signature:
            return Thinking(self.thinking, self.signature)
        if self.type == "redacted_thinking" and self.data:
            return RedactedThinking(self.data)
        return None


def for_chat(block: Thinking | RedactedThinking, at: tuple[int, int], index: int | None = None) -> dict[str, Any]:
    """Write a thinking block for a chat client: whole, or the `index`th of a stream."""
    found: dict[str, Any] = {} if index is None else {"index": index}
    found |= msgspec.to_builtins(block)
    if at != (0, 0):
        found["at"] = at
    return found


def in_order(thoughts: list[ChatThinking], texts: list[Text], calls: list[ToolUse]) -> list[Block]:
    """Put thinking back between the texts and calls where it stood; texts in between are cut where it was.

    Messages takes no thinking at the end of what the model said.
    """
    whole = "".join(text.text for text in texts)
    found: list[Block] = []
    said = called = 0
    for thought in thoughts:
        block = thought.block()
        if block is None:
            continue
        until, calls_until = max(said, thought.at[0]), max(called, thought.at[1])
        if whole[said:until].strip():
            found.append(Text(whole[said:until]))
            said = until
        found += calls[called:calls_until]
        called = calls_until
        found.append(block)
    if said == 0:
        found += texts
    elif whole[said:].strip():
        found.append(Text(whole[said:]))
    found += calls[called:]
    while found and isinstance(found[-1], Thinking | RedactedThinking):
        found.pop()
    return found


def signature(upstream: str) -> str:
    """Give the signature that stands for a model that doesn't sign."""
    return _OURS + upstream


def strip_unsigned(body: bytes) -> bytes:
    """Take thinking that no provider signed out of a Messages request, which Anthropic would refuse for it.

    For requests that otherwise pass as sent: the turns before may have been another provider's.
    """
    if _OURS.encode() not in body:
        return body
    document = Document.parse(body)
    messages = document.raw("messages")
    if messages is None or not messages.startswith(b"["):
        return body
    sent = elements(messages, param="messages")
    kept = [_strip(message) for message in sent]
    if kept == sent:
        return body
    return document.edit({"messages": b"[" + b",".join(message for message in kept if message is not None) + b"]"})


def _strip(message: bytes) -> bytes | None:
    if _OURS.encode() not in message or not message.startswith(b"{"):
        return message
    document = Document.parse(message)
    content = document.raw("content")
    if content is None or not content.startswith(b"["):
        return message
    blocks = elements(content)
    kept = [block for block in blocks if not _is_unsigned(block)]
    if len(kept) == len(blocks):
        return message
    return document.edit({"content": b"[" + b",".join(kept) + b"]"}) if kept else None


def _is_unsigned(block: bytes) -> bool:
    if _OURS.encode() not in block:
        return False
    try:
        read = msgspec.json.decode(block, type=ChatThinking)
    except msgspec.ValidationError:
        return False
    return read.type == "thinking" and (read.signature or "").startswith(_OURS)
