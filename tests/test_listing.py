"""GET /v1/models: what both SDKs read of it, and what a key sees."""

from __future__ import annotations

import decimal
import json
from typing import Any

import anthropic.types
import msgspec
import openai.types
import pytest
from anthropic.pagination import SyncPage as AnthropicPage
from openai.pagination import SyncPage as OpenAIPage

from making import catalog, key, model
from zurelay import listing
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.errors import NotFound
from zurelay.listing import all_models, one_model
from zurelay.model import Auto, Feature, Input, Match, Names, Policy, Price
from zurelay.rules import Rule, Rules

USD = decimal.Decimal
SOL = model(
    "gpt-6-sol",
    levels="none low MEDIUM",
    aliases=("sol",),
    inputs=frozenset({Input.IMAGE, Input.TEXT}),
    features=frozenset({Feature.JSON_SCHEMA}),
    max_output=32_000,
    price=Price(input=USD("1.25"), output=USD("0.00000010"), cached_input=USD(0)),
    created=1_750_000_000,
    display_name="GPT-6 Sol",
)
PLAIN = model("plain")
CATALOG = catalog(SOL, PLAIN, auto=Auto(simple=("plain",), standard=("gpt-6-sol", "plain")))
ANYONE = Caller()


def only(*globs: str) -> Caller:
    return Caller(key=key(models=globs))


def ids(catalog: Catalog, caller: Caller) -> list[str]:
    return [entry["id"] for entry in listing.all_models(catalog, caller)["data"]]


def test_a_model_tells_all_its_facts() -> None:
    assert {
        "id": "gpt-6-sol",
        "object": "model",
        "created": 1_750_000_000,
        "owned_by": "zurelay",
        "type": "model",
        "display_name": "GPT-6 Sol",
        "created_at": "2025-06-15T15:06:40Z",
        "lifecycle": "active",
        "context_window": 100_000,
        "max_input_tokens": 100_000,
        "max_output": 32_000,
        "max_tokens": 32_000,
        "inputs": ["text", "image"],
        "features": ["json_schema"],
        "aliases": ["sol"],
        "reasoning": {"levels": ["none", "low", "medium"], "default": "medium"},
        "price": {"input": "1.25", "cached_input": "0", "output": "0.00000010"},
    } == listing.one_model(CATALOG, ANYONE, "gpt-6-sol")


def test_a_model_with_few_facts_says_so() -> None:
    entry = listing.one_model(CATALOG, ANYONE, "plain")
    assert (None, None, None, "plain") == (
        entry["reasoning"],
        entry["price"],
        entry["max_output"],
        entry["display_name"],
    )


def test_an_alias_finds_its_model() -> None:
    assert listing.one_model(CATALOG, ANYONE, "sol")["id"] == "gpt-6-sol"


@pytest.mark.parametrize("name", ["zurelay-auto", "auto"])
def test_auto_is_a_model_too(name: str) -> None:
    entry = listing.one_model(CATALOG, ANYONE, name)
    assert ("zurelay-auto", 100_000, ["text", "image"], ["tools", "json_schema"], ["plain", "gpt-6-sol"]) == (
        entry["id"],
        entry["context_window"],
        entry["inputs"],
        entry["features"],
        entry["models"],
    )
    assert {"levels": ["none", "low", "medium"], "default": None} == entry["reasoning"]


SEEN = {
    "no key needed": (ANYONE, ["zurelay-auto", "gpt-6-sol", "plain"]),
    "a key for all": (Caller(key=key()), ["zurelay-auto", "gpt-6-sol", "plain"]),
    "a key for one family": (only("gpt-*"), ["gpt-6-sol"]),
    "a key for Auto alone": (only("zurelay-auto"), ["zurelay-auto"]),
    "a key for nothing there is": (only("claude-*"), []),
}


@pytest.mark.parametrize(("caller", "expected"), [pytest.param(*row, id=name) for name, row in SEEN.items()])
def test_a_key_sees_what_it_may_use(caller: Caller, expected: list[str]) -> None:
    whole = listing.all_models(CATALOG, caller)
    assert expected == [entry["id"] for entry in whole["data"]]
    first, last = (expected[0], expected[-1]) if expected else (None, None)
    assert ("list", False, first, last) == (
        whole["object"],
        whole["has_more"],
        whole["first_id"],
        whole["last_id"],
    )


