from typing import Any

import pytest

from zurelay.contract.rules import How, Rule, broken
from zurelay.contract.values import normal

CASES = [
    # how, wanted, found, what is said (nothing: it holds)
    (How.SAME, "BUFFERED", "BUFFERED", ""),
    (How.SAME, "BUFFERED", "STREAMED", "is STREAMED, must be BUFFERED"),
    (How.SAME, True, None, "is unset, must be true"),
    (How.SAME, None, True, "is true, must be unset"),
    (How.SAME, False, None, ""),
    (How.AT_LEAST, 10, 10, ""),
    (How.AT_LEAST, 10, "11", ""),
    (How.AT_LEAST, 10, 9, "is 9, must be at least 10"),
    (How.AT_LEAST, 10, None, "is unset, must be at least 10"),
    (How.AT_LEAST, None, 3, ""),
    (How.AT_LEAST, "20s", "20.5s", ""),
    (How.AT_LEAST, "20s", "0s", "is 0s, must be at least 20s"),
    (How.AT_LEAST, "20s", 30, "is 30, must be at least 20s"),
    (How.AT_LEAST, "a-name", "another", ""),
    (How.AT_LEAST, "a-name", None, "is unset, must be at least a-name"),
    (How.PATIENT, "20s", "0s", ""),
    (How.PATIENT, "20s", "19s", "is 19s, must be at least 20s"),
    (How.PATIENT, "20s", None, "is unset, must be at least 20s"),
    (How.INCLUDES, ["a"], ["b", "a"], ""),
    (How.INCLUDES, None, ["b"], ""),
    (How.INCLUDES, ["a"], ["b"], "lacks a"),
    (How.INCLUDES, ["a", "b", "c"], None, "lacks a and 2 more"),
    (How.WORDS, "reset,unavailable", "unavailable, 5xx ,reset", ""),
    (How.WORDS, "reset,unavailable", "reset", "lacks unavailable"),
    (How.WORDS, "reset", None, "lacks reset"),
]


@pytest.mark.parametrize(("how", "wanted", "found", "said"), CASES)
def test_a_rule_holds_or_says_what_differs(how: How, wanted: Any, found: Any, said: str) -> None:
    rule = Rule("a.b", how)

    told = list(broken((rule,), "here", normal({"a": {"b": wanted}}), normal({"a": {"b": found}})))

    assert told == ([f"here: a.b {said}"] if said else [])


def test_what_envoy_takes_for_an_unset_value_counts_for_both() -> None:
    rule = Rule("mode", unset="SEND")

    assert list(broken((rule,), "here", {"mode": "SEND"}, {})) == []
    assert list(broken((rule,), "here", {}, {"mode": "SKIP"})) == ["here: mode is SKIP, must be SEND"]


def test_the_reason_is_told() -> None:
    assert list(broken((Rule("a", why="or else"),), "here", {"a": 1}, None)) == [
        "here: a is unset, must be 1 (or else)"
    ]
