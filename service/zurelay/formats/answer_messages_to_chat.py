"""A Messages provider's complete answer, written as a chat completion (SPEC 7).

Texts make up the content. Thinking comes back as reasoning_content and thinking_blocks (see `thinking`). A refusal
finishes with content_filter and says why in `refusal`. Blocks of a provider's own tools are passed over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import usage
from zurelay.formats import messages_answers
from zurelay.formats.anthropic_usage import from_anthropic
from zurelay.formats.contract import Answer, BadAnswer, Stamp
from zurelay.formats.failures import complaint
from zurelay.formats.messages_answers import Content, Message
from zurelay.formats.thinking import for_chat

_MESSAGE = msgspec.json.Decoder(Message)


def response(body: bytes, stamp: Stamp) -> bytes:
    """Translate an answer's body; BadAnswer if it is none."""
    return answer(body, stamp).body


def answer(body: bytes, stamp: Stamp) -> Answer:
    """Translate an answer, and read from it what was used; BadAnswer if it is none."""
    message = _read(body)
    said = _Said()
    for raw in message.content:
        block = messages_answers.content(raw)
        if block is not None:
            said.add(block)
    used = None if message.usage is None else from_anthropic(message.usage)
    finish = messages_answers.finish_reason(message.stop_reason, calls=bool(said.calls))
    out: dict[str, Any] = {
        "id": f"chatcmpl-{stamp.id}",
        "object": "chat.completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [{"index": 0, "message": said.message(message), "logprobs": None, "finish_reason": finish}],
    }
    if used is not None:
        out["usage"] = usage.as_openai(used)
    return Answer(msgspec.json.encode(out), used, finish)


def _read(body: bytes) -> Message:
    try:
        return _MESSAGE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(complaint(body, error)) from error


class _Said:
    """What the blocks say, sorted into the members of chat's message."""

    __slots__ = ("calls", "reasoning", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasoning: list[str] = []
        self.thoughts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []

    def add(self, block: Content) -> None:
        if block.type == "text":
            self.texts.append(block.text or "")
        elif block.type == "tool_use":
            self.calls.append(_call(block))
        else:
            self.reasoning.append(block.thinking or "")
            thought = block.thought()
            if thought is not None:
                at = (sum(map(len, self.texts)), len(self.calls))
                self.thoughts.append(for_chat(thought, at))

    def message(self, answer: Message) -> dict[str, Any]:
        refused = answer.stop_reason == "refusal"
        text = "".join(self.texts)
        out: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not (refused or self.calls) else None,
            "refusal": messages_answers.refusal(answer.stop_details) if refused else None,
        }
        reasoning = "".join(self.reasoning)
        if reasoning:
            out["reasoning_content"] = reasoning
        if self.thoughts:
            out["thinking_blocks"] = self.thoughts
        if self.calls:
            out["tool_calls"] = self.calls
        return out


def _call(block: Content) -> dict[str, Any]:
    if not block.id or not block.name:
        raise BadAnswer("a tool call without an id or a name")
    function = {"name": block.name, "arguments": messages_answers.arguments(block)}
    return {"id": block.id, "type": "function", "function": function}
