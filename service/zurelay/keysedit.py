"""New keys, and keys.yaml as text: an entry to put in, a key to take out. All other bytes of the file stay."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import re
import string

import msgspec
import yaml

from zurelay import keysfile
from zurelay.model import Key, UsageLimits
from zurelay.problems import SettingsError

SECRET_BYTES = 32
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_LENGTH = 43  # 62 ** 43 > 256 ** 32: every key is as long as every other
_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_WORDS = frozenset(
    {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)  # YAML may take them for something else


class KeysEditError(Exception):
    """The file can't be changed by us; says why and what to do."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a new key may do."""

    models: tuple[str, ...] = ()
    smart_routing: bool = True
    limits: UsageLimits = UsageLimits()
    expires: dt.datetime | None = None


def new_key(secret: bytes) -> str:
    """Write 32 random bytes as a key."""
    number = int.from_bytes(secret, "big")
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "zk_" + "".join(reversed(digits))


def entry(name: str, key: str, rules: Rules) -> str:
    """Write a key's entry, one line of the list `keys:`."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    parts = [f"name: {_word(name)}", f'digest: "sha256:{digest}"']
    if rules.models:
        parts.append(f"models: [{', '.join(map(_word, rules.models))}]")
    if not rules.smart_routing:
        parts.append("smart_routing: false")
    limits = {key: value for key, value in msgspec.structs.asdict(rules.limits).items() if value is not None}
    if limits:
        parts.append(f"limits: {{{', '.join(f'{key}: {_number(value)}' for key, value in limits.items())}}}")
    if rules.expires is not None:
        parts.append(f"expires: {rules.expires.astimezone(dt.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}")
    return f"- {{{', '.join(parts)}}}"


def revoke(source: str, name: str) -> str:
    """Set `disabled: true` at one key of the file."""
    before = keysfile.parse(source)
    if name not in {key.name for key in before}:
        raise KeysEditError(f"There is no key {name!r} in the file; `zurelay keys list` shows those that are.")
    wanted = tuple(msgspec.structs.replace(key, disabled=True) if key.name == name else key for key in before)
    if before == wanted:
        return source
    changed = _with_disabled(source, name)
    if _parsed(changed) != wanted:
        raise KeysEditError(
            f"The entry of {name!r} is written in a way that can't be changed safely; put `disabled: true` in by hand."
        )
    return changed


def _parsed(source: str) -> tuple[Key, ...] | None:
    try:
        return keysfile.parse(source)
    except SettingsError:
        return None


def _with_disabled(source: str, name: str) -> str:
    for mapping in _mappings(source):
        fields = {key.value: (key, value) for key, value in mapping.value if isinstance(key, yaml.ScalarNode)}
        if "name" not in fields or fields["name"][1].value != name:
            continue
        if "disabled" in fields:
            value = fields["disabled"][1]
            return source[: value.start_mark.index] + "true" + source[value.end_mark.index :]
        key, value = fields["name"]
        if mapping.flow_style:
            end = value.end_mark.index
            return f"{source[:end]}, disabled: true{source[end:]}"
        return _new_line(source, value.end_mark.index, key.start_mark.column)
    return source


def _mappings(source: str) -> list[yaml.MappingNode]:
    root = yaml.compose(source, yaml.SafeLoader)
    found = next((value for key, value in root.value if key.value == "keys"), None) if root is not None else None
    items = found.value if isinstance(found, yaml.SequenceNode) else []
    return [item for item in items if isinstance(item, yaml.MappingNode)]


def _new_line(source: str, after: int, column: int) -> str:
    """Add a line behind the one that ends after a place, with the file's own line ends."""
    end = source.find("\n", after)
    newline = "\r\n" if "\r\n" in source else "\n"
    line = f"{' ' * column}disabled: true"
    if end < 0:
        return f"{source}{newline}{line}"
    return f"{source[: end + 1]}{line}{newline}{source[end + 1 :]}"


def _word(word: str) -> str:
    plain = _PLAIN.fullmatch(word) and word not in _WORDS
    return word if plain else msgspec.json.encode(word).decode()


def _number(value: int | decimal.Decimal) -> str:
    return f"{value:f}" if isinstance(value, decimal.Decimal) else str(value)
