"""A decision as a value: everything that led to it, also to a refusal (SPEC 14)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zurelay import settings
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.decide import Facts, decide
from zurelay.explain import explained, summary
from zurelay.identity import Workload
from zurelay.model import Endpoint, Key, UsageLimits
from zurelay.request import ChatRequest

CONFIG = """
listen: {port: 8080}
status: {port: 8081}
auth: {require: none}
providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}
models:
  easy: {routes: [{provider: p, model: e}], context_window: 1000}
  hard:
    routes: [{provider: p, model: h}]
    context_window: 100000
    reasoning: {levels: [low, high], default: low}
    fallbacks: [easy]
auto: {simple: [easy], standard: [hard], complex: [hard]}
"""
CATALOG = Catalog(settings.parse(CONFIG, environ={}, readable=lambda _: True))


def body(model: str, **more: Any) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "thanks, bye"}], **more}).encode()


def test_autos_decision_has_score_category_and_reasons_at_the_top() -> None:
    found = explained(CATALOG, body("auto"), Caller())
    assert (found["model"], found["category"]) == ("zurelay-auto", "simple")
    assert 0 <= found["score"] <= 1
    assert found["reasons"]
    assert found["features"]
    assert [attempt["model"] for attempt in found["attempts"]] == ["easy", "easy", "hard", "hard"]


def test_a_named_models_decision_has_effort_attempts_and_who_was_left_out() -> None:
    found = explained(CATALOG, body("hard", reasoning_effort="max", max_tokens=5000), Caller())
    assert (found["category"], found["score"], found["effort_asked"]) == (None, None, "max")
    assert found["attempts"][0] == {
        "number": 1,
        "model": "hard",
        "provider": "p",
        "route": "hard/p",
        "upstream": "h",
        "effort_applied": "high",
    }
    (left,) = found["left_out"]
    assert left["model"] == "easy"
    assert "window" in left["why"]


def test_the_keys_limits_are_told() -> None:
    limits = UsageLimits(requests_per_minute=5)
    caller = Caller(key=Key(name="a", digest=b"", limits=limits))
    assert explained(CATALOG, body("easy"), caller)["limits"] == {"requests_per_minute": "5"}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", "invalid_json"),
        (body("nope"), "model_not_found"),
        (body("auto", max_tokens=10**6), "context_length_exceeded"),
    ],
)
def test_a_refusal_is_a_decision_too(raw: bytes, code: str) -> None:
    found = explained(CATALOG, raw, Caller())
    assert found["error"]["code"] == code
    assert (found["category"], found["score"]) == (None, None)


def test_the_summary_is_one_short_line() -> None:
    request = ChatRequest.parse(body("auto"), Endpoint.CHAT)
    line = summary(decide(CATALOG, request, Facts(caller=Caller(), request_id="r")))
    assert line.startswith("category=simple; score=0.")
    assert line.isascii()
    assert len(line) < 200


POLICIES = """
identity: {mode: forwarded, trusted: [10.0.0.0/8], trust_domain: m}
policies:
- {name: calm, match: {namespace: pay}, effort: {max: low}, limits: {requests_per_minute: 5}}
- {name: lean, match: {namespace: pay}, models: {deny: [easy]}}
- {name: later, match: {}, models: {deny: [hard]}, shadow: true}
"""


def effects(findings: list[dict[str, str]]) -> set[tuple[str, str]]:
    return {(one["policy"], one["effect"]) for one in findings}


class TestPolicies:
    """What explain tells of policies and limits."""

    POLICED = Catalog(settings.parse(CONFIG + POLICIES, environ={}, readable=lambda _: True))
    PAY = Caller(workload=Workload("pay", "api"))

    def test_those_that_decided_are_told_and_those_in_shadow(self) -> None:
        found = explained(self.POLICED, body("hard", reasoning_effort="high"), self.PAY)
        policies = found["policies"]
        assert (["calm", "lean"], ["later"]) == (policies["matched"], policies["in_shadow"])
        assert {("calm", "effort"), ("lean", "model")} == {
            (one["policy"], one["effect"]) for one in policies["decided"]
        }
        assert {("later", "model")} == effects(policies["would_have_decided"])
        assert ["low", "low"] == [one["effort_applied"] for one in found["attempts"]]
        assert [{"scope": "policy:calm workload:pay/api", "shadow": False, "requests_per_minute": "5"}] == found[
            "limited_by"
        ]

    def test_a_refusal_names_who_refuses(self) -> None:
        found = explained(self.POLICED, body("easy"), self.PAY)
        assert "policy_denied" == found["error"]["code"]
        assert ["lean"] == [one["policy"] for one in found["policies"]["decided"]]

    def test_a_caller_whom_none_match_is_bound_by_none(self) -> None:
        found = explained(self.POLICED, body("easy"), Caller())
        assert ([], []) == (found["policies"]["matched"], found["limited_by"])
        assert "error" not in found
