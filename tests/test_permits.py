"""What policies let through of a catalog."""

from __future__ import annotations

import pytest

from making import catalog, model, request
from zurelay import permits
from zurelay.model import Effort, Endpoint, Format, Input, Match, Names, Policy
from zurelay.rules import Finding, PolicyDenied, Rule, Rules

CATALOG = catalog(
    model("first", "one", "two", levels="low medium HIGH"),
    model("heavy", "one", levels="high MAX"),
    model("plain", "two"),
)


def rules(**effects: object) -> Rules:
    return Rules([Rule(Policy(**{"name": "p", "match": Match(), **effects}))])  # type: ignore[arg-type]


AGAINST = {
    "a denied model": ("first", {"models": Names(deny=("fi*",))}, True),
    "a model that no allow names": ("first", {"models": Names(allow=("plain",))}, True),
    "one of two providers denied": ("first", {"providers": Names(deny=("one",))}, False),
    "all providers denied": ("first", {"providers": Names(allow=("three",))}, True),
    "the lowest level above the cap": ("heavy", {"effort_max": Effort.medium}, True),
    "a level under the cap": ("first", {"effort_max": Effort.medium}, False),
    "no levels at all": ("plain", {"effort_max": Effort.none}, False),
    "nothing": ("first", {}, False),
}


@pytest.mark.parametrize(("name", "effects", "denied"), [pytest.param(*row, id=name) for name, row in AGAINST.items()])
def test_a_model_is_left_out_for_its_name_its_providers_or_its_levels(
    name: str, effects: dict[str, object], denied: bool
) -> None:
    found = permits.against(rules(**effects), CATALOG, CATALOG.find(name), Endpoint.CHAT)
    assert denied == isinstance(found, Finding)
    assert denied != permits.visible(rules(**effects), CATALOG, CATALOG.find(name))


def test_a_model_without_a_route_for_the_endpoint_is_no_matter_of_policies() -> None:
    assert Format.OPENAI is CATALOG.routes(CATALOG.find("plain"))[0].format
    denying = rules(providers=Names(deny=("*",)))
    assert permits.against(denying, CATALOG, CATALOG.find("plain"), Endpoint.COUNT_TOKENS) is None


def test_what_is_denied_is_a_403_that_names_the_policy() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    asked = request(messages=[{"role": "user", "content": [image]}])
    with pytest.raises(PolicyDenied) as caught:
        permits.demand(rules(inputs_deny=frozenset({Input.IMAGE})), CATALOG, CATALOG.find("first"), asked)
    assert (403, "policy_denied", "messages") == (caught.value.status, caught.value.code, caught.value.param)
    assert "The policy p does not allow image." == caught.value.message
    with pytest.raises(PolicyDenied):
        permits.demand_auto(rules(models=Names(deny=("zurelay-auto",))), asked)
    permits.demand(permits.UNBOUND, CATALOG, CATALOG.find("first"), asked)
    permits.demand_auto(permits.UNBOUND, asked)


@pytest.mark.parametrize(
    ("asked", "cap", "left"),
    [
        (None, Effort.low, None),
        (Effort.high, None, Effort.high),
        (Effort.high, Effort.low, Effort.low),
        (Effort.low, Effort.high, Effort.low),
    ],
)
def test_a_cap_bounds_what_is_asked(asked: Effort | None, cap: Effort | None, left: Effort | None) -> None:
    assert left == permits.capped(asked, rules(effort_max=cap))
