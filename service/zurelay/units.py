"""Durations, sizes and times as people write them: `20s`, `1m30s`; `64MiB`, `512KiB`; `2027-01-01T00:00:00Z`.

A bare number is bytes where a size is wanted. A duration always has its unit: `20` could mean seconds or milliseconds.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re

_SECONDS = {
    "h": decimal.Decimal(3600),
    "m": decimal.Decimal(60),
    "s": decimal.Decimal(1),
    "ms": decimal.Decimal("0.001"),
}
_BYTES = {
    "TiB": 1 << 40,
    "TB": 10**12,
    "GiB": 1 << 30,
    "GB": 10**9,
    "MiB": 1 << 20,
    "MB": 10**6,
    "KiB": 1 << 10,
    "KB": 10**3,
    "kB": 10**3,
    "B": 1,
}
_MILLISECONDS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,30})?"  # bounded, so that no number is slow to read
_PART = re.compile(rf"({_NUMBER})(ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|s|m|h))+")
_SIZE = re.compile(rf"({_NUMBER}) ?([A-Za-z]*)")


_DAY, _TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
_INSTANT = re.compile(rf"{_DAY}[Tt]{_TIME}(?:[Zz]|[+-][0-9]{{2}}:[0-9]{{2}})")  # RFC 3339, 5.6


class UnitError(ValueError):
    """The text is no duration, size or time; the message says how to write one."""


def duration(text: str) -> float:
    """Read a duration as seconds; larger units come first, each once: `1h30m`."""
    if not _DURATION.fullmatch(text):
        if re.fullmatch(_NUMBER, text):
            raise UnitError("the number has no unit: write it as 20s, 500ms, 2m or 1h")
        raise UnitError("expected a duration such as 20s, 500ms, 1m30s or 1h")
    parts = _PART.findall(text)
    order = [list(_SECONDS).index(unit) for _, unit in parts]
    if order != sorted(set(order)):
        raise UnitError("expected each unit once and the larger ones first, such as 1h30m")
    return float(sum(decimal.Decimal(number) * _SECONDS[unit] for number, unit in parts))


def duration_text(seconds: float) -> str:
    """Write seconds so that `duration` reads the same back."""
    exact = decimal.Decimal(repr(seconds))
    left = exact * 1000
    if not seconds or left != left.to_integral_value() or left >= 10**15:
        return f"{exact.normalize():f}s"
    parts = []
    for unit, length in _MILLISECONDS:
        count, left = divmod(left, length)
        parts += [f"{int(count)}{unit}"] if count else []
    return "".join(parts)


def size(text: str) -> int:
    """Read a size as bytes. KiB, MiB, GiB and TiB are powers of 1024; KB, MB, GB and TB of 1000; no unit is bytes."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise UnitError("expected a size such as 64MiB, 10MB, 512KiB or a number of bytes")
    number, unit = found[1], found[2] or "B"
    if unit not in _BYTES:
        meant = [known for known in _BYTES if known.lower() in (unit.lower(), f"{unit.lower()}b")]
        hint = " or ".join(meant[:1] if "B" in unit else meant) or "B, KiB, MiB, GiB, KB, MB or GB"
        raise UnitError(f"unknown unit of size: write it as {hint}")
    total = decimal.Decimal(number) * _BYTES[unit]
    if total != total.to_integral_value():
        raise UnitError("the size is no whole number of bytes")
    return int(total)


def size_text(count: int) -> str:
    """Write bytes in the largest unit that holds them whole, so that `size` reads the same back."""
    for unit, length in _BYTES.items():
        if count and count % length == 0:
            return f"{count // length}{unit}"
    return "0B"


def instant(text: str) -> dt.datetime:
    """Read a point in time with its offset (RFC 3339); give it in UTC."""
    if not _INSTANT.fullmatch(text):
        raise UnitError("expected a time with its offset, such as 2027-01-01T00:00:00Z")
    try:
        return dt.datetime.fromisoformat(text.upper()).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise UnitError("there is no such day or time; expected one such as 2027-01-01T00:00:00Z") from None
