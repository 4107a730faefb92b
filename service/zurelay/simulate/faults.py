"""What fault is asked for: `status:429:retry-after=5`, `slow-head:2+cut:3`, and the places where such a spec may stand.

Each word is a field of `Fault`; what it does stands in docs/simulate.md.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Annotated, Any

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
Status = Annotated[int, msgspec.Meta(ge=200, le=599)]
Specs = str | list[str]

_KEY = 200  # characters of the text that attempts are counted by, where no key is given
_MARK = re.compile(r"\[\[simulate (.*?)\]\]", re.DOTALL)
_PATH = re.compile(r"/fault/([^/]*)(/.*)")


class Fault(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """How one answer goes wrong or is shaped. The fields of type bool are words without a value."""

    ok: bool = False
    # before a body
    slow_head: Seconds | None = None
    hang: bool = False
    reset: bool = False
    close: bool = False
    status: Status | None = None
    retry_after: Count | None = None
    retry_after_date: Count | None = None
    context_length: bool = False
    refuse: str | None = None
    # where it breaks
    reset_after_head: bool = False
    stall: bool = False
    first_error: bool = False
    role_then_error: bool = False
    late_error: Count | None = None
    cut: Count | None = None
    abort: Count | None = None
    stall_after: Count | None = None
    cut_json: bool = False
    short_body: bool = False
    empty_stream: bool = False
    error_200: bool = False
    not_json: bool = False
    html: bool = False
    # how errors look
    error: Status = 500
    code: str | None = None
    error_done: bool = False
    # pace
    slow_body: Seconds | None = None
    slow_token: Seconds | None = None
    gap: Seconds | None = None
    # shape
    no_done: bool = False
    json_for_stream: bool = False
    sse_for_json: bool = False
    wrong_type: bool = False
    gzip: bool = False
    split: bool = False
    crlf: bool = False
    cr: bool = False
    nospace: bool = False
    bom: bool = False
    sse_comments: bool = False
    headers: bool = False
    # content
    tokens: Count | None = None
    size: Count | None = None
    big: Count | None = None
    refusal: bool = False
    reasoning_field: bool = False
    no_usage: bool = False
    usage_beside: bool = False
    input: Count | None = None
    output: Count | None = None
    reasoning: Count | None = None
    cached: Count | None = None
    written: Count | None = None


WORDS = tuple(field.encode_name for field in msgspec.structs.fields(Fault))
_FLAGS = frozenset(field.encode_name for field in msgspec.structs.fields(Fault) if field.type is bool)
BREAKS = (
    *("hang", "reset", "close", "status", "context-length", "reset-after-head", "stall", "first-error"),
    *("role-then-error", "late-error", "cut", "abort", "stall-after", "cut-json", "short-body", "empty-stream"),
    *("error-200", "not-json", "html"),
)


class BadFault(ValueError):
    """A spec that can't be read; the message lists what can be."""


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body's `simulate` object."""

    fault: Specs | None = None
    faults: dict[str, Specs] = {}
    key: str | None = None
    text: str | None = None
    reasoning: str | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: specs to use one an attempt, the last one again, and what the attempts are counted by."""

    specs: tuple[str, ...] = ("ok",)
    key: tuple[str, ...] = ()
    text: str | None = None
    reasoning: str | None = None


def parse(spec: str) -> Fault:
    """Read one spec: words joined by `+`, each with its value after `:`, then further words as `:word=value`."""
    found: dict[str, Any] = {}
    for part in filter(None, spec.strip().split("+")):
        word, _, rest = part.strip().partition(":")
        value, *more = rest.split(":")
        _put(found, word, value)
        for pair in more:
            _put(found, *pair.partition("=")[::2])
    clash = [word for word in BREAKS if word in found]
    if len(clash) > 1:
        raise BadFault(f"These can't be combined, each ends the answer: {', '.join(clash)}. Choose one.")
    try:
        return msgspec.convert(found, Fault, strict=False)
    except msgspec.ValidationError as exc:
        raise BadFault(f"The fault {spec!r} can't be read: {exc}. {_HELP}") from exc


def wish(model: str, text: str, body: Any, header: str | None, path: str | None) -> Wish:
    """Find what is asked for `model`: the body's `simulate` beats a mark in the text, the header, and the path."""
    mark = _MARK.search(text)
    places = [_control(place) for place in (body, _loose(mark.group(1)) if mark else None, header, path)]
    told = next((place for place in places if place.fault is not None or model in place.faults), Control())
    by_model = model in told.faults
    specs = told.faults[model] if by_model else told.fault or "ok"
    key = told.key or text[:_KEY]
    return Wish(
        specs=tuple(specs.split(",") if isinstance(specs, str) else specs) or ("ok",),
        key=(key, model) if by_model else (key,),
        text=next((place.text for place in places if place.text is not None), None),
        reasoning=next((place.reasoning for place in places if place.reasoning is not None), None),
    )


def without_mark(text: str) -> str:
    """Give the text without its `[[simulate ...]]`."""
    return _MARK.sub("", text).strip()


def split_path(path: str) -> tuple[str | None, str]:
    """Part `/fault/<spec>/v1/...` into the spec and the rest."""
    found = _PATH.fullmatch(path)
    return (urllib.parse.unquote(found.group(1)), found.group(2)) if found else (None, path)


_HELP = "Join these words with '+': " + ", ".join(word if word in _FLAGS else f"{word}:..." for word in WORDS) + "."


def _put(found: dict[str, Any], word: str, value: str) -> None:
    if word not in WORDS:
        raise BadFault(f"There is no fault {word!r}. {_HELP}")
    if bool(value) is (word in _FLAGS):
        raise BadFault(f"The fault {word!r} {'takes no' if value else 'needs a'} value. {_HELP}")
    found[word] = value or True


def _loose(mark: str) -> Any:
    """Read a mark's inside: JSON where it starts like it, else a spec."""
    if not mark.startswith("{"):
        return mark
    try:
        return msgspec.json.decode(mark)
    except msgspec.DecodeError as exc:
        raise BadFault(f"The mark [[simulate ...]] holds JSON that can't be read: {exc}.") from exc


def _control(asked: Any) -> Control:
    if asked is None:
        return Control()
    if isinstance(asked, str | list):
        asked = {"fault": asked}
    try:
        return msgspec.convert(asked, Control)
    except msgspec.ValidationError as exc:
        raise BadFault(
            f"The field 'simulate' can't be read: {exc}. It takes fault, faults, key, text, reasoning."
        ) from exc
