from decimal import Decimal
from typing import Any

import pytest

from zurelay.model import Auto, Effort, Feature, Input, Model, Params, Price, Reasoning, Route
from zurelay.settings.facts import Facts
from zurelay.settings.models import auto, model

LEAST = "routes: [{provider: openai, model: m}]\ncontext_window: 1000\n"


def read(read_one: Any, facts: Facts, text: str) -> Any:
    return read_one(lambda at: model("m", at, facts), text)


def test_a_model_has_all_that_the_file_says(read_one: Any, facts: Facts) -> None:
    text = """
    display_name: The M
    created: 1790870400
    aliases: [small, tiny]
    routes:
    - {provider: openai, model: vendor/M 1}
    - {provider: anthropic, model: m}
    - {provider: openai, model: m-2}
    context_window: 1_000_000
    max_output: 128000
    inputs: [text, image, pdf, audio, video]
    features: [tools]
    reasoning: {levels: [max, none, low], default: low}
    price: {input: 3.5, cached_input: 0.35, cache_write: 4.375, output: 17.50}
    fallbacks: [opus, gpt-6-sol]
    params: {drop: [temperature]}
    messages: true
    passthrough: true
    """

    expected = Model(
        id="m",
        display_name="The M",
        created=1790870400,
        aliases=("small", "tiny"),
        routes=(
            Route(name="m/openai", provider="openai", model="vendor/M 1"),
            Route(name="m/anthropic", provider="anthropic", model="m"),
            Route(name="m/openai#2", provider="openai", model="m-2"),
        ),
        context_window=1_000_000,
        max_output=128_000,
        inputs=frozenset(Input),
        features=frozenset({Feature.TOOLS}),
        reasoning=Reasoning(levels=(Effort.none, Effort.low, Effort.max), default=Effort.low),
        price=Price(
            input=Decimal("3.5"), cached_input=Decimal("0.35"), cache_write=Decimal("4.375"), output=Decimal("17.50")
        ),
        fallbacks=("claude-opus-5-5", "gpt-6-sol"),
        params=Params(drop=("temperature",)),
        messages=True,
        passthrough=True,
    )
    assert (expected, []) == read(read_one, facts, text)


def test_a_model_needs_its_routes_and_window_only(read_one: Any, facts: Facts) -> None:
    expected = Model(id="m", routes=(Route(name="m/openai", provider="openai", model="m"),), context_window=1000)

    assert (expected, []) == read(read_one, facts, LEAST)


TOKENS = "expected a whole number from 1 to 1000000000"
WRONG = {
    "a key that isn't there": ("contxt_window: 5", ["contxt_window: unknown key; did you mean context_window?"]),
    "an alias that is no name": (
        "aliases: [a b]",
        ["aliases[0]: expected a model's name: 1 to 128 of A-Z a-z 0-9 . _ : / @ + -, a letter or digit first"],
    ),
    "an alias twice": ("aliases: [a, a]", ["aliases[1]: said twice in this list"]),
    "no output": ("max_output: 0", [f"max_output: {TOKENS}"]),
    "more output than window": ("max_output: 1001", ["max_output: is over context_window, 1000"]),
    "no such input": (
        "inputs: [text, pfd]",
        ["inputs[1]: expected one of text, image, pdf, audio or video, not pfd; did you mean pdf?"],
    ),
    "no text": ("inputs: [image]", ["inputs: text is missing; every model here reads it"]),
    "no such feature": (
        "features: [tool]",
        ["features[0]: expected one of tools or json_schema, not tool; did you mean tools?"],
    ),
    "no such level": (
        "reasoning: {levels: [hgih]}",
        [
            (
                "reasoning.levels[0]: expected one of none, minimal, low, medium, high, xhigh or max, not hgih;"
                " did you mean high or xhigh?"
            )
        ],
    ),
    "a level twice": ("reasoning: {levels: [low, low]}", ["reasoning.levels[1]: said twice in this list"]),
    "no levels": ("reasoning: {levels: []}", ["reasoning.levels: no levels; leave reasoning out for a model without"]),
    "levels missing": ("reasoning: {default: low}", ["reasoning.levels: missing; it has no default"]),
    "a default that is no level": (
        "reasoning: {levels: [low, high], default: medium}",
        ["reasoning.default: medium is none of the model's levels: low or high"],
    ),
    "a negative price": ("price: {input: -1, output: 1}", ["price.input: expected a number from 0 to 1000000"]),
    "half a price": ("price: {input: 1}", ["price.output: missing; it has no default"]),
    "a misspelt price": (
        "price: {inptu: 1, output: 1}",
        ["price.inptu: unknown key; did you mean input?", "price.input: missing; it has no default"],
    ),
    "a fallback that isn't there": (
        "fallbacks: [gpt-6-sun]",
        ["fallbacks[0]: no model is called gpt-6-sun; did you mean gpt-6-sol?"],
    ),
    "Auto as a fallback": (
        "fallbacks: [zurelay-auto]",
        ["fallbacks[0]: zurelay-auto picks among models and can't be one here; name models"],
    ),
    "a fallback twice, once by its alias": (
        "fallbacks: [opus, claude-opus-5-5]",
        ["fallbacks[1]: said twice in this list"],
    ),
    "a name with spaces around": (
        "display_name: ' M '",
        ["display_name: expected a name of at most 128 characters, no spaces around it"],
    ),
    "messages that isn't true or false": ("messages: on", ["messages: expected true or false, not text"]),
    "an age before all": ("created: -1", ["created: expected a whole number from 0 to 100000000000"]),
}


