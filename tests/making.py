"""Catalogs, plans and requests for tests of the pure rooms, each in one short call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from zurelay import settlement
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.decide import Facts
from zurelay.limits import Refused
from zurelay.model import (
    Effort,
    Endpoint,
    Format,
    Key,
    Listen,
    Model,
    Params,
    Provider,
    Reasoning,
    Route,
    Settings,
    Url,
)
from zurelay.plan import Attempt, Past, Plan, Reason
from zurelay.ports import Record, Unplanned
from zurelay.request import ChatRequest
from zurelay.rules import Finding
from zurelay.trace_context import Context, Trace

HELLO = [{"role": "user", "content": "Hello"}]
ALL_LEVELS = tuple(Effort)


def provider(name: str, **facts: Any) -> Provider:
    url = Url(scheme="https", host=f"{name}.test", port=443, path="/v1")
    return Provider(**{"name": name, "base_url": url, "format": Format.OPENAI, **facts})


def model(name: str, *providers: str, levels: str = "", **facts: Any) -> Model:
    """A model with one route at each provider, `one` if none is named; `levels` as words, the default in capitals."""
    routes = tuple(
        Route(name=f"{name}/{place}", provider=place, model=f"{place}-{name}") for place in providers or ("one",)
    )
    words = levels.split()
    if words:
        default = next((Effort[word.lower()] for word in words if word.isupper()), None)
        facts["reasoning"] = Reasoning(levels=tuple(Effort[word.lower()] for word in words), default=default)
    return Model(**{"id": name, "routes": routes, "context_window": 100_000, **facts})


def catalog(*models: Model, params: Mapping[str, Params] | None = None, **settings: Any) -> Catalog:
    """A catalog of these models; `params` are the providers' own."""
    names = dict.fromkeys(route.provider for each in models for route in each.routes)
    providers = {name: provider(name, params=(params or {}).get(name, Params())) for name in names}
    listen = Listen(port=8080)
    return Catalog(
        Settings(
            **{
                "listen": listen,
                "status": listen,
                "providers": providers,
                "models": {each.id: each for each in models},
                **settings,
            }
        )
    )


def key(name: str = "team", **rules: Any) -> Key:
    return Key(**{"name": name, "digest": bytes(32), **rules})


def facts(**known: Any) -> Facts:
    return Facts(**{"caller": Caller(), "request_id": "req_1", **known})


def body(**fields: Any) -> bytes:
    """A chat body for the model `first`; a field of `...` is left out."""
    whole = {"model": "first", "messages": HELLO, **fields}
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


def request(endpoint: Endpoint = Endpoint.CHAT, **fields: Any) -> ChatRequest:
    return ChatRequest.parse(body(**fields), endpoint)


def attempt(cluster: str = "first/one", **facts: Any) -> Attempt:
    """One try of a route named `MODEL/PROVIDER`."""
    name, _, place = cluster.partition("/")
    return Attempt(
        **{
            "cluster": cluster,
            "provider": place,
            "model": name,
            "upstream": f"{place}-{name}",
            "format": Format.OPENAI,
            "path": "/v1/chat/completions",
            "window": 100_000,
            "named": name == "first",
            **facts,
        }
    )


def plan(*attempts: Attempt | str, **facts: Any) -> Plan:
    """A plan of these attempts, those given as a string made by `attempt`."""
    made = tuple(each if isinstance(each, Attempt) else attempt(each) for each in attempts or ("first/one",))
    return Plan(
        **{
            "request_id": "req_1",
            "endpoint": Endpoint.CHAT,
            "attempts": made,
            "first_token": 180.0,
            "whole": 240.0,
            "total": 570.0,
            "length": len(made),
            "asked": "first",
            **facts,
        }
    )


def past(number: int, reason: Reason = Reason.STATUS, **facts: Any) -> Past:
    return Past(**{"number": number, "cluster": "first/one", "reason": reason, "status": 500, **facts})


def chunk(text: str | None = None, *, index: int = 0, finish: str | None = None, **fields: Any) -> bytes:
    """One chunk's JSON as OpenAI writes it; `delta` and any other field may be set."""
    delta = fields.pop("delta", {} if text is None else {"content": text})
    choices = [{"index": index, "delta": delta, "finish_reason": finish}]
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x", "choices": choices}
    return json.dumps({**whole, **fields}, ensure_ascii=False, separators=(",", ":")).encode()


def event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def unplanned(**facts: Any) -> Unplanned:
    """A request that was turned away."""
    return Unplanned(
        **{
            "request_id": "req_1",
            "method": "POST",
            "path": "/v1/chat/completions",
            "outcome": settlement.TURNED_AWAY,
            "status": 404,
            "code": "model_not_found",
            "began": 1,
            "ended": 2,
            **facts,
        }
    )


class Silent:
    """A recorder that keeps nothing."""

    def trace(self, marked: str, sent: Context | None, *, stream: bool = False) -> Trace | None:
        pass

    def may_keep(self, trace: Trace) -> bool:
        return trace.kept

    def decided(self, plan: Plan, took: float) -> None:
        pass

    def finished(self, record: Record) -> None:
        pass

    def unplanned(self, given: Unplanned) -> None:
        pass

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        pass

    def limited(self, plan: Plan, refused: Refused, *, shadow: bool) -> None:
        pass

    def ruled(self, request_id: str, finding: Finding, *, shadow: bool) -> None:
        pass


class Once:
    """The ends of requests, where there is one worker alone."""

    def __init__(self) -> None:
        self._claimed: set[str] = set()
        self._announced: set[str] = set()

    def claim(self, name: str) -> bool:
        return self._add(name, self._claimed)

    def announce(self, name: str) -> bool:
        return self._add(name, self._announced)

    def is_claimed(self, name: str) -> bool:
        return name in self._claimed

    def _add(self, name: str, to: set[str]) -> bool:
        new = name not in self._claimed | self._announced
        if new:
            to.add(name)
        return new
