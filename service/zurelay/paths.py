"""The public paths: what a method and a path ask for (SPEC 2)."""

from __future__ import annotations

import enum
import urllib.parse

import msgspec

from zurelay.errors import MethodNotAllowed, NotFound
from zurelay.model import Endpoint


class Page(enum.Enum):
    """What a path names."""

    CHAT = "chat"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    MODELS = "models"
    MODEL = "model"


class Target(msgspec.Struct, frozen=True):
    """A path, understood. `name` is the model's in a path that ends in one."""

    page: Page
    name: str = ""


_FIXED = {
    "/v1/chat/completions": Page.CHAT,
    "/v1/messages": Page.MESSAGES,
    "/v1/messages/count_tokens": Page.COUNT_TOKENS,
    "/v1/models": Page.MODELS,
}
OF = {
    Endpoint.CHAT: "/v1/chat/completions",
    Endpoint.MESSAGES: "/v1/messages",
    Endpoint.COUNT_TOKENS: "/v1/messages/count_tokens",
}
_MODEL_PREFIX = "/v1/models/"
_POST = ("POST",)
_METHODS = {
    Page.CHAT: _POST,
    Page.MESSAGES: _POST,
    Page.COUNT_TOKENS: _POST,
    Page.MODELS: ("GET", "HEAD"),
    Page.MODEL: ("GET", "HEAD"),
}

OPERATIONS = (
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
)
"""What clients do here, the frequent first; what is in braces may be anything."""
OTHER = "HTTP"  # https://opentelemetry.io/docs/specs/semconv/http/http-spans/#name


def shape(path: str) -> Endpoint:
    """Give the endpoint whose error shape a path gets."""
    return Endpoint.MESSAGES if path.startswith("/v1/messages") else Endpoint.CHAT


def bare(path: str) -> str:
    """Give a path without its query, which may hold a key."""
    return path.partition("?")[0]


def operation(method: str, path: str) -> str:
    """Name a request by its method and path, where it is one of `OPERATIONS`: so there are few names."""
    named = bare(path)
    if named.startswith(_MODEL_PREFIX):
        named = f"{_MODEL_PREFIX}{{model}}"
    return f"{method} {named}" if (method, named) in OPERATIONS else OTHER


def target(method: str, path: str) -> Target:
    """Understand a request line; 404 or 405 where there is nothing."""
    named = bare(path)
    page = _FIXED.get(named.rstrip("/") or named)
    name = ""
    if page is None and named.startswith(_MODEL_PREFIX):
        page, name = Page.MODEL, urllib.parse.unquote(named.removeprefix(_MODEL_PREFIX))
    if page is None:
        raise NotFound(
            f"There is nothing at {named[:200]}. zurelay serves /v1/chat/completions, /v1/messages and /v1/models.",
        )
    allowed = _METHODS[page]
    if method not in allowed:
        raise MethodNotAllowed(f"{named[:200]} takes {allowed[0]}, not {method[:20]}.", allow=", ".join(allowed))
    return Target(page, name)
