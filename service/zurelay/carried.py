"""What a request may hold beside text, as a policy that denies inputs must see it: nothing may slip by under a name.

What is declared counts, and so does what the data says it is (`media.py` lets the data decide: for choosing a model
that is right). What nobody here can tell apart, a part of an unknown type or a file known by its id alone, may be
anything. Providers differ in what they read, so whatever names itself after media counts, wherever it stands.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from zurelay import media
from zurelay.model import Input
from zurelay.problems import shown

_MEDIA = frozenset(Input) - {Input.TEXT}
_FILES = frozenset({"file", "input_file"})
_SOURCES = frozenset({"base64", "url", "file"})  # where Anthropic's documents come from, text apart
# Part types that are text to a model, of OpenAI chat and Anthropic messages.
_TEXTS = frozenset(
    {
        *("text", "input_text", "output_text", "refusal", "reasoning", "thinking", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_reference", "mcp_tool_use", "mcp_tool_result", "search_result"),
        *("server_tool_use", "web_search_tool_result", "web_search_result", "web_search_tool_result_error"),
        *("web_fetch_tool_result", "web_fetch_result", "web_fetch_tool_result_error"),
    }
)
# Fields that are never media, by where they stand; all others are looked at.
_OF_PARTS = frozenset(
    {
        *("type", "text", "thinking", "refusal", "signature", "input", "id", "name", "tool_use_id", "title", "context"),
        *("encrypted_content", "cache_control", "citations"),
    }
)
_OF_MESSAGES = frozenset(
    {
        *("role", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "annotations"),
        *("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"),
    }
)
_OF_REQUESTS = frozenset(
    {
        *("model", "tools", "tool_choice", "functions", "function_call", "response_format", "output_config"),
        *("metadata", "modalities", "audio", "logit_bias"),  # audio: how the answer is to sound
    }
)
_NAMES: tuple[tuple[re.Pattern[str], frozenset[Input]], ...] = tuple(
    (re.compile(rf"(?:^|[_-])(?:{words})(?:$|[_-])"), kinds)
    for words, kinds in (
        ("images?|img|pictures?|photos?", frozenset({Input.IMAGE})),
        ("audios?|sounds?|voices?", frozenset({Input.AUDIO})),
        ("videos?", frozenset({Input.VIDEO})),
        ("pdfs?", frozenset({Input.PDF})),
        ("files?|attachments?|media|multi_modal_data", _MEDIA),
    )
)
_MOST_LEVELS = 64  # of a field that the formats don't have
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TWICE = object()
_Utf8 = codecs.getincrementaldecoder("utf-8")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


class Carried(msgspec.Struct, frozen=True):
    """The kinds that a request certainly holds, and what in it may be any other; empty where there is nothing such."""

    kinds: frozenset[Input] = frozenset()
    doubt: str = ""


def carried(data: bytes) -> Carried:
    """Look through a request of either format."""
    walk = _Walk()
    try:
        walk.request(json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str))
    except RecursionError:
        walk.doubt = _TOO_DEEP
    return Carried(frozenset(walk.kinds), walk.doubt)


_TOO_DEEP = "something nested too deep to be looked into"


def _object(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """Make an object; of a key that stands twice, who knows which one the provider reads. Go's readers mind no case."""
    found: dict[Any, Any] = dict(pairs)
    if len({name.lower() for name, _ in pairs}) < len(pairs):
        found[_TWICE] = True
    return found


