"""The fast way into a keys file that holds many: one written as JSON, or with one JSON object a line.

    keys:
    - {"name": "team-a", "digest": "sha256:..."}

YAML has JSON within it, so the same rules hold. Whatever isn't beyond doubt gives None, and the YAML reader decides and
knows the lines (`keysfile.parse`).
"""

from __future__ import annotations

import decimal
import re
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zurelay import units
from zurelay.model import AUTO_ALIAS, AUTO_ID, Key, UsageLimits
from zurelay.settings.names import GLOB
from zurelay.settings.policies import LABEL, LEAST_USD, MOST_COUNT, MOST_USD

DIGEST = r"sha256:[0-9A-Fa-f]{64}"
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
    expires: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class _File(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[_Entry]


class Doubt(Exception):
    """The YAML reader has to look."""


def parse(source: str) -> tuple[Key, ...] | None:
    """Read the keys, or give None where there is any doubt."""
    text, lines = _as_json(source)
    if text is None or "\\" in text:  # with no escape, a quote always begins or ends a string
        return None
    try:
        entries = msgspec.json.decode(text, type=_File).keys
        keys = tuple(map(_key, entries))
    except (msgspec.MsgspecError, UnicodeEncodeError, ValueError, OverflowError, Doubt):
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
    said = len(_given(entry))
    return said if entry.limits is UNSET else said + len(_given(entry.limits))


def _given(struct: msgspec.Struct) -> dict[str, Any]:
    values = ((field, getattr(struct, field)) for field in struct.__struct_fields__)
    return {field: value for field, value in values if value is not UNSET}


def _key(entry: _Entry) -> Key:
    given = _given(entry)
    given["digest"] = bytes.fromhex(entry.digest.removeprefix("sha256:"))
    if entry.models is not UNSET:
        models = given["models"] = tuple(AUTO_ID if name == AUTO_ALIAS else name for name in entry.models)
        if len(set(models)) != len(models):
            raise Doubt
    if entry.limits is not UNSET:
        given["limits"] = _limits(entry.limits)
    if entry.expires is not UNSET:
        given["expires"] = units.instant(entry.expires)
    return Key(**given)


def _limits(limits: _Limits) -> UsageLimits:
    given = _given(limits)
    for name in given.keys() & {"usd_per_day", "usd_per_month"}:
        given[name] = usd(bytes(given[name]))
    return UsageLimits(**given)


def usd(written: bytes) -> decimal.Decimal:
    """Read an amount that is written plainly."""
    value = decimal.Decimal(written.decode()) if _USD.fullmatch(written) else decimal.Decimal(0)
    if not LEAST_USD <= value <= MOST_USD:
        raise Doubt
    return value
