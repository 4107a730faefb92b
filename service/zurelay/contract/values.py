"""Values of an Envoy configuration with one spelling each, so that what was written compares with what is told back."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)s")
_NUMBER = re.compile(r"[0-9]+")  # 64-bit integers are strings in the JSON of protobuf
_EMPTY = (None, False, 0, "", "NONE", "UNSPECIFIED")
_LONGEST = 120


class Seconds(msgspec.Struct, frozen=True, order=True):
    """A duration."""

    value: float


def normal(value: Any) -> Any:
    """Give a value without what says no more than its absence: protobuf leaves out zeros, and enums' first words."""
    if isinstance(value, dict):
        return {key: found for key, item in value.items() if (found := normal(item)) is not None}
    if isinstance(value, list):
        return [normal(item) for item in value] or None
    if isinstance(value, str):
        if duration := _DURATION.fullmatch(value):
            return Seconds(float(duration[1]))
        value = int(value) if _NUMBER.fullmatch(value) else value
    return None if value in _EMPTY else value  # an empty message is there, unlike one that is not


def at(value: Any, path: str) -> Any:
    """Follow a path of keys and indexes; None where it leads nowhere."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def say(value: Any) -> str:
    """Write a value for people."""
    if value is None:
        return "unset"
    if isinstance(value, Seconds):
        return f"{value.value:g}s"
    if isinstance(value, str):
        return value
    text = msgspec.json.encode(_plain(value)).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return say(value) if isinstance(value, Seconds) else value
