"""GET /v1/models: what a key may use, in one object that both SDKs read (SPEC 2)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from zurelay import permits
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.model import AUTO_ID, Feature, Input, Model
from zurelay.rules import Rules

_OWNER = "zurelay"


def all_models(catalog: Catalog, caller: Caller, rules: Rules = permits.UNBOUND) -> dict[str, Any]:
    """The list, in catalog order, Auto first."""
    data = [_entry(model) for model in catalog.models if _may_use(catalog, caller, rules, model)]
    if _may_use_auto(catalog, caller, rules):
        data.insert(0, _auto_entry(permits.auto_models(rules, catalog)))
    ids = [entry["id"] for entry in data]
    return {
        "object": "list",
        "data": data,
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


def one_model(catalog: Catalog, caller: Caller, name: str, rules: Rules = permits.UNBOUND) -> dict[str, Any]:
    """One model by id or alias; a model that the key or a policy forbids isn't there."""
    if catalog.is_auto(name) and _may_use_auto(catalog, caller, rules):
        return _auto_entry(permits.auto_models(rules, catalog))
    model = catalog.get(name)
    if model is None or not _may_use(catalog, caller, rules, model):
        raise catalog.unknown(name, allowed=permits.nameable(rules, catalog, caller.may_use))
    return _entry(model)


def _may_use(catalog: Catalog, caller: Caller, rules: Rules, model: Model) -> bool:
    return caller.may_use(model.id) and permits.visible(rules, catalog, model)


def _may_use_auto(catalog: Catalog, caller: Caller, rules: Rules) -> bool:
    return caller.may_use_auto and rules.auto() is None and bool(permits.auto_models(rules, catalog))


def _entry(model: Model) -> dict[str, Any]:
    found = _base(model.id, model.display_name or model.id, model.created)
    found["context_window"] = found["max_input_tokens"] = model.context_window
    found["max_output"] = found["max_tokens"] = model.max_output
    found["inputs"] = _inputs(model.inputs)
    found["features"] = _features(model.features)
    found["aliases"] = list(model.aliases)
    reasoning = model.reasoning
    found["reasoning"] = reasoning and {
        "levels": [level.name for level in reasoning.levels],
        "default": reasoning.default.name if reasoning.default is not None else None,
    }
    price = model.price
    found["price"] = price and {
        name: format(value, "f")
        for name in ("input", "cached_input", "cache_write", "output")
        if (value := getattr(price, name)) is not None
    }
    return found


def _auto_entry(models: Sequence[Model]) -> dict[str, Any]:
    found = _base(AUTO_ID, "Zurelay Auto", 0)
    found["context_window"] = found["max_input_tokens"] = max((model.context_window for model in models), default=0)
    found["inputs"] = _inputs(frozenset().union(*(model.inputs for model in models)))
    found["features"] = _features(frozenset().union(*(model.features for model in models)))
    levels = sorted({level for model in models if model.reasoning for level in model.reasoning.levels})
    found["reasoning"] = {"levels": [level.name for level in levels], "default": None} if levels else None
    found["models"] = [model.id for model in models]
    return found


def _base(model_id: str, display_name: str, created: int) -> dict[str, Any]:
    """The fields of OpenAI's model object and of Anthropic's."""
    created_at = dt.datetime.fromtimestamp(created, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": model_id,
        "object": "model",
        "created": created,
        "owned_by": _OWNER,
        "type": "model",
        "display_name": display_name,
        "created_at": created_at,
        "lifecycle": "active",
    }


def _inputs(inputs: frozenset[Input]) -> list[str]:
    return [kind.value for kind in Input if kind in inputs]


def _features(features: frozenset[Feature]) -> list[str]:
    return [feature.value for feature in Feature if feature in features]
