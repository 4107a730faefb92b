"""Chat's messages as the system prompt and turns of a Messages request.

- system and developer messages, wherever they stand, make up the system prompt: not every model takes them among the
  turns. Where nothing else was said they are the user's turn.
- messages of one side in a row are one turn; tool messages are results at the head of the user's turn.
- a user's `name` stands before its text, as `name: `; other names, and an image's `detail`, have no counterpart.
- blank texts and messages are left out, as Messages takes none; an empty last message of the user is refused.
- every call needs its one result, and every result its call, before the model speaks again.
- ids of calls that Messages doesn't take, or that came before, are changed; arguments: see `arguments`.
- thinking_blocks go back where they stood (see `thinking`); reasoning_content without them is only for reading.
"""

from __future__ import annotations

import re
from typing import NoReturn

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.formats import attachments
from zurelay.formats.arguments import to_input
from zurelay.formats.blocks import Block, Document, Image, Text, ToolResult, ToolUse, Turn
from zurelay.formats.chat_messages import MESSAGES, Message, Part
from zurelay.formats.fields import Fields
from zurelay.formats.thinking import in_order

_BAD_ID = re.compile(r"[^a-zA-Z0-9_-]")


class Talk(msgspec.Struct):
    """A conversation in Messages' terms."""

    system: list[Text]
    turns: list[Turn]
    tool_names: list[str]


def translate(fields: Fields, *, keep_thinking: bool) -> Talk:
    """Take `messages`; InvalidRequest names the message that can't be translated."""
    messages = fields.take("messages", MESSAGES)
    if not messages:
        raise InvalidRequest("`messages` is empty: send at least one message.", param="messages")
    builder = _Builder(keep_thinking=keep_thinking)
    for index, message in enumerate(messages):
        builder.add(message, index)
    return builder.end()


