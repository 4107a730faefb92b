"""The catalog: the settings' models by every name, and each route's facts as an attempt needs them."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

from zurelay.errors import NotFound
from zurelay.model import AUTO_ALIAS, AUTO_ID, Endpoint, Format, Model, Params, Provider, Settings
from zurelay.nearby import NearNames, listed

_PATHS = {
    (Format.OPENAI, Endpoint.CHAT): "/chat/completions",
    (Format.OPENAI, Endpoint.MESSAGES): "/chat/completions",
    (Format.ANTHROPIC, Endpoint.CHAT): "/messages",
    (Format.ANTHROPIC, Endpoint.MESSAGES): "/messages",
    (Format.ANTHROPIC, Endpoint.COUNT_TOKENS): "/messages/count_tokens",
}


class RouteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One route as an attempt needs it. `base` and `query` make the path; `cluster` is without its suffix."""

    cluster: str
    provider: str
    upstream: str
    format: Format
    base: str
    query: str
    params: Params

    def path(self, endpoint: Endpoint) -> str:
        """Give the provider's path and query for what the client called."""
        return self.base + _PATHS[self.format, endpoint] + self.query


class Catalog:
    """Settings, indexed for look-ups. Built once for each configuration, never changed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._models: dict[str, Model] = {}
        self._routes: dict[str, tuple[RouteFacts, ...]] = {}
        for model in settings.models.values():
            for name in (model.id, *model.aliases):
                self._models[name] = model
            self._routes[model.id] = tuple(
                _facts(route.name, route.model, settings.providers[route.provider], model) for route in model.routes
            )

    @property
    def models(self) -> Iterable[Model]:
        """All models, in the order of the file."""
        return self.settings.models.values()

    def get(self, name: str) -> Model | None:
        """Give the model of an id or alias."""
        return self._models.get(name)

    def find(self, name: str, param: str = "model", *, allowed: Callable[[str], bool] | None = None) -> Model:
        """Give the model of an id or alias, or a 404 with near names: those whose id `allowed` lets through."""
        model = self._models.get(name)
        if model is None:
            raise self.unknown(name, param, allowed=allowed)
        return model

    def unknown(self, name: str, param: str = "model", *, allowed: Callable[[str], bool] | None = None) -> NotFound:
        """Make the 404 of a name that is none, with up to three near ones."""
        near = [
            found
            for found in self._near.find(name, allowed=allowed and (lambda near: allowed(self._id(near))))
            if found != name
        ]
        hint = f" Did you mean {listed(near)}?" if near else " GET /v1/models lists them."
        return NotFound(f"There is no model {name[:100]!r}.{hint}", code="model_not_found", param=param)

    def names(self) -> tuple[str, ...]:
        """All names that a client may send."""
        return (*self._models, AUTO_ID) if self.settings.auto else tuple(self._models)

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(self.names())

    def _id(self, name: str) -> str:
        return self._models[name].id if name in self._models else name

    def routes(self, model: Model) -> tuple[RouteFacts, ...]:
        """Give the facts of a model's routes, in order."""
        return self._routes[model.id]

    def routes_for(self, model: Model, endpoint: Endpoint) -> tuple[RouteFacts, ...]:
        """Give the routes by which a model answers: on messages those of its format, or all where allowed."""
        routes = self.routes(model)
        if endpoint is Endpoint.CHAT or (endpoint is Endpoint.MESSAGES and model.messages):
            return routes
        return tuple(route for route in routes if route.format is Format.ANTHROPIC)

    @staticmethod
    def is_auto(name: str) -> bool:
        """Tell whether the name asks for Auto."""
        return name in (AUTO_ID, AUTO_ALIAS)


def _facts(cluster: str, upstream: str, provider: Provider, model: Model) -> RouteFacts:
    url = provider.base_url
    query = "?" + urllib.parse.urlencode(provider.query) if provider.query else ""
    return RouteFacts(
        cluster=cluster,
        provider=provider.name,
        upstream=upstream,
        format=provider.format,
        base=url.path,
        query=query,
        params=Params(
            rename={**provider.params.rename, **model.params.rename},
            drop=tuple(dict.fromkeys((*provider.params.drop, *model.params.drop))),
        ),
    )
