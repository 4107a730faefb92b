"""keys.yaml: text in, keys out, or all of its problems at once (SPEC 11). It holds digests, never keys."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import msgspec

from zurelay import yamlnodes
from zurelay.model import AUTO_ALIAS, AUTO_ID, Key
from zurelay.problems import Problem, SettingsError
from zurelay.settings.fields import At, Broken, Reader, each, struct
from zurelay.settings.names import glob
from zurelay.settings.policies import label, usage_limits
from zurelay.settings.scalars import flag, matching, text

__all__ = ["parse"]

_DAY, _TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
_TIMESTAMP = re.compile(rf"{_DAY}[Tt]{_TIME}(?:[Zz]|[+-][0-9]{{2}}:[0-9]{{2}})")  # RFC 3339, 5.6
_digest = matching(r"sha256:[0-9A-Fa-f]{64}", "sha256: and 64 hexadecimal digits, as `zurelay keys new` prints it")


class _File(msgspec.Struct):
    keys: tuple[Key, ...] | None = None


def parse(source: str) -> tuple[Key, ...]:
    """Read the file; raise SettingsError with every problem in it. No keys at all are written `keys: []`."""
    problems: list[Problem] = []
    node = yamlnodes.load(source, problems)
    if node is not None:
        root = At(node, 1, problems)
        try:
            keys = _keys(root)
        except Broken:
            keys = ()
        if not problems:
            return keys
    raise SettingsError(problems)


def _keys(root: At) -> tuple[Key, ...]:
    if yamlnodes.is_null(root.node):
        raise root.wrong("the file is empty; no keys at all are written keys: []")
    first: dict[str | bytes, int] = {}

    def read(at: At) -> Key:
        key = struct(at, Key, _READERS)
        for field, value in (("name", key.name), ("digest", key.digest)):
            if value in first:
                at.key(field).note(f"the key at line {first[value]} has this {field} too")
            first.setdefault(value, at.line)
        return key

    keys = struct(root, _File, {"keys": each(read, repeats=True)}).keys
    if keys is None:
        raise root.key("keys").wrong("missing; no keys at all are written keys: []")
    return keys


def _digest_bytes(at: At) -> bytes:
    return bytes.fromhex(_digest(at).removeprefix("sha256:"))


def _model(at: At) -> str:
    name = glob(at)
    return AUTO_ID if name == AUTO_ALIAS else name


def _timestamp(at: At) -> dt.datetime:
    written = text(at)
    try:
        if _TIMESTAMP.fullmatch(written):
            return dt.datetime.fromisoformat(written.upper()).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise at.wrong("is no time that there is; expected one such as 2027-01-01T00:00:00Z") from None
    raise at.wrong("expected a time with its offset, such as 2027-01-01T00:00:00Z")


_READERS: dict[str, Reader[Any]] = {
    "name": label,
    "digest": _digest_bytes,
    "models": each(_model),
    "smart_routing": flag,
    "limits": usage_limits,
    "expires": _timestamp,
    "disabled": flag,
}
