"""What several policies say together: the strictest, and who it was."""

from __future__ import annotations

from typing import Any

import pytest

from making import model
from zurelay import rules
from zurelay.carried import Carried
from zurelay.model import AUTO_ID, Effort, Input, Match, Names, Policy
from zurelay.rules import Asked, Effect, Finding, Rule, Rules


def policy(name: str = "one", **facts: Any) -> Policy:
    return Policy(**{"name": name, "match": Match(), **facts})


def together(*policies: Policy) -> Rules:
    return Rules([Rule(each) for each in policies])


def names(allow: str | None = None, deny: str = "") -> Names:
    return Names(allow=None if allow is None else tuple(allow.split()), deny=tuple(deny.split()))


MODELS = {
    "no policies": ([], "gpt-6", None),
    "a policy that says nothing": ([policy()], "gpt-6", None),
    "allowed by a glob": ([policy(models=names("gpt-* claude-*"))], "gpt-6", None),
    "not among the allowed": ([policy(models=names("claude-*"))], "gpt-6", "one"),
    "denied": ([policy(models=names(deny="gpt-?"))], "gpt-6", "one"),
    "denied though allowed": ([policy(models=names("gpt-*", "gpt-6"))], "gpt-6", "one"),
    "no model is allowed": ([policy(models=names(""))], "gpt-6", "one"),
    "one of two denies": ([policy(models=names("gpt-*")), policy("two", models=names(deny="*"))], "gpt-6", "two"),
    "both deny: the first is named": (
        [policy(models=names(deny="*")), policy("two", models=names(deny="*"))],
        "x",
        "one",
    ),
    "letters count": ([policy(models=names("GPT-*"))], "gpt-6", "one"),
    "a set of letters": ([policy(models=names("gpt-[0-5]"))], "gpt-6", "one"),
    "a dot is a dot": ([policy(models=names("gpt.6"))], "gpt-6", "one"),
    "the whole name": ([policy(models=names("gpt"))], "gpt-6", "one"),
}


@pytest.mark.parametrize(("policies", "name", "by"), [pytest.param(*row, id=case) for case, row in MODELS.items()])
def test_which_policy_denies_a_model(policies: list[Policy], name: str, by: str | None) -> None:
    for _ in range(2):  # asked again, it is the same
        found = together(*policies).model(name)
        assert by == (found and found.policy)


def test_models_are_remembered_apart_for_auto() -> None:
    found = together(policy(models=names(AUTO_ID)))
    assert found.model("gpt-6") is not None
    assert found.model("gpt-6", picked_by_auto=True) is None
    assert found.model("gpt-6") is not None


AUTOS = {
    "who allows Auto allows what it picks": ([policy(models=names(AUTO_ID))], None, None),
    "deny takes a model from Auto": ([policy(models=names(AUTO_ID, "gpt-*"))], None, "one"),
    "deny takes Auto itself": ([policy(models=names(deny="zurelay-*"))], "one", None),
    "allow without Auto narrows its choice": ([policy(models=names("claude-*"))], None, "one"),
    "every policy must let it through": (
        [policy(models=names(AUTO_ID)), policy("two", models=names("claude-*"))],
        None,
        "two",
    ),
}


@pytest.mark.parametrize(("policies", "auto", "picked"), [pytest.param(*row, id=case) for case, row in AUTOS.items()])
def test_auto_and_what_it_picks(policies: list[Policy], auto: str | None, picked: str | None) -> None:
    found = together(*policies)
    by, denied = found.auto(), found.model("gpt-6", picked_by_auto=True)
    assert (auto, picked) == (by and by.policy, denied and denied.policy)


def test_providers_are_denied_as_models_are() -> None:
    found = together(policy(providers=names("azure* openai", "azure-us")))
    assert [None, None, "one", "one"] == [
        (denied := found.provider(name)) and denied.policy for name in ("openai", "azure-eu", "azure-us", "deepseek")
    ]


def test_denied_media_are_named_together() -> None:
    found = together(
        policy(inputs_deny=frozenset({Input.AUDIO})), policy("two", inputs_deny=frozenset({Input.VIDEO, Input.PDF}))
    )
    assert found.denies_inputs
    assert found.inputs(Carried(frozenset({Input.IMAGE}))) is None
    assert Finding("two", Effect.INPUT, "the policy two does not allow pdf, video") == found.inputs(
        Carried(frozenset({Input.VIDEO, Input.PDF}))
    )


