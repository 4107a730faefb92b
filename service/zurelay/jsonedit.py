"""Change top-level fields of a JSON object and leave every other byte as sent (SPEC 3).

msgspec checks the syntax and finds the values at C speed. It leaves three gaps, closed here: bytes in strings that
aren't UTF-8, the depth, and keys that stand twice: they become objects equal only to themselves, so none hides another.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar, cast

import msgspec

from zurelay.errors import InvalidRequest

MAX_DEPTH = 512
"""Levels of objects and arrays, the outermost one counted (SPEC 3)."""
MAX_VALUES = 1_000_000
"""Values of a document, those inside others counted: decoded, each takes a hundred bytes where two were sent."""
MAX_ITEMS = 100_000
"""Members of a document, or elements of one array, that are taken apart: Anthropic's limit of messages in a request."""

T = TypeVar("T")


class _Key:
    """A top-level key, equal to itself alone."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _Span(NamedTuple):
    """Where a member stands: its key with quotes, and its value."""

    start: int
    colon: int
    value: int
    end: int


_MEMBERS = msgspec.json.Decoder(dict[_Key, msgspec.Raw], dec_hook=lambda kind, name: kind(name))
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder(msgspec.Raw)

_WINDOW = 1 << 16
_KEY = re.compile(rb'[ \t\n\r{,]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
_ESCAPES = re.compile(rb'\\["\\](?:\\["\\])*+')
_HALF_PAIR = re.compile(rb"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])")
_TOO_DEEP = f"The JSON is nested over {MAX_DEPTH} levels deep; send it flatter."
_TRUNCATED = "Input data was truncated"
_STEPS = bytes.maketrans(b"[{]},", b"\x01\x01\xff\xff\x00")
_UP, _LEVEL = b"\x01", b"\x00"
_NO_STEPS = bytes(set(range(256)) - set(b"[{]},"))
_WORDS = {"bool": "a boolean", "str": "a string", "int": "an integer", "float": "a number", "null": "null"}
_WORDS |= {"array": "an array", "object": "an object"}


class Document:
    """A JSON object as sent, open to changes of its top-level fields."""

    __slots__ = ("_data", "_members", "_values")

    def __init__(self, data: bytes, members: list[tuple[_Key, msgspec.Raw]]) -> None:
        self._data = data
        self._members = members
        self._values = {key.name: value for key, value in members}

    @classmethod
    def parse(cls, data: bytes, *, once: frozenset[str] = frozenset()) -> Document:
        """Read a JSON object; a key in `once` may not stand twice.

        Raises InvalidRequest: `invalid_json` for what isn't legal JSON; `invalid_request` for a value that is no object
        and for a key of `once` that stands twice (`param` says which).
        """
        _check_text(data)
        try:
            if not data.lstrip(b" \t\n\r").startswith(b"{"):
                _ANY.decode(data)
                raise InvalidRequest("The body is JSON but no object; send an object: {...}.")
            if _is_crowded(data):
                raise InvalidRequest(f"The JSON has over {MAX_VALUES} values; send fewer.")
            if _is_wide(data):
                raise InvalidRequest(f"The object has over {MAX_ITEMS} fields; send fewer.")
            document = cls(data, list(_MEMBERS.decode(data).items()))
        except (msgspec.DecodeError, RecursionError) as error:
            raise _illegal(data, error) from error
        if _is_deep(data):
            raise InvalidRequest(_TOO_DEEP, code="invalid_json")
        if len(document._values) != len(document._members):
            for name in sorted(once):
                if document.names.count(name) > 1:
                    raise InvalidRequest(f"The field `{name}` stands twice; send it once.", param=name)
        return document

    @property
    def data(self) -> bytes:
        """The object's bytes as sent."""
        return self._data

    @property
    def names(self) -> tuple[str, ...]:
        """The keys in order, each as often as it stands."""
        return tuple(key.name for key, _ in self._members)

    def among(self, names: Iterable[str]) -> list[str]:
        """Give those of `names` that are keys."""
        return [name for name in names if name in self._values]

    def raw(self, name: str) -> bytes | None:
        """Give a value's bytes, the last of repeats, without white space around; None when it is absent or null."""
        value = self._values.get(name)
        return None if value is None or _is_null(value) else bytes(value)

    def value(self, name: str, kind: type[T] | msgspec.json.Decoder[T]) -> T | None:
        """Decode a value into a type, or by a decoder made beforehand (faster); None when it is absent or null.

        Raises InvalidRequest with the field's name as `param`, and in the message the place inside it.
        """
        value = self._values.get(name)
        if value is None or _is_null(value):
            return None
        try:
            if isinstance(kind, msgspec.json.Decoder):
                return kind.decode(value)
            return msgspec.json.decode(value, type=kind)
        except msgspec.DecodeError as error:
            raise InvalidRequest(_plainly(name, str(error)), param=name) from error

    def edit(self, changes: Mapping[str, bytes | None], rename: Mapping[str, str] | None = None) -> bytes:
        """Write the object with fields replaced, removed (None) and renamed; every other byte stays.

        Values are replaced in place, absent fields are appended, a removed one goes with its comma. A renamed key keeps
        its place and value, and `changes` may call it by either name; where the new name already stands with a value,
        that one stays and the renamed one goes. Of repeats that are replaced one is left; others pass as sent.
        """
        new_names = rename or {}
        wanted = {new_names.get(name, name): value for name, value in changes.items()}
        wanted |= {name: value for name, value in changes.items() if name not in new_names}
        chosen = self._choose(new_names)
        data, spans = self._data, self._spans()
        out: list[bytes] = [data[: spans[0].start]]
        written: set[str] = set()
        last = -1
        for place, (key, value) in enumerate(self._members):
            name = new_names.get(key.name, key.name)
            new = wanted.get(name, value)
            if new is None or name in written or chosen[name] != key.name:
                continue
            if name in wanted:
                written.add(name)
            if last >= 0:
                out.append(data[spans[last].end : spans[last + 1].start])
            span = spans[place]
            out.append(data[span.start : span.colon] if name == key.name else msgspec.json.encode(name))
            out += data[span.colon : span.value], new
            last = place
        added = [(name, value) for name, value in wanted.items() if value is not None and name not in written]
        for count, (name, fresh) in enumerate(added):
            out += b"," if count or last >= 0 else b"", msgspec.json.encode(name), b":", fresh
        out.append(data[spans[len(self._members) - 1].end :])
        return b"".join(out)

    def _choose(self, rename: Mapping[str, str]) -> dict[str, str]:
        """Say which key sent stands under each name: before a null a value, before a renamed one the name itself."""
        sent = list(self._values)
        if rename:
            sent.sort(key=lambda name: (_is_null(self._values[name]), name in rename))
        chosen: dict[str, str] = {}
        for name in sent:
            chosen.setdefault(rename.get(name, name), name)
        return chosen

    def _spans(self) -> list[_Span]:
        """Find the members: msgspec told how long each value is, so only keys are read. For {}, the place inside."""
        end = 0
        spans: list[_Span] = []
        for _, value in self._members:
            match = cast("re.Match[bytes]", _KEY.match(self._data, end))
            start = match.end()
            end = start + len(value)
            spans.append(_Span(match.start(1), match.end(1), start, end))
        if not spans:
            end = self._data.index(b"{") + 1
            spans.append(_Span(end, end, end, end))
        return spans


