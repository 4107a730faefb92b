"""What both formats' readers share. Readers take any JSON: what the real API would refuse, `problem` finds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from zurelay.simulate.nouns import LEVELS, Json

_CHARACTERS = 4  # a token of English is about four characters
_MEDIA = 800  # tokens of an image or a document, about
_MEDIA_TYPES = frozenset({"image_url", "image", "document", "file", "input_audio"})
_PER_MESSAGE = 4  # tokens around a message


def decode(body: bytes) -> Json:
    """Read any legal JSON, numbers beyond a float's range too; ValueError for anything else."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(body, parse_constant=_no_constant)
    except RecursionError as exc:
        raise ValueError("the JSON is nested too deep") from exc


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def clean(text: Json) -> str:
    """Give a string that UTF-8 can hold (JSON may carry half a surrogate pair); anything else is empty."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def objects(found: Json) -> list[Mapping[str, Json]]:
    """Give the objects of a list, and nothing of anything else."""
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def member(found: Json, *path: str) -> Json:
    """Follow keys through objects; None where there is no such way."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def text_of(content: Json) -> str:
    """Join the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return clean(content)
    return "\n".join(clean(part.get("text")) for part in objects(content) if isinstance(part.get("text"), str))


def level_of(word: Json) -> int:
    """Find a reasoning level's place on the ladder; 0 where there is none."""
    return LEVELS.index(word) if isinstance(word, str) and word in LEVELS else 0


def whole_number(found: Json) -> int | None:
    """Give a count, where there is one."""
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def strings(found: Json) -> tuple[str, ...]:
    """Give one string or several as a tuple."""
    listed: Sequence[Json] = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return tuple(clean(one) for one in listed if isinstance(one, str))


def count_tokens(*contents: Json) -> int:
    """Estimate the tokens of anything that is part of a prompt; no recursion, as JSON may be nested hundreds deep."""
    total = 1
    left: list[Json] = list(contents)
    while left:
        found = left.pop()
        if isinstance(found, str):
            total += len(found) // _CHARACTERS + 1
        elif isinstance(found, list):
            left += found
        elif isinstance(found, Mapping):
            media = clean(found.get("type")) in _MEDIA_TYPES
            total += (_MEDIA if media else 0) + (_PER_MESSAGE if "role" in found else 0)
            left += () if media else found.values()
        elif found is not None:
            total += 1
    return total
