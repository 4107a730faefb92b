from decimal import Decimal
from typing import Any

import pytest

from zurelay.model import Effort, Input, Match, Names, Policy, UsageLimits
from zurelay.settings.facts import Facts
from zurelay.settings.policies import policies, usage_limits

FULL = """
- name: payments
  match: {namespace: payments, service_account: "*", key: "team-*"}
  models: {allow: [opus, "gpt-*", auto], deny: [gpt-6-sol]}
  providers: {allow: [openai], deny: ["anth*"]}
  effort: {max: high}
  inputs: {deny: [audio, video]}
  limits: {requests_per_minute: 600, tokens_per_minute: 200000, usd_per_day: 50, usd_per_month: 1000.5}
  smart_routing: false
  shadow: true
- {name: everyone, match: {}}
"""


def test_policies_have_all_that_the_file_says(read_one: Any, facts: Facts) -> None:
    expected = (
        Policy(
            name="payments",
            match=Match(namespace="payments", service_account="*", key="team-*"),
            models=Names(allow=("claude-opus-5-5", "gpt-*", "zurelay-auto"), deny=("gpt-6-sol",)),
            providers=Names(allow=("openai",), deny=("anth*",)),
            effort_max=Effort.high,
            inputs_deny=frozenset({Input.AUDIO, Input.VIDEO}),
            limits=UsageLimits(
                requests_per_minute=600,
                tokens_per_minute=200_000,
                usd_per_day=Decimal(50),
                usd_per_month=Decimal("1000.5"),
            ),
            smart_routing=False,
            shadow=True,
        ),
        Policy(name="everyone", match=Match()),
    )

    assert (expected, []) == read_one(lambda at: policies(at, facts), FULL)


def test_an_empty_list_of_what_is_allowed_allows_nothing(read_one: Any, facts: Facts) -> None:
    found, _ = read_one(lambda at: policies(at, facts), "[{name: closed, match: {}, models: {allow: []}}]")

    assert Names(allow=()) == found[0].models


COUNT = "expected a whole number from 1 to 1000000000000"
LEVELS = "none, minimal, low, medium, high, xhigh or max"
WRONG = {
    "no list": ("{}", ["line 1: expected a list, not a mapping"]),
    "all is missing": (
        "[{}]",
        ["line 1: [0].name: missing; it has no default", "line 1: [0].match: missing; it has no default"],
    ),
    "a name twice": (
        "- {name: a, match: {}}\n- {name: a, match: {}}",
        ["line 2: [1].name: the policy at line 1 has this name too"],
    ),
    "no name": (
        "[{name: a b, match: {}}]",
        ["line 1: [0].name: expected a name: 1 to 128 of A-Z a-z 0-9 . _ : / @ + -"],
    ),
    "a misspelt match": (
        "[{name: a, match: {namspace: b}}]",
        ["line 1: [0].match.namspace: unknown key; did you mean namespace?"],
    ),
    "a match with a space": (
        "[{name: a, match: {key: a b}}]",
        ["line 1: [0].match.key: expected a name or a pattern: 1 to 253 of A-Z a-z 0-9 . _ : / @ + - * ? [ ] !"],
    ),
    "an unknown model": (
        "[{name: a, match: {}, models: {deny: [gpt-6]}}]",
        ["line 1: [0].models.deny[0]: no model is called gpt-6; did you mean gpt-6-sol?"],
    ),
    "an unknown provider": (
        "[{name: a, match: {}, providers: {deny: [azure]}}]",
        ["line 1: [0].providers.deny[0]: no provider is called azure"],
    ),
    "a model twice": (
        "[{name: a, match: {}, models: {deny: [opus, claude-opus-5-5]}}]",
        ["line 1: [0].models.deny[1]: said twice in this list"],
    ),
    "no such level": (
        "[{name: a, match: {}, effort: {max: huge}}]",
        [f"line 1: [0].effort.max: expected one of {LEVELS}, not huge"],
    ),
    "no level": ("[{name: a, match: {}, effort: {}}]", ["line 1: [0].effort.max: missing; it has no default"]),
    "text as an input": (
        "[{name: a, match: {}, inputs: {deny: [text]}}]",
        ["line 1: [0].inputs.deny[0]: every request is text; to let none through, deny the models"],
    ),
    "no such input": (
        "[{name: a, match: {}, inputs: {deny: [smell]}}]",
        ["line 1: [0].inputs.deny[0]: expected one of text, image, pdf, audio or video, not smell"],
    ),
    "a limit of nothing": (
        "[{name: a, match: {}, limits: {requests_per_minute: 0}}]",
        [f"line 1: [0].limits.requests_per_minute: {COUNT}"],
    ),
    "a misspelt limit": (
        "[{name: a, match: {}, limits: {usd_per_week: 5}}]",
        ["line 1: [0].limits.usd_per_week: unknown key; did you mean usd_per_day or usd_per_month?"],
    ),
}


@pytest.mark.parametrize(("text", "problems"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_policy_is_a_problem(read_one: Any, facts: Facts, text: str, problems: list[str]) -> None:
    assert problems == read_one(lambda at: policies(at, facts), text)[1]


def test_money_is_limited_exactly(read_one: Any) -> None:
    assert (UsageLimits(usd_per_day=Decimal("0.1")), []) == read_one(usage_limits, "usd_per_day: 0.1")
    assert read_one(usage_limits, "usd_per_day: 0")[1] == [
        "line 1: usd_per_day: expected a number from 0.000001 to 1000000000"
    ]