class _Builder:
    """The turns so far, and the calls that wait for results."""

    __slots__ = ("_blank", "_caller", "_keep_thinking", "_names", "_pending", "_results", "_system", "_turns", "_used")

    def __init__(self, *, keep_thinking: bool) -> None:
        self._keep_thinking = keep_thinking
        self._system: list[Text] = []
        self._turns: list[Turn] = []
        self._names: dict[str, None] = {}
        self._used: set[str] = set()
        self._pending: dict[str, str] = {}  # id as sent -> id for the provider
        self._caller = 0  # the message that made the pending calls
        self._results = 0  # results at the head of the user's turn
        self._blank: int | None = None  # the last message, if the user said nothing in it

    def add(self, message: Message, index: int) -> None:
        """Add a message by its role."""
        match message.role:
            case "system" | "developer":
                self._system += _texts(message, index)
            case "user":
                self._add_user(message, index)
            case "assistant":
                self._add_assistant(message, index)
            case "tool":
                self._add_result(message, index)
            case "function":
                _refuse(f"messages[{index}].role", "function messages are out of date: use tools and tool messages.")
            case _:
                _refuse(
                    f"messages[{index}].role",
                    f"{message.role[:40]!r} is no role: send system, user, assistant or tool.",
                )

    def end(self) -> Talk:
        """Give the whole conversation, if it can stand as it is."""
        self._expect_no_calls()
        if self._blank is not None and (self._turns[-1].role == "assistant" if self._turns else not self._system):
            _refuse(f"messages[{self._blank}].content", "the last message says nothing: send some text.")
        if not self._turns:
            if not self._system:
                _refuse("messages", "nothing is said in them: send some text.")
            self._turns.append(Turn("user", list(self._system)))
            self._system = []
        last = self._turns[-1]
        if last.role == "assistant" and isinstance(last.content[-1], Text):
            last.content[-1].text = last.content[-1].text.rstrip()  # Messages refuses white space at the very end
        return Talk(self._system, self._turns, list(self._names))

    def _turn(self, role: str) -> list[Block]:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(Turn(role, []))
            self._results = 0
        return self._turns[-1].content

    def _add_user(self, message: Message, index: int) -> None:
        blocks = self._blocks(message, index)
        self._blank = None if blocks else index
        if not blocks:
            return
        if message.name:
            if isinstance(blocks[0], Text):
                blocks[0].text = f"{message.name}: {blocks[0].text}"
            else:
                blocks.insert(0, Text(f"{message.name}:"))
        self._turn("user").extend(blocks)

    def _add_assistant(self, message: Message, index: int) -> None:
        if message.function_call is not None:
            _refuse(f"messages[{index}].function_call", "it is out of date: use tool_calls and tool messages.")
        if message.audio is not None:
            _refuse(f"messages[{index}].audio", "this model hears no audio: send what was said as content.")
        calls = self._calls(message, index)
        texts = _texts(message, index)
        if message.refusal and not message.refusal.isspace():
            texts.append(Text(message.refusal))
        thoughts = (message.thinking_blocks if self._keep_thinking else None) or []
        blocks = in_order(thoughts, texts, calls)
        self._blank = None
        if blocks:
            self._turn("assistant").extend(blocks)

    def _calls(self, message: Message, index: int) -> list[ToolUse]:
        self._expect_no_calls()
        self._caller = index
        calls = []
        for at, call in enumerate(message.tool_calls or ()):
            place = f"messages[{index}].tool_calls[{at}]"
            if call.type != "function" or call.function is None:
                _refuse(place, "this model can have called functions only.")
            if call.id in self._pending:
                _refuse(f"{place}.id", "another call of this message has the same id.")
            self._pending[call.id] = sent = self._new_id(call.id)
            self._names[call.function.name] = None
            calls.append(ToolUse(sent, call.function.name, to_input(call.function.arguments)))
        return calls

    def _new_id(self, wanted: str) -> str:
        base = sent = _BAD_ID.sub("_", wanted) or "call"
        while sent in self._used:
            sent = f"{base}_{len(self._used)}"
        self._used.add(sent)
        return sent

    def _expect_no_calls(self) -> None:
        if self._pending:
            missing = next(iter(self._pending))
            place = f"messages[{self._caller}].tool_calls"
            _refuse(place, f"no tool message answers the call {missing[:64]!r}: send one right behind it.")

    def _add_result(self, message: Message, index: int) -> None:
        place = f"messages[{index}].tool_call_id"
        if message.tool_call_id is None:
            _refuse(place, "name the call that this is the result of.")
        sent = self._pending.pop(message.tool_call_id, None)
        if sent is None:
            _refuse(
                place,
                f"no call {message.tool_call_id[:64]!r} waits for a result: send each call's result once, behind it.",
            )
        result = ToolResult(sent)
        blocks = self._blocks(message, index)
        if blocks:
            only = blocks[0] if len(blocks) == 1 else None
            if isinstance(only, Text):
                result.content, result.cache_control = only.text, only.cache_control
            else:
                result.content = blocks
        self._turn("user").insert(self._results, result)  # results stand first, whatever came between
        self._results += 1
        self._blank = None

    def _blocks(self, message: Message, index: int) -> list[Text | Image | Document]:
        """Translate what a user or a tool says."""
        if isinstance(message.content, str):
            return [*_texts(message, index)]
        found: list[Text | Image | Document] = []
        for at, part in enumerate(message.parts()):
            if _is_blank(part):
                continue
            place = f"messages[{index}].content[{at}]"
            if part.type == "image_url" and part.image_url is not None:
                found.append(attachments.image(part.image_url.url, f"{place}.image_url.url", part.cache))
            elif part.type == "file" and part.file is not None:
                file = part.file
                if file.file_data is None:
                    raise attachments.unsupported(
                        f"{place}.file", "this model can't fetch files by id: send file_data."
                    )
                found.append(attachments.document(file.file_data, file.filename, f"{place}.file.file_data", part.cache))
            else:
                found.append(_text(part, place))
        return found


def _texts(message: Message, index: int) -> list[Text]:
    """Translate what is text only."""
    if isinstance(message.content, str):
        content = message.content
        return [] if not content or content.isspace() else [Text(content, message.cache_control or None)]
    parts = message.parts()
    return [_text(part, f"messages[{index}].content[{at}]") for at, part in enumerate(parts) if not _is_blank(part)]


def _text(part: Part, place: str) -> Text:
    text = _said(part)
    if text is None:
        raise attachments.unsupported(place, f"this model reads no content of type {part.type[:40]!r} here.")
    return Text(text, part.cache)


def _said(part: Part) -> str | None:
    return part.refusal if part.type == "refusal" else part.text if part.type == "text" else None


def _is_blank(part: Part) -> bool:
    said = _said(part)
    return said is not None and (not said or said.isspace())


def _refuse(place: str, message: str) -> NoReturn:
    raise InvalidRequest(f"`{place}`: {message}", param=place)
