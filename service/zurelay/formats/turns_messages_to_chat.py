"""Messages' system prompt and turns as chat's messages.

- text blocks of one message are one string, with blank lines between those of the user and the system.
- results become tool messages right behind their calls; images in them go to the user's message behind, as chat's tool
  messages hold text only; is_error is said in words.
- thinking that the same model gave us goes back as reasoning_content; other models' thinking is left out.
- blocks that chat has no counterpart of (a provider's own tools) are refused for a model that the client named, and
  dropped for another. cache_control is left out: OpenAI's cache needs none.
"""

from __future__ import annotations

from typing import Any, NoReturn

from zurelay.errors import InvalidRequest
from zurelay.formats import parts_messages_to_chat as parts
from zurelay.formats.arguments import to_arguments
from zurelay.formats.contract import Target
from zurelay.formats.fields import Fields
from zurelay.formats.messages_requests import BLOCKS, MESSAGES, Block, Message, blocks_of
from zurelay.formats.thinking import signature

_ERROR = "Error"


def translate(fields: Fields, target: Target) -> list[dict[str, Any]]:
    """Take `system` and `messages`; InvalidRequest names the message that can't be translated."""
    builder = _Builder(target)
    system = fields.take("system", BLOCKS)
    if system:
        builder.add(Message("system", system), "system")
    messages = fields.take("messages", MESSAGES)
    if not messages:
        raise InvalidRequest("`messages` is empty: send at least one message.", param="messages")
    for index, message in enumerate(messages):
        builder.add(message, f"messages[{index}]")
    return builder.end()


class _Builder:
    """The messages so far, and the calls that wait for results."""

    __slots__ = ("_caller", "_messages", "_named", "_pending", "_results", "_signature", "_spoken")

    def __init__(self, target: Target) -> None:
        self._named = target.named
        self._signature = signature(target.model)
        self._messages: list[dict[str, Any]] = []
        self._pending: set[str] = set()
        self._caller = ""  # the message that made the pending calls
        self._results = 0  # where the next result goes: behind the calls, whatever came between
        self._spoken = False

    def add(self, message: Message, place: str) -> None:
        """Add a message by its role."""
        match message.role:
            case "system":
                said = self._parts(message.blocks(), place)
                if any(part["type"] != "text" for part in said):
                    _refuse(place, "the system's words can be text only.")
                if said:
                    self._messages.append({"role": "system", "content": parts.content(said)})
            case "user":
                self._add_user(message.blocks(), place)
            case "assistant":
                self._add_assistant(message.blocks(), place)
            case _:
                _refuse(f"{place}.role", f"{message.role[:40]!r} is no role: send user or assistant.")

    def end(self) -> list[dict[str, Any]]:
        """Give all messages, if they can stand as they are."""
        self._expect_no_calls()
        if not self._spoken:
            _refuse("messages", "nothing is said in them: send some text.")
        return self._messages

    def _add_user(self, blocks: list[Block], place: str) -> None:
        said: list[parts.Part] = []
        attached: list[parts.Part] = []
        for index, block in enumerate(blocks):
            at = f"{place}.content[{index}]"
            if block.type == "tool_result":
                attached += self._add_result(block, at)
            else:
                said += self._block(block, at)
        if attached or said:
            self._messages.append({"role": "user", "content": parts.content([*attached, *said])})
            self._spoken = True

    def _add_result(self, block: Block, place: str) -> list[parts.Part]:
        """Add a tool message; give what it can't hold."""
        call = block.tool_use_id or ""
        if call not in self._pending:
            _refuse(place, f"no tool_use {call[:64]!r} waits for a result: send each one's result once, behind it.")
        self._pending.discard(call)
        found = self._parts(blocks_of(block.content, f"{place}.content"), f"{place}.content")
        text = parts.content([part for part in found if part["type"] == "text"])
        if block.is_error and not str(text).lower().startswith(_ERROR.lower()):
            text = f"{_ERROR}: {text}" if text else _ERROR
        self._messages.insert(self._results, {"role": "tool", "tool_call_id": call, "content": text})
        self._results += 1
        self._spoken = True
        media = [part for part in found if part["type"] != "text"]
        return [{"type": "text", "text": f"Attached to the result of the call {call}:"}, *media] if media else []

    def _add_assistant(self, blocks: list[Block], place: str) -> None:
        self._expect_no_calls()
        texts: list[str] = []
        reasoning: list[str] = []
        calls: list[dict[str, Any]] = []
        for index, block in enumerate(blocks):
            if block.type == "tool_use":
                calls.append(self._call(block, f"{place}.content[{index}]"))
            elif block.type == "thinking":
                if block.signature == self._signature:
                    reasoning.append(block.thinking or "")
            elif block.type == "text":
                texts.append(block.text or "")
            elif block.type != "redacted_thinking":
                self._unmapped(block, f"{place}.content[{index}]")
        text = "".join(texts)
        if not text and not calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if reasoning:
            message["reasoning_content"] = "".join(reasoning)
        if calls:
            message["tool_calls"] = calls
        self._messages.append(message)
        self._caller, self._results, self._spoken = place, len(self._messages), True

    def _call(self, block: Block, place: str) -> dict[str, Any]:
        if not block.id or not block.name:
            _refuse(place, "a tool_use needs an id and a name.")
        if block.id in self._pending:
            _refuse(f"{place}.id", "another tool_use of this message has the same id.")
        self._pending.add(block.id)
        function = {"name": block.name, "arguments": to_arguments(block.input)}
        return {"id": block.id, "type": "function", "function": function}

    def _expect_no_calls(self) -> None:
        if self._pending:
            _refuse(
                self._caller, f"no tool_result answers the tool_use {min(self._pending)[:64]!r}: send one behind it."
            )

    def _parts(self, blocks: list[Block], place: str) -> list[parts.Part]:
        return [part for index, block in enumerate(blocks) for part in self._block(block, f"{place}[{index}]")]

    def _block(self, block: Block, place: str) -> list[parts.Part]:
        found = parts.translate(block, place)
        if found is None:
            self._unmapped(block, place)
        return found or []

    def _unmapped(self, block: Block, place: str) -> None:
        if self._named:
            _refuse(place, f"this model's provider has no counterpart of {block.type[:60]!r}: leave the block out.")


def _refuse(place: str, message: str) -> NoReturn:
    raise InvalidRequest(f"`{place}`: {message}", param=place)
