"""The attempts of one model: its routes that may be tried, each with the level that runs there (SPEC 4, 5)."""

from __future__ import annotations

import msgspec

from zurelay import effort, permits
from zurelay.access import Caller
from zurelay.catalog import Catalog, RouteFacts
from zurelay.errors import InvalidRequest
from zurelay.model import Effort, Endpoint, Model, Params
from zurelay.plan import Attempt
from zurelay.request import ChatRequest
from zurelay.rules import Rules
from zurelay.translatable import Translatable


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision needs beside the request: who calls, what binds them, what the headers ask, routes set aside."""

    caller: Caller
    request_id: str
    rules: Rules = permits.UNBOUND
    fallback: bool | None = None
    set_aside: frozenset[str] = frozenset()


def attempts_of(
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
    if facts.rules:
        routes = [route for route in routes if facts.rules.provider(route.provider) is None]
    if named:
        _demand_routes(routes, model, request)
        routes = _routes_that_take_all(routes, model, request)
    cap = facts.rules.effort_max
    level = effort.applied(asked, model, cap)
    if len({route.format for route in routes}) > 1:  # else all can say it, or the attempt tells what can't be said
        routes = [route for route in routes if said.refusal(route.format, level, named=named) is None]
    ready = [route for route in routes if route.cluster not in facts.set_aside] or routes
    if request.endpoint is Endpoint.COUNT_TOKENS:  # one provider's word is enough
        ready = ready[:1]
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
            cap=cap.name if cap is not None else None,
            named=named,
            max_output=model.max_output,
            rename=route.params.rename,
            drop=route.params.drop,
            price=model.price,
        )
        for route in ready
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
