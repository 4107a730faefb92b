"""The decision: from a request's facts to the plan that carries it out (SPEC 4, 5). Pure: facts in, plan out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from zurelay import effort, fit, selection
from zurelay.access import Caller
from zurelay.auto import content
from zurelay.auto.classify import Verdict, classify
from zurelay.catalog import Catalog, RouteFacts
from zurelay.errors import Forbidden, InvalidRequest
from zurelay.model import AUTO_ID, Auto, Category, Effort, Endpoint, Format, Model, Params
from zurelay.plan import MOST_ATTEMPTS, Attempt, Plan, tries
from zurelay.request import ChatRequest
from zurelay.selection import LeftOut
from zurelay.translatable import Translatable


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision needs beside the request: who calls, what the headers ask, which routes are set aside."""

    caller: Caller
    request_id: str
    fallback: bool | None = None
    set_aside: frozenset[str] = frozenset()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The plan, and what led to it. `verdict` is Auto's, where Auto was asked."""

    plan: Plan
    asked: str
    effort_asked: Effort | None
    left_out: tuple[LeftOut, ...] = ()
    verdict: Verdict | None = None


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
    lists = _auto_models(catalog, auto, request.endpoint)
    every = tuple(model for models in lists.values() for model in models)
    if not every:
        raise InvalidRequest(f"{AUTO_ID} has no model that answers this endpoint: use another.", param="model")
    level = None
    if request.effort_word is not None:
        level = effort.parse(request.effort_word, every, request.effort_param)
    verdict = classify(content.read(request.body), auto.thresholds)
    chosen = selection.select(lists, verdict.category, request, level)
    said = Translatable(request)
    attempts: list[Attempt] = []
    left_out = list(chosen.left_out)
    for model in chosen.models:
        refusal = _unsayable(catalog, model, said)
        if refusal is None:
            attempts += tries(_attempts(catalog, model, request, facts, level, said, named=False))
        elif model is chosen.models[-1] and not attempts:
            raise refusal
        else:
            left_out.append(LeftOut(model.id, refusal.message))
    plan = _plan(catalog, request, facts, level, attempts, AUTO_ID)
    return Decision(plan=plan, asked=AUTO_ID, effort_asked=level, left_out=tuple(left_out), verdict=verdict)


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
    named = catalog.find(request.model, allowed=facts.caller.may_use)
    facts.caller.demand(named)
    others = _others(catalog, request, facts, named)
    asked = _asked_effort(request, named)
    said = Translatable(request)
    left_out: list[LeftOut] = []
    models = [named]
    for model in others:
        why = _mute(catalog, model, request) or unfit(model, request, facts.caller)
        if why is None and (refusal := _unsayable(catalog, model, said)) is not None:
            why = refusal.message
        if why:
            left_out.append(LeftOut(model.id, why))
        else:
            models.append(model)
    attempts: list[Attempt] = []
    for model in models:
        attempts += tries(_attempts(catalog, model, request, facts, asked, said, named=model is named))
    plan = _plan(catalog, request, facts, asked, attempts[:MOST_ATTEMPTS], named.id)
    return Decision(plan=plan, asked=named.id, effort_asked=asked, left_out=tuple(left_out))


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
    listed = [_listed(catalog, name, facts.caller) for name in request.models or ()]
    on = facts.fallback if facts.fallback is not None else facts.caller.smart_routing
    if not on:
        return []
    if request.models is None:
        listed = [catalog.find(name) for name in named.fallbacks]
    return [model for model in listed_once(listed) if model is not named]


def listed_once(models: Iterable[Model]) -> list[Model]:
    """Give each model once, in order; models are compared by id."""
    return list({model.id: model for model in models}.values())


def _listed(catalog: Catalog, name: str, caller: Caller) -> Model:
    if catalog.is_auto(name):
        raise InvalidRequest(
            f"models can't hold {name}: ask for it as the model, or list models by name.", param="models"
        )
    return catalog.find(name, param="models", allowed=caller.may_use)


def _attempts(
    catalog: Catalog,
    model: Model,
    request: ChatRequest,
    facts: Facts,
    asked: Effort | None,
    said: Translatable,
    *,
    named: bool,
) -> list[Attempt]:
    """The attempts of a model's routes, those apart that would drop a named model's field or are set aside."""
    routes = list(catalog.routes_for(model, request.endpoint))
    if named:
        _demand_routes(routes, model, request)
        routes = _routes_that_take_all(routes, model, request)
    level = effort.applied(asked, model)
    if len({route.format for route in routes}) > 1:  # else all can say it, or the attempt tells what can't be said
        routes = [route for route in routes if said.refusal(route.format, level, named=named) is None]
    ready = [route for route in routes if route.cluster not in facts.set_aside]
    return [
        Attempt(
            cluster=route.cluster,
            provider=route.provider,
            model=model.id,
            upstream=route.upstream,
            format=route.format,
            path=route.path(request.endpoint),
            window=model.context_window,
            effort=level.name if level is not None else None,
            shown_effort=effort.shown(level, model),
            named=named,
            max_output=model.max_output,
            rename=route.params.rename,
            drop=route.params.drop,
        )
        for route in ready or routes
    ]


def _demand_routes(routes: list[RouteFacts], model: Model, request: ChatRequest) -> None:
    if not routes:
        what = "count tokens" if request.endpoint is Endpoint.COUNT_TOKENS else "answer /v1/messages"
        raise InvalidRequest(
            f"{model.id} does not {what}: ask a model that has a route of Anthropic's format, or use "
            "/v1/chat/completions.",
            param="model",
        )


def _routes_that_take_all(routes: list[RouteFacts], model: Model, request: ChatRequest) -> list[RouteFacts]:
    taking = [route for route in routes if not refused_fields(route.params, request)]
    if not taking:
        field = refused_fields(routes[0].params, request)[0]
        raise InvalidRequest(f"{model.id} does not take {field}: leave it out.", param=field)
    return taking


def refused_fields(params: Params, request: ChatRequest) -> list[str]:
    """List the request's fields that would be dropped; a rename covers a field that is in both."""
    return [field for field in params.drop if field not in params.rename and request.document.raw(field) is not None]


def _plan(
    catalog: Catalog,
    request: ChatRequest,
    facts: Facts,
    level: Effort | None,
    attempts: list[Attempt],
    asked_id: str,
) -> Plan:
    times = catalog.settings.timeouts
    high = effort.is_high(level)
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
        stream=request.stream,
        hide_thinking=not request.wants_thinking,
    )
