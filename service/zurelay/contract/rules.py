"""Rules: how one value of Envoy's has to stand to the one that the sidecar would write itself."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import msgspec

from zurelay.contract.values import Seconds, at, say


class How(enum.Enum):
    """What is compared."""

    SAME = enum.auto()
    AT_LEAST = enum.auto()  # also a thing that must be there, where what is wanted is no number
    PATIENT = enum.auto()  # at least; 0s is for ever
    INCLUDES = enum.auto()  # everything in the list that is wanted
    WORDS = enum.auto()  # everything in the list, which is one text with commas


class Rule(msgspec.Struct, frozen=True):
    """One rule. `unset` is what Envoy takes for a value that isn't there; `why` is told where it isn't plain."""

    path: str
    how: How = How.SAME
    unset: Any = None
    why: str = ""


def broken(rules: tuple[Rule, ...], where: str, wanted: Any, found: Any) -> Iterator[str]:
    """Name the rules that don't hold between two parts of configurations, both `normal`."""
    for rule in rules:
        want, have = (rule.unset if (value := at(part, rule.path)) is None else value for part in (wanted, found))
        if difference := _difference(rule.how, want, have):
            yield f"{where}: {rule.path} {difference}{f' ({rule.why})' if rule.why else ''}"


def _difference(how: How, want: Any, have: Any) -> str:
    if how is How.SAME:
        return "" if want == have else f"is {say(have)}, must be {say(want)}"
    if want is None:
        return ""
    if how in (How.AT_LEAST, How.PATIENT):
        if (how is How.PATIENT and have == Seconds(0)) or _reaches(want, have):
            return ""
        return f"is {say(have)}, must be at least {say(want)}"
    lacking = _lacking(*((want, have) if how is How.INCLUDES else (_words(want), _words(have))))
    if not lacking:
        return ""
    more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return f"lacks {say(lacking[0])}{more}"


def _reaches(want: Any, have: Any) -> bool:
    if type(want) is not type(have):
        return False
    return bool(have >= want) if isinstance(want, int | Seconds) else True


def _lacking(want: list[Any], have: Any) -> list[Any]:
    return [item for item in want if item not in (have or [])]


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",")]