def elements(raw: bytes, *, param: str | None = None) -> list[bytes]:
    """Give the bytes of each element of an array; `param` names the field for the error.

    Raises InvalidRequest when it is no array or has over MAX_ITEMS elements.
    """
    if _is_wide(raw):
        raise InvalidRequest(f"`{param or 'array'}` has over {MAX_ITEMS} elements; send fewer.", param=param)
    try:
        return [bytes(element) for element in _ELEMENTS.decode(raw)]
    except msgspec.DecodeError as error:
        raise InvalidRequest(_plainly(param or "value", str(error)), param=param) from error


def _is_null(value: msgspec.Raw) -> bool:
    return len(value) == len(b"null") and bytes(value) == b"null"


def _check_text(data: bytes) -> None:
    """Refuse an empty body, a byte order mark and what isn't UTF-8 (RFC 8259, 8.1)."""
    if not data or data.isspace():
        raise InvalidRequest("The body is empty; send a JSON object.", code="invalid_json")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidRequest("The body starts with a byte order mark; send UTF-8 without one.", code="invalid_json")
    if data.isascii():
        return
    start = 0
    while start < len(data):  # in windows: one emoji would make Python hold four bytes a character
        end = start + _WINDOW
        while end < len(data) and data[end] & 0xC0 == 0x80 and end > start + _WINDOW - 4:  # noqa: PLR2004 - a UTF-8 tail
            end -= 1
        try:
            data[start:end].decode()
        except UnicodeDecodeError as error:
            place = start + error.start
            raise InvalidRequest(f"The body isn't UTF-8 at byte {place}.", code="invalid_json") from error
        start = end


