"""A request's top-level fields, each taken once: what is left in the end is unknown to the format that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document

T = TypeVar("T")

ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
TEXT = msgspec.json.Decoder(str)
FLAG = msgspec.json.Decoder(bool)
COUNT = msgspec.json.Decoder(int)
NUMBER = msgspec.json.Decoder(float)
OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

Neutral = Mapping[str, tuple[Any, ...]]
"""Fields without a counterpart, each with the values that ask for nothing and so may be left out."""


class Fields:
    """What a client sent. `named` says that it asked for this very model: nothing may then go missing in silence."""

    __slots__ = ("_document", "_left", "named")

    def __init__(self, body: bytes | Document, *, named: bool) -> None:
        self._document = body if isinstance(body, Document) else Document.parse(body)
        self._left = dict.fromkeys(self._document.names)
        self.named = named

    def take(self, name: str, kind: msgspec.json.Decoder[T]) -> T | None:
        """Decode a field and count it as dealt with; None where it is absent or null. A wrong type is a 400."""
        self._left.pop(name, None)
        return self._document.value(name, kind)

    def raw(self, name: str) -> msgspec.Raw | None:
        """Take a field's bytes as sent; None where it is absent or null."""
        self._left.pop(name, None)
        value = self._document.raw(name)
        return None if value is None else msgspec.Raw(value)

    def drop(self, *names: str) -> None:
        """Leave out fields that change nothing of what the model says, or that others have dealt with."""
        for name in names:
            self._left.pop(name, None)

    def unmapped(self, name: str, message: str) -> None:
        """Refuse a field that has no counterpart, if the client named the model; else it is dropped."""
        if self.named:
            raise InvalidRequest(message, param=name)

    def refuse_unless(self, neutral: Neutral, *, always: bool = False) -> None:
        """Take fields without a counterpart and refuse those that ask for something, of a named model or of all."""
        for name, harmless in neutral.items():
            value = self.take(name, ANY)
            if value is None or value in harmless:
                continue
            message = f"`{name}` has no counterpart at this model's provider: leave it out or ask another model."
            if always:
                raise InvalidRequest(message, param=name)
            self.unmapped(name, message)

    def add_rest(self, out: dict[str, Any]) -> None:
        """Pass on the fields that nobody took: for a named model the provider judges them (SPEC 3)."""
        if not self.named:
            return
        for name in self._left:
            value = self._document.raw(name)
            if value is None:
                continue
            if name in out:
                raise InvalidRequest(f"`{name}` says what other fields say already: leave it out.", param=name)
            out[name] = msgspec.Raw(value)
