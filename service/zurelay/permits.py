"""What a caller's policies let through of a catalog: models with a route left, efforts under the cap (SPEC 12)."""

from __future__ import annotations

from collections.abc import Callable

from zurelay.catalog import Catalog
from zurelay.model import Effort, Endpoint, Model
from zurelay.request import ChatRequest
from zurelay.rules import Finding, Rules, denied

UNBOUND = Rules(())
"""The rules of a caller whom no policy binds."""


def against(
    rules: Rules, catalog: Catalog, model: Model, endpoint: Endpoint, *, picked_by_auto: bool = False
) -> Finding | None:
    """Say which policy leaves a model out: by its name, by all of its providers, or by its lowest level."""
    if not rules:
        return None
    found = rules.model(model.id, picked_by_auto=picked_by_auto) or rules.too_high(model)
    if found is not None:
        return found
    findings = [rules.provider(route.provider) for route in catalog.routes_for(model, endpoint)]
    return findings[0] if findings and None not in findings else None


def demand(rules: Rules, catalog: Catalog, named: Model, request: ChatRequest) -> None:
    """Refuse what a policy denies of a request for a named model: the model, or what the request holds."""
    if rules:
        _demand_inputs(rules, request)
        refuse(against(rules, catalog, named, request.endpoint))


def demand_auto(rules: Rules, request: ChatRequest) -> None:
    """Refuse what a policy denies of a request for Auto: Auto itself, or what the request holds."""
    if rules:
        refuse(rules.auto())
        _demand_inputs(rules, request)


def _demand_inputs(rules: Rules, request: ChatRequest) -> None:
    if rules.denies_inputs:  # else nobody looks so closely
        refuse(rules.inputs(request.carried))


def refuse(finding: Finding | None) -> None:
    """Raise the 403 of a finding, if there is one."""
    if finding is not None:
        raise denied(finding)


def capped(asked: Effort | None, rules: Rules) -> Effort | None:
    """Give the level that the policies leave of the one asked for."""
    cap = rules.effort_max
    return asked if asked is None or cap is None else min(asked, cap)


def auto_models(rules: Rules, catalog: Catalog) -> list[Model]:
    """List the models that Auto may pick for a caller, in the order of its lists."""
    auto = catalog.settings.auto
    names = dict.fromkeys((*auto.simple, *auto.standard, *auto.complex)) if auto is not None else {}
    models = map(catalog.find, names)
    return [one for one in models if against(rules, catalog, one, Endpoint.CHAT, picked_by_auto=True) is None]


def nameable(rules: Rules, catalog: Catalog, may_use: Callable[[str], bool]) -> Callable[[str], bool]:
    """Make the test of which ids a caller that looks for another may be told: those that are listed for it."""

    def may_be_told(name: str) -> bool:
        model = catalog.get(name)
        listed = rules.auto() is None if model is None else visible(rules, catalog, model)
        return listed and may_use(name)

    return may_be_told


def visible(rules: Rules, catalog: Catalog, model: Model) -> bool:
    """Whether a caller may ask for a model by name, and so sees it listed."""
    return against(rules, catalog, model, Endpoint.CHAT) is None
