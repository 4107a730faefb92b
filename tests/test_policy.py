"""Whom a policy matches, and the scopes that requests count in."""

from __future__ import annotations

from typing import Any

import pytest

from making import catalog, key, model
from zurelay import policy
from zurelay.access import Caller
from zurelay.identity import Workload
from zurelay.model import Identity, IdentityMode, Key, Match, Names, Policy, Settings, UsageLimits
from zurelay.policy import Policies, Who, scopes, who

POD = Who("payments", "api", "team-a")
MATCHES = {
    "everything left out": (Match(), POD, True),
    "everything left out, no one known": (Match(), Who(), True),
    "the namespace": (Match(namespace="payments"), POD, True),
    "another namespace": (Match(namespace="billing"), POD, False),
    "a pattern of namespaces": (Match(namespace="pay*"), POD, True),
    "the whole name": (Match(namespace="pay"), POD, False),
    "all three": (Match(namespace="payments", service_account="*", key="team-?"), POD, True),
    "two of three": (Match(namespace="payments", service_account="web", key="team-a"), POD, False),
    "a workload is asked for, there is none": (Match(namespace="*"), Who(key="team-a"), False),
    "a key is asked for, there is none": (Match(key="*"), Who("payments", "api"), False),
    "letters count": (Match(key="Team-A"), POD, False),
}


@pytest.mark.parametrize(("match", "who", "expected"), [pytest.param(*row, id=case) for case, row in MATCHES.items()])
def test_whom_a_policy_matches(match: Match, who: Who, expected: bool) -> None:
    found = Policies([Policy(name="one", match=match)]).match(who)
    assert (("one",) if expected else ()) == tuple(each.name for each in found.enforced.policies)


def limited(name: str, requests: int = 5, **facts: Any) -> Policy:
    return Policy(**{"name": name, "match": Match(), "limits": UsageLimits(requests_per_minute=requests), **facts})


def test_shadows_are_apart() -> None:
    found = Policies([limited("real"), limited("trial", shadow=True)]).match(POD)
    assert ["real"] == [each.name for each in found.enforced.policies]
    assert ["trial"] == [each.name for each in found.shadow.policies]
    assert [("policy:real workload:payments/api", True), ("policy:trial workload:payments/api", False)] == [
        (scope.name, scope.enforced) for scope in found.scopes
    ]


SUBJECTS = {
    "a workload": (POD, "policy:p workload:payments/api"),
    "a key without workload": (Who(key="team-a"), "policy:p key:team-a"),
    "neither": (Who(), "policy:p anyone"),
}


@pytest.mark.parametrize(("who", "name"), [pytest.param(*row, id=case) for case, row in SUBJECTS.items()])
def test_a_policys_limits_count_for_each_workload_else_each_key(who: Who, name: str) -> None:
    (scope,) = Policies([limited("p")]).match(who).scopes
    assert (name, "The policy p", UsageLimits(requests_per_minute=5)) == (scope.name, scope.label, scope.limits)


def test_a_policy_without_limits_has_no_scope() -> None:
    assert () == Policies([Policy(name="p", match=Match())]).match(POD).scopes


def test_a_key_has_a_scope_with_or_without_limits() -> None:
    assert ("key:team", False) == ((scope := policy.key_scope(key())).name, scope.limited)
    assert policy.key_scope(key(limits=UsageLimits(tokens_per_minute=1))).limited


def test_a_caller_is_matched_once() -> None:
    found = Policies([limited("p")])
    assert found.match(Who("payments", "api", "team-a")) is found.match(POD)


def test_callers_kept_at_hand_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_MOST_CALLERS", 3)
    found = Policies([limited("p")])
    for number in range(10):
        assert (f"policy:p key:k{number}",) == tuple(scope.name for scope in found.match(Who(key=f"k{number}")).scopes)
    assert len(found._callers) <= 3


def settings(*policies: Policy, mode: IdentityMode = IdentityMode.MTLS) -> Settings:
    return catalog(model("gpt-6", "openai"), policies=policies, identity=Identity(mode=mode)).settings


IDLE = {
    "all of it is there": (
        settings(
            Policy(name="p", match=Match(namespace="n", key="te*"), models=Names(allow=("gpt-*", "zurelay-auto")))
        ),
        [],
    ),
    "no such key": (
        settings(Policy(name="o", match=Match()), Policy(name="p", match=Match(key="dev-*"))),
        ["policies[1].match.key: dev-* matches none of the keys"],
    ),
    "no workloads at all": (
        settings(Policy(name="p", match=Match(namespace="n", service_account="s")), mode=IdentityMode.NONE),
        [
            "policies[0].match.namespace: matches no one: with identity.mode none, no caller has a workload",
            "policies[0].match.service_account: matches no one: with identity.mode none, no caller has a workload",
        ],
    ),
    "names that Kubernetes doesn't give": (
        settings(
            Policy(name="o", match=Match(namespace="Team_A", service_account="a..b")),
            Policy(name="p", match=Match(namespace="Team*", service_account="a.b")),
        ),
        [
            "policies[0].match.namespace: matches no one: Kubernetes gives no such name as Team_A",
            "policies[0].match.service_account: matches no one: Kubernetes gives no such name as a..b",
        ],
    ),
    "no such models and providers": (
        settings(
            Policy(
                name="p",
                match=Match(),
                models=Names(allow=("claude-*",), deny=("gpt-6", "o?")),
                providers=Names(allow=("openai", "azure*"), deny=("x*",)),
            )
        ),
        [
            "policies[0].models.allow: claude-* matches none of the models",
            "policies[0].models.deny: o? matches none of the models",
            "policies[0].providers.allow: azure* matches none of the providers",
            "policies[0].providers.deny: x* matches none of the providers",
        ],
    ),
}


@pytest.mark.parametrize(("found", "expected"), [pytest.param(*row, id=case) for case, row in IDLE.items()])
def test_policies_that_match_nothing_are_found(found: Settings, expected: list[str]) -> None:
    assert expected == [str(problem) for problem in policy.idle(found, [key("team")])]


def test_a_caller_is_known_by_its_key_and_its_workload() -> None:
    assert Who() == who(Caller())
    assert Who(namespace="pay", service_account="api", key="a") == who(
        Caller(key=Key(name="a", digest=b""), workload=Workload("pay", "api"))
    )


def test_a_callers_requests_count_for_its_key_and_for_the_policies_with_limits() -> None:
    limited = Policy(name="p", match=Match(), limits=UsageLimits(requests_per_minute=1))
    matched = Policies([limited, Policy(name="q", match=Match())]).match(Who(key="a"))
    caller = Caller(key=Key(name="a", digest=b""))
    assert ["key:a", "policy:p key:a"] == [scope.name for scope in scopes(caller, matched)]
    assert ["policy:p key:a"] == [scope.name for scope in scopes(Caller(), matched)]
