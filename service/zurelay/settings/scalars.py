"""Readers of single values: text, numbers exactly as written, words of a closed set, durations, sizes."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import re
from collections.abc import Callable
from typing import TypeVar

from zurelay import nearby, units
from zurelay.problems import shown
from zurelay.settings.places import At, Reader
from zurelay.yamlnodes import Scalar, is_null, kind

T = TypeVar("T")
E = TypeVar("E", bound=enum.Enum)

_DIGITS = 15  # the most digits of a number: exact in a float too, and quick to read
_DECIMALS = 12  # the most places after the point, a millionth of a millionth
_POWER = 3  # the most letters of an exponent: a sign and two digits


def text(at: At) -> str:
    """Read text that isn't empty."""
    node = at.node
    if not isinstance(node, Scalar) or is_null(node):
        raise at.wrong(f"expected text, not {kind(node)}")
    if node.truth is not None or node.number is not None:
        raise at.wrong(f"expected text, not {kind(node)}; put it in quotes")
    if not node.text:
        raise at.wrong("expected text, but it is empty")
    if not node.text.isprintable():
        raise at.wrong("holds a character that can't be printed; write it on one line, without tabs")
    return node.text


def matching(pattern: str, wanted: str) -> Reader[str]:
    """Read text of a pattern; `wanted` says which in words."""
    compiled = re.compile(pattern)

    def read(at: At) -> str:
        found = text(at)
        if not compiled.fullmatch(found):
            raise at.wrong(f"expected {wanted}")
        return found

    return read


def flag(at: At) -> bool:
    """Read true or false."""
    if not isinstance(at.node, Scalar) or at.node.truth is None:
        raise at.wrong(f"expected true or false, not {kind(at.node)}")
    return at.node.truth


def number(least: decimal.Decimal, most: decimal.Decimal) -> Reader[decimal.Decimal]:
    """Read a number exactly as written, from `least` to `most`."""

    def read(at: At) -> decimal.Decimal:
        found = _number(at)
        if not least <= found <= most:
            raise at.wrong(f"expected a number from {least} to {most}")
        return found

    return read


def integer(least: int, most: int) -> Reader[int]:
    """Read a whole number from `least` to `most`."""

    def read(at: At) -> int:
        found = _number(at)
        if not least <= found <= most or found != found.to_integral_value():
            raise at.wrong(f"expected a whole number from {least} to {most}")
        return int(found)

    return read


def _number(at: At) -> decimal.Decimal:
    node = at.node
    written = node.number if isinstance(node, Scalar) else None
    if written is None:
        quoted = isinstance(node, Scalar) and not node.plain and Scalar(0, node.text).number is not None
        raise at.wrong(f"expected a number, not {kind(node)}{'; leave the quotes out' if quoted else ''}")
    # What passed a program may come back as 1e-05 or 1e+06: helm writes prices and windows so.
    plain, _, power = written.lower().partition("e")
    whole, _, places = plain.lstrip("+-").partition(".")
    moved = int(power or 0) if len(power) <= _POWER else _DIGITS + _DECIMALS
    if max(len(whole), len(whole) + moved) > _DIGITS or max(len(places), len(places) - moved) > _DECIMALS:
        raise at.wrong(f"write the number in at most {_DIGITS} digits and {_DECIMALS} places after the point")
    if len(whole) > 1 and whole.startswith("0"):
        raise at.wrong("write the number without leading zeros; some readers take them for base 8")
    return decimal.Decimal(f"{decimal.Decimal(written):f}")


def duration(at: At) -> float:
    """Read a duration above nothing and up to a day, in seconds."""
    seconds = _unit(at, units.duration)
    if not 0 < seconds <= 24 * 3600:
        raise at.wrong("expected a duration above 0s and up to 24h")
    return seconds


def size(least: int, most: int) -> Reader[int]:
    """Read a size in bytes, from `least` to `most`."""

    def read(at: At) -> int:
        found = _unit(at, units.size)
        if not least <= found <= most:
            raise at.wrong(f"expected a size from {units.size_text(least)} to {units.size_text(most)}")
        return found

    return read


def instant(at: At) -> dt.datetime:
    """Read a point in time."""
    try:
        return units.instant(text(at))
    except units.UnitError as error:
        raise at.wrong(str(error)) from None


def _unit(at: At, read: Callable[[str], T]) -> T:
    if not isinstance(at.node, Scalar):
        raise at.wrong(f"expected text or a number with its unit, not {kind(at.node)}")
    try:
        return read(at.node.text.replace("_", ""))
    except units.UnitError as error:
        raise at.wrong(str(error)) from None


def choice(kinds: type[E]) -> Reader[E]:
    """Read one word of an enum."""
    words = {_word(member): member for member in kinds}

    def read(at: At) -> E:
        if not isinstance(at.node, Scalar) or is_null(at.node):
            raise at.wrong(f"expected one of {nearby.listed(words)}, not {kind(at.node)}")
        found = words.get(at.node.text)
        if found is None:
            meant = nearby.did_you_mean(nearby.near(at.node.text, words))
            raise at.wrong(f"expected one of {nearby.listed(words)}, not {shown(at.node.text)}{meant}")
        return found

    return read


def _word(member: enum.Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name