def test_what_nobody_can_tell_counts_as_denied_and_is_named() -> None:
    odd = Carried(frozenset({Input.IMAGE}), "a part without a type")
    expected = "the policy one does not allow audio, and a part without a type may hold it"
    assert Finding("one", Effect.INPUT, expected) == together(policy(inputs_deny=frozenset({Input.AUDIO}))).inputs(odd)
    assert "the policy one does not allow image" == (
        (found := together(policy(inputs_deny=frozenset({Input.IMAGE}))).inputs(odd)) and found.why
    )
    assert together(policy()).inputs(odd) is None
    assert not together(policy()).denies_inputs


def test_the_lowest_cap_counts() -> None:
    found = together(policy(effort_max=Effort.high), policy("two", effort_max=Effort.low), policy("three"))
    assert Effort.low is found.effort_max
    assert found.effort(Effort.low) is None
    assert Finding("two", Effect.EFFORT, "the policy two caps the effort at low, below medium") == found.effort(
        Effort.medium
    )


def test_without_a_cap_every_level_goes() -> None:
    assert together(policy()).effort_max is None
    assert together(policy()).effort(Effort.max) is None


LOWEST = {
    "a model that can go low enough": ("low HIGH", None),
    "a model whose lowest level is above the cap": ("high MAX", "one"),
    "a model that can turn reasoning off": ("none high", None),
    "a model without levels": ("", None),
}


@pytest.mark.parametrize(("levels", "by"), [pytest.param(*row, id=case) for case, row in LOWEST.items()])
def test_which_models_an_effort_cap_leaves_out(levels: str, by: str | None) -> None:
    found = together(policy(effort_max=Effort.low)).too_high(model("first", levels=levels))
    assert by == (found and found.policy)


ROUTING = {
    "none says": ([None, None], None, None),
    "one says on": ([None, True], True, None),
    "off beats on": ([True, False], False, "policy1"),
    "both say off: the first is named": ([False, False], False, "policy0"),
}


@pytest.mark.parametrize(("said", "expected", "by"), [pytest.param(*row, id=case) for case, row in ROUTING.items()])
def test_smart_routing(said: list[bool | None], expected: bool | None, by: str | None) -> None:
    found = together(*(policy(f"policy{place}", smart_routing=each) for place, each in enumerate(said)))
    off = found.routing()
    assert (expected, by) == (found.smart_routing, off and off.policy)


STRICT = policy(
    "strict",
    models=names(deny="gpt-6"),
    providers=names(deny="azure"),
    effort_max=Effort.low,
    inputs_deny=frozenset({Input.AUDIO}),
    smart_routing=False,
)


def test_what_a_shadow_would_have_done_is_told_in_full() -> None:
    asked = Asked(
        model="claude",
        held=Carried(frozenset({Input.AUDIO})),
        models=("claude", "claude", "gpt-6", "gpt-6"),
        providers=("anthropic", "azure"),
        efforts=(Effort.high, Effort.low),
    )
    assert [
        (Effect.INPUT, "the policy strict does not allow audio"),
        (Effect.MODEL, "the policy strict does not allow the model gpt-6"),
        (Effect.PROVIDER, "the policy strict does not allow the provider azure"),
        (Effect.EFFORT, "the policy strict caps the effort at low, below high"),
        (Effect.SMART_ROUTING, "the policy strict turns smart routing off"),
    ] == [(each.effect, each.why) for each in together(STRICT).foretold(asked)]


def test_a_shadow_has_nothing_against_what_it_allows() -> None:
    asked = Asked(model="claude", models=("claude",), providers=("anthropic",), efforts=(Effort.low,))
    assert () == together(STRICT).foretold(asked)


def test_auto_is_no_smart_routing() -> None:
    asked = Asked(model=AUTO_ID, models=("claude", "gemini"))
    assert () == together(policy(smart_routing=False)).foretold(asked)


def test_a_shadow_that_denies_auto_says_so() -> None:
    (found,) = together(policy(models=names(deny=AUTO_ID))).foretold(Asked(model=AUTO_ID, models=("claude",)))
    assert "the policy one does not allow the model zurelay-auto" == found.why


def test_a_denial_is_a_403_that_names_the_policy() -> None:
    denied = together(policy("payments", models=names("claude-*"))).model("gpt-6")
    assert denied is not None
    error = rules.denied(denied)
    assert (403, "policy_denied", "permission_error", "model") == (error.status, error.code, error.type, error.param)
    assert "The policy payments does not allow the model gpt-6." == error.message


def test_the_policies_are_at_hand_in_their_order() -> None:
    assert ["one", "two"] == [each.name for each in together(policy(), policy("two")).policies]
