"""Models with their routes, facts and prices, and Auto's lists."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from zurelay.model import Auto, Effort, Feature, Input, Model, Price, Reasoning, Route
from zurelay.nearby import listed
from zurelay.settings.facts import Facts
from zurelay.settings.names import model_name
from zurelay.settings.places import At, Found, Reader, each, struct
from zurelay.settings.providers import params
from zurelay.settings.scalars import choice, flag, integer, matching, number

_TOKENS = integer(1, 10**9)  # a hundred times today's largest windows; more is a slip of the keys
_USD = number(Decimal(0), Decimal(10**6))  # per million tokens: a dollar a token is a slip of the keys
_CATEGORIES = ("simple", "standard", "complex")
_THRESHOLDS = 2  # they part three categories
# A provider's own name of a model goes into JSON only, so that almost anything goes.
_provider_model = matching(r"\S(?:.{0,254}\S)?", "the provider's name of the model, at most 256 characters")
_display_name = matching(r"\S(?:.{0,126}\S)?", "a name of at most 128 characters, no spaces around it")


def model(name: str, at: At, facts: Facts) -> Model:
    """Read one model."""
    found = Found(
        at,
        {
            "aliases": each(model_name),
            "routes": lambda child: _routes(name, child, facts),
            "context_window": _TOKENS,
            "max_output": _TOKENS,
            "inputs": _inputs,
            "features": _features,
            "reasoning": _reasoning,
            "price": _price,
            "fallbacks": lambda child: _fallbacks(name, child, facts),
            "params": params,
            "messages": flag,
            "passthrough": flag,
            "display_name": _display_name,
            "created": integer(0, 10**11),
        },
    )
    window = found.values.get("context_window")
    if window and found.values.get("max_output", 0) > window:
        at.key("max_output").note(f"is over context_window, {window}")
    return found.build(Model, id=name)


def _routes(name: str, at: At, facts: Facts) -> tuple[Route, ...]:
    """Read the routes and name each after its model and provider; the number tells several of one provider apart."""
    used: dict[str, int] = {}

    def read(child: At) -> Route:
        found = struct(child, Route, {"provider": facts.names.provider, "model": _provider_model}, name="")
        used[found.provider] = count = used.get(found.provider, 0) + 1
        suffix = f"#{count}" if count > 1 else ""
        return Route(name=f"{name}/{found.provider}{suffix}", provider=found.provider, model=found.model)

    routes = each(read)(at)
    if not routes:
        raise at.wrong("a model needs at least one route: [{provider: NAME, model: NAME}]")
    return routes


def _fallbacks(name: str, at: At, facts: Facts) -> tuple[str, ...]:
    def read(child: At) -> str:
        found = facts.names.model(child)
        if found == name:
            raise child.wrong("a model is no fallback of its own; its routes are tried twice and in order anyway")
        return found

    return each(read)(at)


def _inputs(at: At) -> frozenset[Input]:
    found = frozenset(each(choice(Input))(at))
    if Input.TEXT not in found:
        raise at.wrong("text is missing; every model here reads it")
    return found


def _features(at: At) -> frozenset[Feature]:
    return frozenset(each(choice(Feature))(at))


def _reasoning(at: At) -> Reasoning:
    found = struct(at, Reasoning, {"levels": _levels, "default": choice(Effort)})
    if found.default is not None and found.default not in found.levels:
        words = listed(level.name for level in found.levels)
        raise at.key("default").wrong(f"{found.default.name} is none of the model's levels: {words}")
    return found


def _levels(at: At) -> tuple[Effort, ...]:
    found = each(choice(Effort))(at)
    if not found:
        raise at.wrong("no levels; leave reasoning out for a model without")
    return tuple(sorted(found))


def _price(at: At) -> Price:
    return struct(at, Price, dict.fromkeys(("input", "output", "cached_input", "cache_write"), _USD))


def auto(at: At, facts: Facts) -> Auto:
    """Read Auto's lists and thresholds."""
    models = each(facts.names.model)
    readers: dict[str, Reader[Any]] = dict.fromkeys(_CATEGORIES, models)
    found = struct(at, Auto, readers | {"thresholds": _thresholds})
    if not (found.simple or found.standard or found.complex):
        raise at.wrong(f"names no models; give {listed(_CATEGORIES)}, or leave auto out")
    return found


def _thresholds(at: At) -> tuple[float, float]:
    found = each(number(Decimal(0), Decimal(1)), repeats=True)(at)
    if len(found) != _THRESHOLDS or found[0] >= found[1]:
        raise at.wrong("expected two numbers from 0 to 1, the smaller first")
    return float(found[0]), float(found[1])
