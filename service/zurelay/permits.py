"""What a caller's policies let through of a catalog: models with a route left, efforts under the cap (SPEC 12)."""

from __future__ import annotations

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


def visible(rules: Rules, catalog: Catalog, model: Model) -> bool:
    """Whether a caller may ask for a model by name, and so sees it listed."""
    return against(rules, catalog, model, Endpoint.CHAT) is None
