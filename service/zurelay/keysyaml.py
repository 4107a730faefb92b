"""The fast way into a keys file in YAML, as `zurelay keys new` and YAML libraries write it, and no other.

One entry is matched in one go, and what many entries say alike (models, limits) is read once. Whatever isn't beyond
doubt gives None, and the YAML reader decides and knows the lines (`keysfile.parse`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from zurelay import units
from zurelay.keysjson import DIGEST, Doubt, usd
from zurelay.model import AUTO_ALIAS, AUTO_ID, Key, UsageLimits
from zurelay.settings.names import GLOB
from zurelay.settings.policies import LABEL, MOST_COUNT

T = TypeVar("T")

_BREAKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")  # \n, \t apart
_NOTHING = re.compile(r"^ *(?:#.*)?\n", re.MULTILINE)
_START = re.compile(r"keys: *\n( *)- ")
_ITEM = re.compile(rf"""(["']?)({GLOB})\1""")
_LIMIT = re.compile(
    r"(requests_per_minute|tokens_per_minute|usd_per_day|usd_per_month): ((?:0|[1-9][0-9]*)(?:\.[0-9]+)?)"
)
_COUNT = re.compile(r"[1-9][0-9]{0,11}|10{12}")
_COMMA, _LINE = re.compile(", *"), re.compile(r"\n *")
_ITEM_LINE = re.compile(r"\n *- ")
_NOT_TEXT = frozenset({"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"})
_COUNTS = ("requests_per_minute", "tokens_per_minute")

_FIELDS = {
    "name": rf""" ("{LABEL}"|'{LABEL}'|{LABEL})""",
    "digest": rf""" ("{DIGEST}"|'{DIGEST}'|{DIGEST})""",
    "models": r""" \[([^\[\]{}\n]+)\]|((?:\nINDENT  +- [^\s\[\]{}]+)+)""",
    "smart_routing": r" (true|false)",
    "limits": r" \{([^\[\]{}\n]+)\}|((?:\nINDENT   +[a-z_]+: [0-9.]+)+)",
    "expires": r""" ("[0-9TZ:+.-]{10,40}"|'[0-9TZ:+.-]{10,40}'|[0-9TZ:+.-]{10,40})""",
    "disabled": r" (true|false)",
}


def parse(source: str) -> tuple[Key, ...] | None:
    """Read the keys, or give None where there is any doubt."""
    text = source.replace("\r\n", "\n").rstrip("\n")
    if "#" in text or "\n\n" in text:  # nothing else lets anything through that isn't looked at
        if _BREAKS.search(text):
            return None
        text = _NOTHING.sub("", text + "\n").rstrip("\n")
    start = _START.match(text)
    if start is None:
        return None
    entries = _Entries(start[1])
    try:
        keys = tuple(map(entries.key, text[start.end() :].split(f"\n{start[1]}- ")))
    except (Doubt, ValueError, OverflowError):
        return None
    apart = len({key.name for key in keys}) == len({key.digest for key in keys}) == len(keys)
    return keys if apart else None


def _entry(separator: str, ending: str, indent: str = "") -> re.Pattern[str]:
    """Match an entry: its fields in any order, of those that stand twice the last."""
    fields = "|".join(f"{name}:(?:{value})" for name, value in _FIELDS.items())
    return re.compile(rf"(?:(?:{fields.replace('INDENT', indent)})(?:{separator}|{ending}\Z))+")


class _Entries:
    """Entries at one indentation; what was read before is at hand."""

    def __init__(self, indent: str) -> None:
        self._line = _entry(rf"\n{indent}  (?! )", "", indent)
        self._flow = _entry(", *", r"\}")
        self._read: dict[tuple[Callable[..., Any], str], Any] = {}

    def key(self, text: str) -> Key:
        flow = text.startswith("{")
        match = (self._flow if flow else self._line).fullmatch(text, 1 if flow else 0)
        if match is None:
            raise Doubt
        given: dict[str, Any] = {}
        for (name, read), written in zip(_READERS, match.groups(), strict=True):
            if written is None:
                continue
            if name in given or text.count(f"{name}:") != 1:
                raise Doubt
            given[name] = self._once(read, written) if name in _ALIKE else read(written)
        if "name" not in given or "digest" not in given:
            raise Doubt
        return Key(**given)

    def _once(self, read: Callable[[str], T], text: str) -> T:
        found = self._read.get((read, text))
        if found is None:
            found = self._read[read, text] = read(text)
        return found


def _text(written: str) -> str:
    """Read text that is in quotes, or can't be anything else."""
    text = written.strip("\"'")
    if text == written and (text in _NOT_TEXT or not text[0].isalpha() or ":" in text):
        raise Doubt
    return text


def _digest(written: str) -> bytes:
    return bytes.fromhex(written.strip("\"'").removeprefix("sha256:"))


def _models(text: str) -> tuple[str, ...]:
    return _globs(_COMMA.split(text.strip(" ")))


def _model_lines(text: str) -> tuple[str, ...]:
    _demand_even(text)
    return _globs(_ITEM_LINE.split(text)[1:])


def _globs(written: list[str]) -> tuple[str, ...]:
    if not all(map(_ITEM.fullmatch, written)):
        raise Doubt
    models = tuple(AUTO_ID if (name := _text(each)) == AUTO_ALIAS else name for each in written)
    if len(set(models)) != len(models):
        raise Doubt
    return models


def _limits(text: str) -> UsageLimits:
    return _limited(_COMMA.split(text.strip(" ")))


def _limit_lines(text: str) -> UsageLimits:
    _demand_even(text)
    return _limited(_LINE.split(text)[1:])


def _demand_even(text: str) -> None:
    if len({len(line) - len(line.lstrip(" ")) for line in text.split("\n")[1:]}) != 1:
        raise Doubt


def _limited(written: list[str]) -> UsageLimits:
    given: dict[str, Any] = {}
    for each in written:
        match = _LIMIT.fullmatch(each)
        if match is None or match[1] in given:
            raise Doubt
        given[match[1]] = _count(match[2]) if match[1] in _COUNTS else usd(match[2].encode())
    return UsageLimits(**given)


def _count(written: str) -> int:
    if not _COUNT.fullmatch(written) or int(written) > MOST_COUNT:
        raise Doubt
    return int(written)


def _instant(text: str) -> Any:
    return units.instant(text.strip("\"'"))


def _flag(text: str) -> bool:
    return text == "true"


# What the groups of _FIELDS hold, in their order.
_READERS: tuple[tuple[str, Callable[[str], Any]], ...] = (
    ("name", _text),
    ("digest", _digest),
    ("models", _models),
    ("models", _model_lines),
    ("smart_routing", _flag),
    ("limits", _limits),
    ("limits", _limit_lines),
    ("expires", _instant),
    ("disabled", _flag),
)
_ALIKE = frozenset({"models", "limits", "expires"})  # what many entries say alike
