"""The decision: from a request's facts to the plan that carries it out (SPEC 4, 5). Pure: facts in, plan out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from zurelay import effort, fit, permits, selection
from zurelay.access import Caller
from zurelay.auto import content
from zurelay.auto.classify import Verdict, classify
from zurelay.candidates import Facts, attempts_of
from zurelay.catalog import Catalog
from zurelay.errors import Forbidden, InvalidRequest
from zurelay.model import AUTO_ID, Auto, Category, Effort, Endpoint, Format, Model
from zurelay.plan import MOST_ATTEMPTS, Attempt, Plan, tries
from zurelay.request import ChatRequest
from zurelay.rules import Finding, Rules
from zurelay.selection import LeftOut
from zurelay.translatable import Translatable

__all__ = ["Decision", "Facts", "decide"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The plan, and what led to it. `verdict` is Auto's, where Auto was asked; `findings` are the policies'."""

    plan: Plan
    asked: str
    effort_asked: Effort | None
    left_out: tuple[LeftOut, ...] = ()
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()


def decide(catalog: Catalog, request: ChatRequest, facts: Facts) -> Decision:
    """Plan a request; what can't be planned is an error that says why."""
    auto = catalog.settings.auto
    if auto is not None and catalog.is_auto(request.model):
        return _decide_auto(catalog, auto, request, facts)
    return _decide_named(catalog, request, facts)


def _decide_auto(catalog: Catalog, auto: Auto, request: ChatRequest, facts: Facts) -> Decision:
    """Plan a request for Auto: smart-routing settings don't change it, the key must allow it as a whole (SPEC 6)."""
    if not facts.caller.may_use_auto:
        raise Forbidden(f"This key may not use {AUTO_ID}. GET /v1/models lists what it may use.", param="model")
    for name in request.models or ():
        _refuse_auto(catalog, name)
    permits.demand_auto(facts.rules, request)
    lists = _auto_models(catalog, auto, request.endpoint)
    lists, denied = _permitted(catalog, lists, facts.rules, request.endpoint)
    every = tuple(model for models in lists.values() for model in models)
    if not every:
        permits.refuse(next(iter(denied.values()), None))
        raise InvalidRequest(f"{AUTO_ID} has no model that answers this endpoint: use another.", param="model")
    level = None
    if request.effort_word is not None:
        level = effort.parse(request.effort_word, every, request.effort_param)
    verdict = classify(content.read(request.body), auto.thresholds)
    said = Translatable(request)
    chosen = selection.select(
        lists,
        verdict.category,
        request,
        permits.capped(level, facts.rules),
        lambda model: _unsayable(catalog, model, said),
    )
    attempts: list[Attempt] = []
    for model in chosen.models:
        attempts += tries(attempts_of(catalog, model, request, facts, level, said, named=False))
    left_out = [LeftOut(name, finding.why) for name, finding in denied.items()]
    left_out += chosen.left_out
    plan = _plan(catalog, request, facts, level, attempts, AUTO_ID)
    plan = msgspec.structs.replace(plan, category=verdict.category.value, score=verdict.score)
    return Decision(
        plan=plan,
        asked=AUTO_ID,
        effort_asked=level,
        left_out=tuple(left_out),
        verdict=verdict,
        findings=tuple(denied.values()),
    )


def _permitted(
    catalog: Catalog, lists: dict[Category, tuple[Model, ...]], rules: Rules, endpoint: Endpoint
) -> tuple[dict[Category, tuple[Model, ...]], dict[str, Finding]]:
    """Leave out what the policies deny to Auto."""
    denied = {
        model.id: finding
        for models in (lists.values() if rules else ())
        for model in models
        if (finding := permits.against(rules, catalog, model, endpoint, picked_by_auto=True)) is not None
    }
    if not denied:
        return lists, denied
    kept = {category: tuple(m for m in models if m.id not in denied) for category, models in lists.items()}
    return kept, denied


def _auto_models(catalog: Catalog, auto: Auto, endpoint: Endpoint) -> dict[Category, tuple[Model, ...]]:
    """Give Auto's models by category; on messages those with a route of that format."""
    named = {Category.SIMPLE: auto.simple, Category.STANDARD: auto.standard, Category.COMPLEX: auto.complex}
    return {
        category: tuple(model for model in map(catalog.find, names) if _speaks(catalog, model, endpoint))
        for category, names in named.items()
    }


def _speaks(catalog: Catalog, model: Model, endpoint: Endpoint) -> bool:
    return endpoint is Endpoint.CHAT or any(route.format is Format.ANTHROPIC for route in catalog.routes(model))