def test_auto_is_not_there_without_its_section() -> None:
    assert ["gpt-6-sol", "plain"] == ids(catalog(SOL, PLAIN), ANYONE)
    with pytest.raises(NotFound):
        listing.one_model(catalog(SOL), ANYONE, "zurelay-auto")


UNSEEN = {
    "unknown": (ANYONE, "gpt-6-sool", "Did you mean gpt-6-sol?"),
    "not for this key": (only("plain"), "gpt-6-sol", "There is no model 'gpt-6-sol'. GET /v1/models lists them."),
    "near one that isn't for this key": (only("plain"), "gpt-6-sool", "GET /v1/models lists them."),
    "Auto, not for this key": (only("gpt-*"), "zurelay-auto", "There is no model 'zurelay-auto'."),
}


@pytest.mark.parametrize(("caller", "name", "says"), [pytest.param(*row, id=name) for name, row in UNSEEN.items()])
def test_what_a_key_may_not_use_is_not_there(caller: Caller, name: str, says: str) -> None:
    with pytest.raises(NotFound) as caught:
        listing.one_model(CATALOG, caller, name)
    assert (404, "model_not_found") == (caught.value.status, caught.value.code)
    assert says in caught.value.message


def wire(value: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(value))
    return decoded


@pytest.mark.parametrize("name", ["gpt-6-sol", "plain", "zurelay-auto"])
def test_openais_model_reads_an_entry(name: str) -> None:
    entry = wire(listing.one_model(CATALOG, ANYONE, name))
    parsed = openai.types.Model.model_validate(entry)
    assert (name, "model", "zurelay") == (parsed.id, parsed.object, parsed.owned_by)
    assert isinstance(parsed.created, int)


@pytest.mark.parametrize("name", ["gpt-6-sol", "plain", "zurelay-auto"])
def test_anthropics_model_reads_an_entry(name: str) -> None:
    entry = wire(listing.one_model(CATALOG, ANYONE, name))
    parsed = anthropic.types.ModelInfo.model_validate(entry)
    assert (name, "model", entry["display_name"]) == (parsed.id, parsed.type, parsed.display_name)
    assert entry["created"] == int(parsed.created_at.timestamp())


def test_both_sdks_pages_read_the_list() -> None:
    whole = wire(listing.all_models(CATALOG, ANYONE))
    ours = OpenAIPage[openai.types.Model].model_validate(whole)
    theirs = AnthropicPage[anthropic.types.ModelInfo].model_validate(whole)
    assert ["zurelay-auto", "gpt-6-sol", "plain"] == [entry.id for entry in ours.data]
    assert ["zurelay-auto", "gpt-6-sol", "plain"] == [entry.id for entry in theirs.data]
    assert theirs.has_next_page() is False


def test_what_a_policy_denies_is_not_listed() -> None:
    known = catalog(model("a"), model("b"), auto=Auto(simple=("a",)))
    denying = Rules([Rule(Policy(name="p", match=Match(), models=Names(deny=("b", "zurelay-auto"))))])
    assert ["a"] == [each["id"] for each in all_models(known, Caller(), denying)["data"]]
    for name in ("b", "auto"):
        with pytest.raises(NotFound):
            one_model(known, Caller(), name, denying)


def denying(**effects: Any) -> Rules:
    return Rules([Rule(Policy(name="p", match=Match(), **effects))])


def test_auto_tells_only_of_models_that_it_may_pick() -> None:
    entry = one_model(CATALOG, ANYONE, "auto", denying(models=Names(deny=("gpt-6-sol",))))
    assert (["plain"], ["text"], None) == (entry["models"], entry["inputs"], entry["reasoning"])
    nothing = denying(models=Names(deny=("gpt-6-sol", "plain")))
    assert [] == all_models(CATALOG, ANYONE, nothing)["data"]
    allowed = denying(models=Names(allow=("zurelay-auto",)))
    assert ["plain", "gpt-6-sol"] == one_model(CATALOG, ANYONE, "auto", allowed)["models"]


@pytest.mark.parametrize("effects", [{"models": Names(deny=("gpt-*",))}, {"providers": Names(deny=("*",))}])
def test_a_404_names_nothing_that_is_not_listed(effects: dict[str, Any]) -> None:
    with pytest.raises(NotFound) as caught:
        one_model(CATALOG, ANYONE, "gpt-6-sool", denying(**effects))
    assert "Did you mean" not in caught.value.message
