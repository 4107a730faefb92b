"""One walk over a decoded request: its text by role, its turns, tools and media. OpenAI chat and Anthropic messages."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from zurelay import media
from zurelay.model import Input


class Role(enum.Enum):
    """Who speaks in a turn. Tool results are a turn of their own, in either format."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


# What no reader sees. Joiners and marks of direction have a meaning between letters, but none at an end.
_UNSEEN = ("\u200b", "\u2060", "\ufeff", "\u00ad")
_BLANK = "".join(char for char in map(chr, range(0x3001)) if char.isspace()) + "\u200c\u200d\u200e\u200f"

_SYSTEM = frozenset({"system", "developer"})
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or one side of it. `calls` and `results` count tool calls and what came back."""

    role: Role
    text: str
    calls: int = 0
    results: int = 0
    media: frozenset[Input] = frozenset()


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What Auto decides from. `tools` counts definitions; `schema` says that structured output is asked."""

    turns: tuple[Turn, ...] = ()
    system: str = ""
    tools: int = 0
    schema: bool = False

    @property
    def media(self) -> frozenset[Input]:
        """Every kind of media in any turn."""
        return frozenset(kind for turn in self.turns for kind in turn.media)


def read(body: Any) -> Content:
    """Read a decoded request. What has the wrong type counts as absent; nothing raises."""
    if not isinstance(body, Mapping):
        return Content()
    system = [_text(body.get("system"))]
    turns: list[Turn] = []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        name = message.get("role")
        if isinstance(name, str) and name in _SYSTEM:
            system.append(_text(message.get("content")))
        elif isinstance(name, str) and name in _ROLES:
            turns.extend(_turns(_ROLES[name], message))
    return Content(
        turns=tuple(turns),
        system=_visible("\n".join(text for text in system if text)),
        tools=sum(len(tools) for key in ("tools", "functions") if isinstance(tools := body.get(key), list)),
        schema=_asks_schema(body),
    )


def _turns(role: Role, message: Mapping[str, Any]) -> list[Turn]:
    content = message.get("content")
    if role is Role.TOOL:
        kinds = frozenset(kind for _, kind in media.parts(content))
        return [Turn(role=role, text=_visible(_text(content)), results=1, media=kinds)]
    calls = _calls(message)
    if isinstance(content, str):
        return [Turn(role=role, text=_visible(content), calls=calls)]
    texts: list[str] = []
    results: list[str] = []
    own: set[Input] = set()
    returned: set[Input] = set()
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(kind, str) and kind.endswith("tool_result"):
            results.append(_text(part.get("content")))
            returned.update(kind for _, kind in media.parts(part.get("content")))
        else:
            calls += isinstance(kind, str) and kind.endswith("tool_use")
            texts.append(_text(part))
            own.update(kind for _, kind in media.parts([part]))
    turns = []
    if results:
        text = _visible(_joined(results))
        turns.append(Turn(role=Role.TOOL, text=text, results=len(results), media=frozenset(returned)))
    text = _visible(_joined(texts))
    if text or own or calls or not results:
        turns.append(Turn(role=role, text=text, calls=calls, media=frozenset(own)))
    return turns


def _calls(message: Mapping[str, Any]) -> int:
    listed = message.get("tool_calls")
    return (len(listed) if isinstance(listed, list) else 0) + isinstance(message.get("function_call"), dict)


def _text(content: Any, depth: int = 0) -> str:
    """The text of a string, a part or a list of parts; documents given as text count, thinking doesn't."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and depth <= media.MAX_DEPTH:
        return _joined([_text(part, depth + 1) for part in content])
    if isinstance(content, dict):
        if isinstance(text := content.get("text"), str):
            return text
        source = content.get("source")
        inner = source if isinstance(source, dict) and source.get("type") in ("text", "content") else content
        data = inner.get("data") if inner is source else None
        return _text(inner.get("content") if data is None else data, depth + 1)
    return ""


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else "\n\n".join(text for text in texts if text)


def _visible(text: str) -> str:
    """Give a text without what pads it: space around it, unseen characters, a carriage return before a new line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.strip()
    for unseen in _UNSEEN:
        if unseen in text:
            text = text.replace(unseen, "")
    return text.strip().strip(_BLANK)


def _asks_schema(body: Mapping[str, Any]) -> bool:
    """Whether an answer in a given shape is asked: OpenAI's response_format, Anthropic's output formats."""
    config = body.get("output_config")
    asked = (
        body.get("response_format"),
        body.get("output_format"),
        config.get("format") if isinstance(config, dict) else None,
    )
    return any(isinstance(each, dict) and each.get("type") in ("json_schema", "json_object") for each in asked)