@pytest.mark.parametrize(("text", "problems"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_model_is_a_problem(read_one: Any, facts: Facts, text: str, problems: list[str]) -> None:
    assert [f"line 3: {problem}" for problem in problems] == read(read_one, facts, LEAST + text)[1]


ROUTES = {
    "no routes": ("[]", ["routes: a model needs at least one route: [{provider: NAME, model: NAME}]"]),
    "no list": ("{provider: openai, model: m}", ["routes: expected a list, not a mapping"]),
    "no such provider": (
        "[{provider: opnai, model: m}]",
        ["routes[0].provider: no provider is called opnai; did you mean openai?"],
    ),
    "half a route": ("[{provider: openai}]", ["routes[0].model: missing; it has no default"]),
    "no name": (
        "[{provider: openai, model: ' '}]",
        ["routes[0].model: expected the provider's name of the model, at most 256 characters"],
    ),
}


@pytest.mark.parametrize(("routes", "problems"), ROUTES.values(), ids=ROUTES)
def test_each_mistake_in_a_route_is_a_problem(read_one: Any, facts: Facts, routes: str, problems: list[str]) -> None:
    _, found = read(read_one, facts, f"{{context_window: 5, routes: {routes}}}")

    assert [f"line 1: {problem}" for problem in problems] == found


def test_a_model_is_no_fallback_of_its_own(read_one: Any, facts: Facts) -> None:
    _, problems = read_one(lambda at: model("claude-opus-5-5", at, facts), f"{LEAST}fallbacks: [opus]")

    own = "a model is no fallback of its own; its routes are tried twice and in order anyway"
    assert [f"line 3: fallbacks[0]: {own}"] == problems


def test_auto_has_its_lists_with_ids_for_aliases(read_one: Any, facts: Facts) -> None:
    text = "{simple: [gpt-6-sol], complex: [opus, gpt-6-sol], thresholds: [0.2, 0.9]}"

    expected = Auto(simple=("gpt-6-sol",), complex=("claude-opus-5-5", "gpt-6-sol"), thresholds=(0.2, 0.9))
    assert (expected, []) == read_one(lambda at: auto(at, facts), text)


ORDER = "thresholds: expected two numbers from 0 to 1, the smaller first"
AUTO = {
    "no lists": ("{thresholds: [0.1, 0.2]}", ["names no models; give simple, standard or complex, or leave auto out"]),
    "empty lists": ("{simple: []}", ["names no models; give simple, standard or complex, or leave auto out"]),
    "a model that isn't there": ("{simple: [gpt-6]}", ["simple[0]: no model is called gpt-6; did you mean gpt-6-sol?"]),
    "Auto within Auto": (
        "{complex: [auto]}",
        ["complex[0]: auto picks among models and can't be one here; name models"],
    ),
    "a model twice": ("{standard: [opus, opus]}", ["standard[1]: said twice in this list"]),
    "another category": ("{simple: [opus], complx: []}", ["complx: unknown key; did you mean complex?"]),
    "thresholds the wrong way": ("{simple: [opus], thresholds: [0.6, 0.3]}", [ORDER]),
    "thresholds that are one": ("{simple: [opus], thresholds: [0.5, 0.5]}", [ORDER]),
    "three thresholds": ("{simple: [opus], thresholds: [0.1, 0.2, 0.3]}", [ORDER]),
    "a threshold over 1": ("{simple: [opus], thresholds: [0.5, 2]}", ["thresholds[1]: expected a number from 0 to 1"]),
}


@pytest.mark.parametrize(("text", "problems"), AUTO.values(), ids=AUTO)
def test_each_mistake_in_auto_is_a_problem(read_one: Any, facts: Facts, text: str, problems: list[str]) -> None:
    assert [f"line 1: {problem}" for problem in problems] == read_one(lambda at: auto(at, facts), text)[1]
