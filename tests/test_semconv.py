"""The names are the conventions': compared with the official package, not typed from memory."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from types import ModuleType

import pytest

from zurelay import attributes as ours
from zurelay import families, semconv

with warnings.catch_warnings():
    # The GenAI conventions have a repository of their own now, whose names are the same; it has no package yet.
    warnings.simplefilter("ignore", DeprecationWarning)
    import opentelemetry.semconv._incubating.attributes as incubating
    from opentelemetry.semconv import attributes
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics


def strings(package: ModuleType) -> set[str]:
    """All names in the modules of a package."""
    found = set()
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        found |= {value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, str)}
    return found


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    OFFICIAL = strings(attributes) | strings(incubating)

OURS = {
    name: value
    for name, value in vars(semconv).items()
    if name.isupper() and isinstance(value, str) and not name.startswith("_")
}


@pytest.mark.parametrize("name", OURS.values(), ids=OURS)
def test_every_attribute_is_in_the_conventions(name: str) -> None:
    assert name in OFFICIAL


def test_every_metric_under_gen_ai_is_in_the_conventions_with_its_unit() -> None:
    official = {value for value in vars(gen_ai_metrics).values() if isinstance(value, str)}
    named = [family for family in families.FAMILIES if family.name.startswith("gen_ai.")]
    assert 5 == len(named)
    for family in named:
        assert family.name in official
        assert family.unit == ("{token}" if family.name.endswith("token.usage") else "s")


def test_labels_are_attributes_of_the_conventions_or_words_of_ours() -> None:
    labels = {label for family in families.FAMILIES for label in family.labels}
    assert {label for label in labels if "." in label} <= OFFICIAL


def test_the_providers_are_those_of_the_conventions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        known = {member.value for member in gen_ai_attributes.GenAiProviderNameValues}
        operations = {member.value for member in gen_ai_attributes.GenAiOperationNameValues}
    assert known == semconv.PROVIDERS
    assert ours.CHAT in operations


HOSTS = {
    "OpenAI's own": ("main", "api.openai.com", "openai"),
    "an Azure resource": ("main", "our-team.openai.azure.com", "azure.ai.openai"),
    "Anthropic's own": ("claude", "api.anthropic.com", "anthropic"),
    "Bedrock": ("aws", "bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
    "one that only ends alike": ("x", "notapi.openai.com.example.net", "x"),
    "one whose label only ends alike": ("x", "myapi.openai.com", "x"),
    "our own": ("vllm", "10.0.0.7", "vllm"),
    "capitals and a last dot": ("x", "API.DeepSeek.com.", "deepseek"),
}


@pytest.mark.parametrize(("name", "host", "expected"), HOSTS.values(), ids=HOSTS)
def test_a_provider_is_known_by_where_it_is(name: str, host: str, expected: str) -> None:
    assert expected == semconv.provider(name, host)
    assert expected in semconv.PROVIDERS or expected == name