def _is_wide(data: bytes) -> bool:
    """Say whether the outermost container holds over MAX_ITEMS items; from twice as many it is sure to be said."""
    if data.count(b",") < MAX_ITEMS:
        return False
    _ANY.decode(data)  # only in legal JSON can strings be told from the rest
    return operator.countOf(_levels(data), 1) > 2 * MAX_ITEMS  # an item that is a container comes back to 1 once more


def _is_crowded(data: bytes) -> bool:
    """Tell whether JSON holds over MAX_VALUES values: each stands behind a bracket or a comma."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") <= MAX_VALUES:
        return False
    _ANY.decode(data)  # only in legal JSON can strings be told from the rest
    return sum(steps.count(_UP) + steps.count(_LEVEL) for steps in _steps(data)) > MAX_VALUES


def _is_deep(data: bytes) -> bool:
    return data.count(b"{") + data.count(b"[") > MAX_DEPTH and max(_levels(data)) > MAX_DEPTH


def _levels(data: bytes) -> Iterator[int]:
    """Give the depth of legal JSON after each bracket and at each comma outside strings."""
    return itertools.accumulate(memoryview(b"".join(_steps(data))).cast("b"))


def _steps(data: bytes) -> Iterator[bytes]:
    """Give what legal JSON has of brackets and commas outside strings, as bytes: one up, one down, or no step."""
    start = inside = 0
    while start < len(data):
        piece = data[start : start + _WINDOW]
        if (len(piece) - len(piece.rstrip(b"\\"))) & 1:  # not between a backslash and what it escapes
            piece = piece[:-1]
        start += len(piece)
        parts = _ESCAPES.sub(b"", piece).split(b'"')
        yield b"".join(parts[inside::2]).translate(_STEPS, _NO_STEPS)
        inside ^= (len(parts) - 1) & 1


def _illegal(data: bytes, error: Exception) -> InvalidRequest:
    if isinstance(error, RecursionError):
        return InvalidRequest(_TOO_DEEP, code="invalid_json")
    reason = str(error).removeprefix("JSON is malformed: ")
    if (reason == _TRUNCATED or "hex escape" in reason) and (half := _HALF_PAIR.search(data)):
        reason = f"half of a surrogate pair (byte {half.start(1)})"
    elif reason == _TRUNCATED:
        reason = f"it ends too early (byte {len(data)})"
    return InvalidRequest(f"The body isn't legal JSON: {reason}.", code="invalid_json")


def _plainly(name: str, message: str) -> str:
    """Turn "Expected `int`, got `str` - at `$.a`" into "`name.a`: expected an integer, got a string"."""
    what, _, where = message.partition(" - at ")
    if match := re.fullmatch("Expected `(.+)`, got `(.+)`", what):
        kinds = (" or ".join(_WORDS.get(word, word) for word in group.split(" | ")) for group in match.groups())
        what = "expected {}, got {}".format(*kinds)
    place = where.strip("`").removeprefix("key in ").removeprefix("$")
    return f"`{name}{place}`: {what[:1].lower()}{what[1:]}."
