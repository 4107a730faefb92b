"""Reasoning effort: from the level that was asked to the nearest one that a model accepts (SPEC 4)."""

from __future__ import annotations

from zurelay.errors import InvalidRequest
from zurelay.model import Effort, Model

_WORDS = {level.name: level for level in Effort}
_HIGH = Effort.high


def parse(word: str, models: tuple[Model, ...], param: str = "reasoning_effort") -> Effort:
    """Turn an exact lower-case word into a level; a 400 lists what the given models accept."""
    level = _WORDS.get(word)
    if level is None:
        raise InvalidRequest(
            f"{word[:40]!r} is not a reasoning level. {_accepted(models)}",
            code="invalid_reasoning_effort",
            param=param,
        )
    return level


def _accepted(models: tuple[Model, ...]) -> str:
    levels = sorted({level for model in models if model.reasoning for level in model.reasoning.levels})
    if levels:
        return "Send one of: " + ", ".join(level.name for level in levels) + "."
    return f"{models[0].id} has no reasoning levels: leave the field out." if models else "Leave the field out."


def nearest(asked: Effort, levels: tuple[Effort, ...]) -> Effort:
    """Give the accepted level nearest to the asked one, the lower of two; only `none` turns reasoning off."""
    if asked in levels:
        return asked
    thinking = tuple(level for level in levels if level is not Effort.none)
    if not thinking:
        return Effort.none
    if asked is Effort.none:
        return min(thinking)
    return min(thinking, key=lambda level: (abs(level - asked), level))


def applied(asked: Effort | None, model: Model, cap: Effort | None = None) -> Effort | None:
    """Give the level to send to this model; None sends none and leaves the model its default.

    A default that nobody knows may be above the cap: then the cap is sent.
    """
    if model.reasoning is None:
        return None
    if cap is not None:
        default = model.reasoning.default
        if asked is None and default is not None and default <= cap:
            return None
        asked = cap if asked is None else min(asked, cap)
        levels = tuple(level for level in model.reasoning.levels if level <= cap)
        return nearest(asked, levels or model.reasoning.levels)
    return None if asked is None else nearest(asked, model.reasoning.levels)


def shown(sent: Effort | None, model: Model) -> str | None:
    """Give the value of x-zurelay-reasoning-effort: the level that runs, None where nobody knows it."""
    if model.reasoning is None:
        return Effort.none.name
    if sent is not None:
        return sent.name
    return model.reasoning.default.name if model.reasoning.default is not None else None


def is_high(asked: Effort | None) -> bool:
    """Tell whether the longer times of high effort apply (SPEC 5)."""
    return asked is not None and asked >= _HIGH
