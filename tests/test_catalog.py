"""The catalog: every name finds its model, every route knows its path and parameters."""

from __future__ import annotations

import pytest

from making import catalog, model, provider
from zurelay.catalog import Catalog
from zurelay.errors import NotFound
from zurelay.model import Auto, Endpoint, Format, Params, Settings, Url

OPUS = model("claude-opus-5-5", "anthropic", "cloud", aliases=("opus", "best"))
SOL = model("gpt-6-sol", "openai")
MINI = model("gpt-6-mini", "openai")


@pytest.mark.parametrize("name", ["claude-opus-5-5", "opus", "best"])
def test_an_id_and_each_alias_find_the_model(name: str) -> None:
    assert catalog(OPUS, SOL).find(name) is OPUS
    assert catalog(OPUS, SOL).get(name) is OPUS


@pytest.mark.parametrize(
    "name", ["", "Opus", "opus ", "gpt-6", "zurelay-auto", "auto", "x" * 9_000, "模型", "\x00", "'\""]
)
def test_any_other_name_is_404(name: str) -> None:
    with pytest.raises(NotFound) as caught:
        catalog(OPUS, SOL).find(name)
    error = caught.value
    assert (404, "model_not_found", "model") == (error.status, error.code, error.param)
    assert len(error.message) < 500
    assert catalog(OPUS).get(name) is None


NEAR = {
    "a slip": ("gpt-6-sool", "There is no model 'gpt-6-sool'. Did you mean gpt-6-sol or gpt-6-mini?"),
    "several, the nearest first": ("gpt-6-mimi", "There is no model 'gpt-6-mimi'. Did you mean gpt-6-mini"),
    "an alias": ("opsu", "There is no model 'opsu'. Did you mean opus"),
    "nothing near": ("llama", "There is no model 'llama'. GET /v1/models lists them."),
}


@pytest.mark.parametrize(("name", "says"), [pytest.param(*row, id=name) for name, row in NEAR.items()])
def test_the_404_names_near_ones(name: str, says: str) -> None:
    with pytest.raises(NotFound) as caught:
        catalog(OPUS, SOL, MINI).find(name)
    assert caught.value.message.startswith(says)


def test_at_most_three_are_named() -> None:
    many = catalog(*(model(f"gpt-6-{letter}") for letter in "abcdefgh"))
    named = many.unknown("gpt-6-x").message.partition("Did you mean ")[2]
    assert named.count("gpt-6-") == 3


def test_only_names_that_the_caller_may_use_are_named() -> None:
    message = catalog(OPUS, SOL, MINI).unknown("gpt-6-m", allowed=lambda name: name == "gpt-6-sol").message
    assert "gpt-6-mini" not in message
    assert "gpt-6-sol" in message
    allowed = catalog(OPUS).unknown("opsu", allowed=lambda name: name == "claude-opus-5-5").message
    assert "Did you mean opus" in allowed  # an alias goes by its model's id


def test_the_param_is_the_field_that_held_the_name() -> None:
    with pytest.raises(NotFound) as caught:
        catalog(OPUS).find("x", param="models")
    assert caught.value.param == "models"


def test_auto_is_a_name_where_the_catalog_has_it() -> None:
    auto = Auto(simple=("gpt-6-sol",))
    assert "zurelay-auto" in catalog(SOL, auto=auto).names()
    assert "zurelay-auto" not in catalog(SOL).names()
    assert "zurelay-auto" in catalog(SOL, auto=auto).unknown("zurelay-atuo").message
    assert "Did you mean zurelay-auto" not in catalog(SOL, auto=auto).unknown("zurelay-auto").message


def test_auto_goes_by_two_names() -> None:
    found = [name for name in ("zurelay-auto", "auto", "Auto", "automatic", "") if Catalog.is_auto(name)]
    assert ["zurelay-auto", "auto"] == found


def test_models_keep_the_order_of_the_file() -> None:
    assert [SOL, OPUS, MINI] == list(catalog(SOL, OPUS, MINI).models)


def test_routes_keep_their_order_and_name_their_clusters() -> None:
    routes = catalog(OPUS).routes(OPUS)
    assert [
        ("claude-opus-5-5/anthropic", "anthropic", "anthropic-claude-opus-5-5"),
        ("claude-opus-5-5/cloud", "cloud", "cloud-claude-opus-5-5"),
    ] == [(route.cluster, route.provider, route.upstream) for route in routes]


def url(path: str) -> Url:
    return Url(scheme="https", host="h", port=443, path=path)


PATHS = {
    "OpenAI": (url("/v1"), {}, Format.OPENAI, Endpoint.CHAT, "/v1/chat/completions"),
    "no path of its own": (url(""), {}, Format.OPENAI, Endpoint.CHAT, "/chat/completions"),
    "a long path": (url("/api/openai/v1"), {}, Format.OPENAI, Endpoint.CHAT, "/api/openai/v1/chat/completions"),
    "a query, as Azure wants it": (
        url("/openai/deployments/x"),
        {"api-version": "2025-01-01", "a b": "c&d"},
        Format.OPENAI,
        Endpoint.CHAT,
        "/openai/deployments/x/chat/completions?api-version=2025-01-01&a+b=c%26d",
    ),
    "Anthropic behind chat": (url("/v1"), {}, Format.ANTHROPIC, Endpoint.CHAT, "/v1/messages"),
    "Anthropic behind messages": (url("/v1"), {}, Format.ANTHROPIC, Endpoint.MESSAGES, "/v1/messages"),
    "counting tokens": (url("/v1"), {}, Format.ANTHROPIC, Endpoint.COUNT_TOKENS, "/v1/messages/count_tokens"),
}


@pytest.mark.parametrize(
    ("base", "query", "kind", "endpoint", "expected"), [pytest.param(*row, id=name) for name, row in PATHS.items()]
)
def test_a_route_knows_its_path(
    base: Url, query: dict[str, str], kind: Format, endpoint: Endpoint, expected: str
) -> None:
    this = model("m", "p")
    whole = provider("p", base_url=base, query=query, format=kind)
    settings = catalog(this).settings
    made = Catalog(Settings(listen=settings.listen, status=settings.status, providers={"p": whole}, models={"m": this}))
    assert expected == made.routes(this)[0].path(endpoint)


def test_a_models_parameters_add_to_its_providers() -> None:
    this = model("m", "p", params=Params(rename={"a": "model"}, drop=("x", "y")))
    made = catalog(this, params={"p": Params(rename={"a": "provider", "b": "c"}, drop=("y", "z"))})
    assert Params(rename={"a": "model", "b": "c"}, drop=("y", "z", "x")) == made.routes(this)[0].params
