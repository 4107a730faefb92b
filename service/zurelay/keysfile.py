"""keys.yaml: text in, keys out, or all of its problems at once (SPEC 11). It holds digests, never keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from zurelay import keysjson, keysyaml, yamlnodes
from zurelay.keysjson import DIGEST
from zurelay.model import AUTO_ALIAS, AUTO_ID, Key, Settings
from zurelay.problems import Problem, SettingsError
from zurelay.settings import names, unpriced
from zurelay.settings.names import glob
from zurelay.settings.places import At, Broken, Reader, each, struct
from zurelay.settings.policies import label, usage_limits
from zurelay.settings.scalars import flag, instant, matching

__all__ = ["bind", "parse"]

_digest = matching(DIGEST, "sha256: and 64 hexadecimal digits, as `zurelay keys new` prints it")


class _File(msgspec.Struct):
    keys: tuple[Key, ...] | None = None


def parse(text: str) -> tuple[Key, ...]:
    """Read the file; raise SettingsError with every problem in it. No keys at all are written `keys: []`."""
    for quick in (keysjson.parse, keysyaml.parse):
        keys = quick(text)
        if keys is not None:
            return keys
    return _exactly(text)


def _exactly(text: str) -> tuple[Key, ...]:
    problems: list[Problem] = []
    node = yamlnodes.load(text, problems)
    if node is not None:
        root = At(node, 1, problems)
        try:
            keys = _keys(root)
        except Broken:
            keys = ()
        if not problems:
            return keys
    raise SettingsError(problems)


def bind(keys: Iterable[Key], settings: Settings) -> tuple[Key, ...]:
    """Fit keys to a catalog: aliases in their rules become ids.

    Raise SettingsError for names of no model, and for models without a price while a key limits USD; as the keys have
    a file of their own, these problems know no line.
    """
    keys = tuple(keys)
    known = names.of(settings)
    problems = list(unpriced(settings, keys))
    fitted: dict[tuple[str, ...], tuple[str, ...]] = {}  # many keys have the same rules
    for key in keys:
        if key.models and key.models not in fitted:
            fitted[key.models] = _fitted(key, known, problems)
    if problems:
        raise SettingsError(problems)
    return tuple(msgspec.structs.replace(key, models=fitted[key.models]) if key.models else key for key in keys)


def _fitted(key: Key, known: names.Names, problems: list[Problem]) -> tuple[str, ...]:
    fitted = []
    for name in key.models or ():
        plain = name != AUTO_ID and not names.is_glob(name)
        found = known.id_of(name) if plain else name
        if found is None:
            problems.append(Problem(0, f"keys.{key.name}.models", known.no_model(name)))
        else:
            fitted.append(found)
    return tuple(dict.fromkeys(fitted))


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


_READERS: dict[str, Reader[Any]] = {
    "name": label,
    "digest": _digest_bytes,
    "models": each(_model),
    "smart_routing": flag,
    "limits": usage_limits,
    "expires": instant,
    "disabled": flag,
}