class _Walk:
    """One look through a request; what is found adds up."""

    __slots__ = ("doubt", "kinds")

    def __init__(self) -> None:
        self.kinds: set[Input] = set()
        self.doubt = ""

    def request(self, body: Any) -> None:
        if not self._is_sound(body):
            return
        for name, value in body.items():
            if name == "messages":
                for message in value if isinstance(value, list) else [value]:
                    self._message(message)
            elif name in ("system", "input", "prompt"):
                self._content(value, 0)
            elif name not in _OF_REQUESTS:
                self._field(name, value, 0)

    def _message(self, message: Any) -> None:
        if not self._is_sound(message):
            return
        for name, value in message.items():
            if name == "content":
                self._content(value, 0)
            elif name not in _OF_MESSAGES:
                self._field(name, value, 0)

    def _is_sound(self, value: Any) -> bool:
        """Tell whether it is an object that all readers read alike."""
        if not isinstance(value, dict):
            if isinstance(value, list):
                self._may_be("a list where an object belongs")
            return False
        if _TWICE in value:
            self._may_be("a field that stands twice")
            return False
        return True

    def _may_be(self, what: str) -> None:
        self.doubt = self.doubt or what

    def _content(self, content: Any, depth: int) -> None:
        if depth > media.MAX_DEPTH:
            self._may_be(_TOO_DEEP)
            return
        for part in content if isinstance(content, list) else [content]:
            if self._is_sound(part):
                self._part(part, depth)

    def _part(self, part: Mapping[str, Any], depth: int) -> None:
        kind = part.get("type")
        kind = kind if isinstance(kind, str) else ""
        read, by_type = media.PARTS.get(kind, ("", Input.TEXT))
        if kind == "document":
            self._document(part.get(read), depth)
        elif kind in _FILES:
            self._file(part.get(read))
        elif read:
            self.kinds |= {by_type, *media.every(part.get(read, part), by_type)} - {Input.TEXT}
        elif kind not in _TEXTS:
            self._may_be(f"a part of the type {shown(kind)}" if kind else "a part without a type")
        for name, value in part.items():
            if name == "content":
                self._content(value, depth + 1)
            elif name != read and name not in _OF_PARTS:
                self._field(name, value, depth + 1)

    def _document(self, source: Any, depth: int) -> None:
        """Anthropic's documents are PDFs, unless they say that they are text or parts."""
        if not isinstance(source, dict) or not self._is_sound(source):
            self._may_be("a document without a source")
        elif source.get("type") == "content":
            self._content(source.get("content"), depth + 1)
        elif source.get("type") == "text":
            declared = {"media_type": source.get("media_type")}
            self.kinds |= media.every(declared, Input.PDF) - {Input.TEXT}
        elif source.get("type") in _SOURCES:
            self.kinds |= {Input.PDF, *media.every(source, Input.PDF)} - {Input.TEXT}
        else:
            self._may_be("a document of an unknown source")

    def _file(self, holder: Any) -> None:
        """A file is what its data or its name says, each kind that either does; where neither does, anything."""
        if not isinstance(holder, dict) or not self._is_sound(holder):
            self._may_be("a file without data")
            return
        said = frozenset().union(*(media.every(holder, kind) for kind in (Input.PDF, Input.AUDIO, Input.VIDEO)))
        self.kinds |= said - {Input.TEXT}
        head = media.first_bytes(data) if isinstance(data := holder.get("file_data"), str) else b""
        if b"<svg" in head:
            self.kinds.add(Input.IMAGE)
        elif not head or "file_id" in holder or "file_url" in holder:
            self._may_be("a file that isn't in it")
        elif media.of_bytes(head, Input.PDF) is None and not _is_text(head):
            self._may_be("a file whose data doesn't say what it is")
        elif not said:
            self.kinds.add(Input.PDF)

    def _field(self, name: Any, value: Any, depth: int) -> None:
        """A field that the formats don't have: media if it is called so, or holds what is."""
        if depth > _MOST_LEVELS:
            self._may_be(_TOO_DEEP)
        elif isinstance(value, str):
            if value[:5].lower() == "data:":
                self.kinds |= media.every(value, Input.PDF) - {Input.TEXT}
        elif isinstance(value, list):
            for item in value:
                self._field("", item, depth + 1)
        elif isinstance(value, dict) and self._is_sound(value):
            self._object(value, depth)
        if value and isinstance(name, str):
            words = _CAMEL.sub("_", name).lower()
            self.kinds.update(*(kinds for pattern, kinds in _NAMES if pattern.search(words)))

    def _object(self, value: Mapping[str, Any], depth: int) -> None:
        kind = value.get("type")
        if isinstance(kind, str) and kind in media.PARTS:
            self._part(value, depth)
            return
        for name, inner in value.items():
            self._field(name, inner, depth + 1)


def _is_text(head: bytes) -> bool:
    """Tell text by its first bytes: UTF-8, perhaps cut within a character, without control characters."""
    try:
        return not _CONTROLS.search(_Utf8().decode(head))
    except UnicodeDecodeError:
        return False
