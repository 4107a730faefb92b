from typing import Any

import pytest

from zurelay.settings import names
from zurelay.settings.facts import Facts


def test_names_are_gathered_from_what_is_broken_too(read_one: Any) -> None:
    text = "providers: {a: 5, b: {}}\nmodels:\n  m: {aliases: [x, y], routes: 7}\n  n: [broken]\n  o:"

    found, problems = read_one(names.gather, text)

    assert problems == []
    assert ({"a", "b"}, {"m", "n", "o"}) == (found.providers, found.models)
    assert found.aliases == {"x": "m", "y": "m"}


PROVIDER = "expected a provider's name: 1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first"
MODEL = "expected a model's name: 1 to 128 of A-Z a-z 0-9 . _ : / @ + -, a letter or digit first"
CLASHES = {
    "no name of a provider": ("providers: {a/b: x}", [f"line 1: providers.a/b: {PROVIDER}"]),
    "an empty name": ("models: {'': x}", ["line 1: models.: expected text, but it is empty"]),
    "a long name": (f"models: {{{'m' * 129}: x}}", [f"line 1: models.{'m' * 64}...: {MODEL}"]),
    "no name of a model": (
        "models:\n  a b: x\n  -c: x",
        [f"line 2: models.a b: {MODEL}", f"line 3: models.-c: {MODEL}"],
    ),
    "Auto's id": (
        "models: {zurelay-auto: x}",
        ["line 1: models.zurelay-auto: zurelay-auto is zurelay's own name; call the model otherwise"],
    ),
    "Auto's short name": (
        "models: {auto: x}",
        ["line 1: models.auto: auto is zurelay's own name; call the model otherwise"],
    ),
    "an alias called auto": (
        "models: {m: {aliases: [auto]}}",
        ["line 1: models.m.aliases[0]: auto is zurelay's own name; choose another"],
    ),
    "an alias that is an id": (
        "models:\n  m: {aliases: [n]}\n  n: {}",
        ["line 2: models.m.aliases[0]: n is the id of a model already; choose another"],
    ),
    "an alias that is its own model": (
        "models: {m: {aliases: [m]}}",
        ["line 1: models.m.aliases[0]: m is the id of a model already; choose another"],
    ),
    "an alias of two": (
        "models:\n  m: {aliases: [x]}\n  n: {aliases: [x]}",
        ["line 3: models.n.aliases[0]: x is an alias of m already; choose another"],
    ),
}


@pytest.mark.parametrize(("text", "problems"), CLASHES.values(), ids=CLASHES)
def test_names_that_clash_or_are_none_are_problems(read_one: Any, text: str, problems: list[str]) -> None:
    assert problems == read_one(names.gather, text)[1]


READERS = {
    "a provider": ("provider", "openai", "openai"),
    "a model": ("model", "gpt-6-sol", "gpt-6-sol"),
    "an alias becomes the id": ("model", "opus", "claude-opus-5-5"),
    "a pattern": ("model_glob", "claude-*", "claude-*"),
    "a pattern of nothing that is there": ("model_glob", "'*-nano'", "*-nano"),
    "an id among patterns": ("model_glob", "gpt-6-sol", "gpt-6-sol"),
    "an alias among patterns": ("model_glob", "opus", "claude-opus-5-5"),
    "Auto among patterns": ("model_glob", "auto", "zurelay-auto"),
    "a pattern of providers": ("provider_glob", "open*", "open*"),
    "a provider among patterns": ("provider_glob", "openai", "openai"),
}


@pytest.mark.parametrize(("reader", "text", "name"), READERS.values(), ids=READERS)
def test_a_name_that_is_there_is_read(read_one: Any, facts: Facts, reader: str, text: str, name: str) -> None:
    assert (name, []) == read_one(getattr(facts.names, reader), text)


DANGLING = {
    "a provider": ("provider", "opneai", "no provider is called opneai; did you mean openai?"),
    "a model": ("model", "gpt-6-so", "no model is called gpt-6-so; did you mean gpt-6-sol?"),
    "a model like no other": ("model", "x", "no model is called x"),
    "Auto where a model is wanted": (
        "model",
        "zurelay-auto",
        "zurelay-auto picks among models and can't be one here; name models",
    ),
    "Auto's short name": ("model", "auto", "auto picks among models and can't be one here; name models"),
    "a plain name among patterns": ("model_glob", "opsu", "no model is called opsu; did you mean opus?"),
    "no pattern": (
        "model_glob",
        "a b",
        "expected a name or a pattern of names: 1 to 128 of A-Z a-z 0-9 . _ : / @ + - * ? [ ] !",
    ),
    "a plain provider among patterns": (
        "provider_glob",
        "anthropics",
        "no provider is called anthropics; did you mean anthropic?",
    ),
}


@pytest.mark.parametrize(("reader", "text", "problem"), DANGLING.values(), ids=DANGLING)
def test_a_name_that_dangles_is_a_problem(read_one: Any, facts: Facts, reader: str, text: str, problem: str) -> None:
    assert (None, [f"line 1: {problem}"]) == read_one(getattr(facts.names, reader), text)