def _decide_named(catalog: Catalog, request: ChatRequest, facts: Facts) -> Decision:
    """Plan a request for a model that the client named, and those that may answer in its place."""
    named = catalog.find(request.model, allowed=_nameable(catalog, facts))
    facts.caller.demand(named)
    permits.demand(facts.rules, catalog, named, request)
    others = _others(catalog, request, facts, named)
    asked = _asked_effort(request, named)
    said = Translatable(request)
    left_out: list[LeftOut] = []
    findings: list[Finding] = []
    models = [named]
    for model in others:
        finding = permits.against(facts.rules, catalog, model, request.endpoint)
        if finding is not None:
            findings.append(finding)
            left_out.append(LeftOut(model.id, finding.why))
            continue
        why = _mute(catalog, model, request) or unfit(model, request, facts.caller)
        if why is None and (refusal := _unsayable(catalog, model, said)) is not None:
            why = refusal.message
        if why:
            left_out.append(LeftOut(model.id, why))
        else:
            models.append(model)
    attempts: list[Attempt] = []
    for model in models:
        attempts += tries(attempts_of(catalog, model, request, facts, asked, said, named=model is named))
    plan = _plan(catalog, request, facts, asked, attempts[:MOST_ATTEMPTS], named.id)
    return Decision(plan=plan, asked=named.id, effort_asked=asked, left_out=tuple(left_out), findings=tuple(findings))


def _mute(catalog: Catalog, model: Model, request: ChatRequest) -> str | None:
    """Say that a model doesn't answer the endpoint; None where it does."""
    return None if catalog.routes_for(model, request.endpoint) else "it has no route that speaks this endpoint's format"


def _unsayable(catalog: Catalog, model: Model, said: Translatable) -> InvalidRequest | None:
    """Give the refusal of a model that the client didn't name and whose routes all speak a format that can't say it."""
    refusals = [said.refusal(route.format, None, named=False) for route in catalog.routes_for(model, said.endpoint)]
    return refusals[0] if refusals and None not in refusals else None


def unfit(model: Model, request: ChatRequest, caller: Caller) -> str | None:
    """Say why a model that the client didn't name can't take this request; None if it can (SPEC 5)."""
    if not caller.may_use(model.id):
        return "the key may not use it"
    return fit.unfit(model, request)


def _asked_effort(request: ChatRequest, named: Model) -> Effort | None:
    if request.effort_word is None:
        return None
    return effort.parse(request.effort_word, (named,), request.effort_param)


def _others(catalog: Catalog, request: ChatRequest, facts: Facts, named: Model) -> list[Model]:
    """The models that smart routing adds: the request's list, else the model's fallbacks."""
    if request.endpoint is Endpoint.COUNT_TOKENS:
        return []
    listed = [_listed(catalog, name, facts) for name in request.models or ()]
    asked = facts.fallback if facts.fallback is not None else facts.caller.smart_routing
    said = facts.rules.smart_routing
    if not (asked if said is None else said):
        return []
    if request.models is None:
        listed = [catalog.find(name) for name in named.fallbacks]
    return [model for model in listed_once(listed) if model is not named]


def listed_once(models: Iterable[Model]) -> list[Model]:
    """Give each model once, in order; models are compared by id."""
    return list({model.id: model for model in models}.values())


def _refuse_auto(catalog: Catalog, name: str) -> None:
    if catalog.is_auto(name):
        raise InvalidRequest(
            f"models can't hold {name}: ask for it as the model, or list models by name.", param="models"
        )


def _listed(catalog: Catalog, name: str, facts: Facts) -> Model:
    _refuse_auto(catalog, name)
    return catalog.find(name, param="models", allowed=_nameable(catalog, facts))


def _nameable(catalog: Catalog, facts: Facts) -> Callable[[str], bool]:
    return permits.nameable(facts.rules, catalog, facts.caller.may_use)


def _plan(
    catalog: Catalog,
    request: ChatRequest,
    facts: Facts,
    level: Effort | None,
    attempts: list[Attempt],
    asked_id: str,
) -> Plan:
    times = catalog.settings.timeouts
    high = effort.is_high(permits.capped(level, facts.rules))
    return Plan(
        request_id=facts.request_id,
        endpoint=request.endpoint,
        attempts=tuple(attempts),
        first_token=times.first_token_high if high else times.first_token,
        whole=times.whole_high if high else times.whole,
        total=times.total,
        length=min(len(attempts), MOST_ATTEMPTS),
        asked=asked_id,
        key=facts.caller.key.name if facts.caller.key is not None else None,
        workload=facts.caller.workload.name if facts.caller.workload is not None else "",
        stream=request.stream,
        hide_thinking=not request.wants_thinking,
        effort_asked=level.name if level is not None else "",
    )
