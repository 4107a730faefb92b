"""What an OpenAI-format provider answers, whole or in chunks, by whichever of the usual names (SPEC 7)."""

from __future__ import annotations

from typing import Any

import msgspec

_STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class Part(msgspec.Struct, gc=False):
    """A part of content, where a provider answers with a list of them."""

    type: str = ""
    text: Any = None


class Function(msgspec.Struct):
    """What a call calls; `arguments` is a string, at some providers an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class Call(msgspec.Struct):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Said(msgspec.Struct):
    """A message, or what a chunk adds to it."""

    content: str | list[Part] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None

    @property
    def text(self) -> str:
        """The content as one string."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text" and isinstance(part.text, str))
        return self.content or ""

    @property
    def thought(self) -> str:
        """The reasoning, whatever the provider calls it."""
        for found in (self.reasoning_content, self.reasoning):
            if found and isinstance(found, str):
                return found
        return ""


def arguments(function: Function) -> str:
    """Give a call's arguments as a string, a provider's object written out."""
    if isinstance(function.arguments, dict):
        return msgspec.json.encode(function.arguments).decode()
    return function.arguments or ""


def stop_reason(finish: str | None, *, calls: bool, refused: bool) -> str:
    """Give Messages' word for why the model stopped; reasons to come count as an ordinary end."""
    if refused:
        return "refusal"
    found = _STOPS.get(finish or "", "end_turn")
    if found in ("end_turn", "tool_use"):
        return "tool_use" if calls else "end_turn"
    return found


def stop_details(refusal: str) -> dict[str, Any] | None:
    """Give Messages' account of a refusal, in the model's own words."""
    return {"type": "refusal", "category": None, "explanation": refusal} if refusal else None
