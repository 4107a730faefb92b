"""The public paths: what each asks for, and 404 and 405 for the rest."""

from __future__ import annotations

import pytest

from zurelay import paths
from zurelay.errors import MethodNotAllowed, NotFound
from zurelay.model import Endpoint
from zurelay.paths import Page, Target

FOUND = {
    "chat": ("POST", "/v1/chat/completions", Target(Page.CHAT)),
    "chat with a query": ("POST", "/v1/chat/completions?api-version=1", Target(Page.CHAT)),
    "chat with a slash at the end": ("POST", "/v1/chat/completions/", Target(Page.CHAT)),
    "models": ("GET", "/v1/models", Target(Page.MODELS)),
    "models, as Anthropic's SDK asks": ("GET", "/v1/models?limit=20&after_id=x", Target(Page.MODELS)),
    "models with a slash at the end": ("GET", "/v1/models/", Target(Page.MODELS)),
    "models, the head alone": ("HEAD", "/v1/models", Target(Page.MODELS)),
    "one model": ("GET", "/v1/models/gpt-6", Target(Page.MODEL, "gpt-6")),
    "one model with a slash in its name": ("GET", "/v1/models/meta/llama", Target(Page.MODEL, "meta/llama")),
    "one model, its slash escaped": ("GET", "/v1/models/meta%2Fllama", Target(Page.MODEL, "meta/llama")),
    "one model, escaped as UTF-8": ("GET", "/v1/models/%E6%A8%A1", Target(Page.MODEL, "模")),
    "one model, escaped as nothing known": ("GET", "/v1/models/%FF", Target(Page.MODEL, "\ufffd")),
}


@pytest.mark.parametrize(("method", "path", "expected"), [pytest.param(*row, id=name) for name, row in FOUND.items()])
def test_a_path_names_a_page(method: str, path: str, expected: Target) -> None:
    assert expected == paths.target(method, path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/v1",
        "/v1/",
        "/v2/chat/completions",
        "/v1/chat",
        "/v1/embeddings",
        "/V1/models",
        "/v1/modelsx",
        "//v1/models",
    ],
)
def test_anything_else_is_404(path: str) -> None:
    with pytest.raises(NotFound) as caught:
        paths.target("GET", path)
    error = caught.value
    assert (404, "not_found", "invalid_request_error") == (error.status, error.code, error.type)


def test_a_long_path_is_not_repeated_whole() -> None:
    with pytest.raises(NotFound) as caught:
        paths.target("GET", "/" + "x" * 50_000)
    assert len(caught.value.message) < 500


METHODS = {
    "chat by GET": ("GET", "/v1/chat/completions", "POST"),
    "chat by DELETE": ("DELETE", "/v1/chat/completions", "POST"),
    "chat by OPTIONS": ("OPTIONS", "/v1/chat/completions", "POST"),
    "models by POST": ("POST", "/v1/models", "GET, HEAD"),
    "one model by DELETE": ("DELETE", "/v1/models/gpt-6", "GET, HEAD"),
    "a method in small letters": ("post", "/v1/chat/completions", "POST"),
}


@pytest.mark.parametrize(("method", "path", "allow"), [pytest.param(*row, id=name) for name, row in METHODS.items()])
def test_a_wrong_method_is_405_with_allow(method: str, path: str, allow: str) -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        paths.target(method, path)
    error = caught.value
    assert (405, "method_not_allowed", {"allow": allow}) == (error.status, error.code, error.headers())


SHAPES = {
    "/v1/chat/completions": Endpoint.CHAT,
    "/v1/models": Endpoint.CHAT,
    "/v1/nothing": Endpoint.CHAT,
    "/v1/messages": Endpoint.MESSAGES,
    "/v1/messages?beta=true": Endpoint.MESSAGES,
    "/v1/messages/count_tokens": Endpoint.MESSAGES,
    "/v1/messages/nothing": Endpoint.MESSAGES,
}


@pytest.mark.parametrize(("path", "expected"), SHAPES.items())
def test_errors_have_the_shape_of_the_paths_api(path: str, expected: Endpoint) -> None:
    assert expected is paths.shape(path)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/messages?key=secret", "POST /v1/messages"),
        ("GET", "/v1/models", "GET /v1/models"),
        ("GET", "/v1/models/some/thing?x", "GET /v1/models/{model}"),
        ("GET", "/v1/messages", "HTTP"),
        ("POST", "/wp-login.php", "HTTP"),
        ("MAKEUP", "/v1/messages", "HTTP"),
    ],
)
def test_few_names_are_given_to_what_is_asked(method: str, path: str, expected: str) -> None:
    assert expected == paths.operation(method, path)
