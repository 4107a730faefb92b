"""The heads and errors that a relay gives the client, and the words that attempts tell it."""

from __future__ import annotations

import pytest

from making import attempt, plan
from zurelay import relay_words, sse
from zurelay.plan import Plan
from zurelay.relay_words import answer_headers, early_headers

EARLY: dict[str, tuple[Plan, dict[str, str]]] = {
    "one model": (plan("first/one", "first/two"), {"x-zurelay-model": "first"}),
    "several models": (plan("first/one", "second/one"), {}),
    "one model, its level known": (
        plan(attempt("first/one", shown_effort="low"), attempt("first/two", shown_effort="low")),
        {"x-zurelay-model": "first", "x-zurelay-reasoning-effort": "low"},
    ),
    "several models that clamp alike": (
        plan(attempt("first/one", shown_effort="low"), attempt("second/one", shown_effort="low")),
        {"x-zurelay-reasoning-effort": "low"},
    ),
    "several models that clamp apart": (
        plan(attempt("first/one", shown_effort="low"), attempt("second/one", shown_effort="none")),
        {},
    ),
    "several models, one level unknown": (
        plan(attempt("first/one", shown_effort="low"), attempt("second/one")),
        {},
    ),
    "Auto": (plan("first/one", "second/one", asked="zurelay-auto"), {"x-zurelay-routed-from": "zurelay-auto"}),
    "Auto with one model": (
        plan("first/one", asked="zurelay-auto"),
        {"x-zurelay-routed-from": "zurelay-auto", "x-zurelay-model": "first"},
    ),
}


@pytest.mark.parametrize(("planned", "expected"), [pytest.param(*row, id=name) for name, row in EARLY.items()])
def test_a_stream_that_opens_early_says_only_what_is_sure(planned: Plan, expected: dict[str, str]) -> None:
    common = {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "x-zurelay-request-id": "req_1",
    }
    assert common | expected == early_headers(planned)


def test_what_attempts_tell_us_alone_is_in_no_clients_head() -> None:
    told = {"x-zurelay-route": "first/one", "x-zurelay-past": "[]", "x-zurelay-began": "5", "x-zurelay-model": "first"}
    seen = answer_headers(plan("first/one"), told)
    assert ["x-zurelay-model", "x-zurelay-request-id"] == sorted(name for name in seen if name.startswith("x-zurelay-"))


def test_the_relays_names_are_the_wires() -> None:
    assert relay_words.FAILURE == "x-zurelay-failure"
    assert sse.KEEP_ALIVE == b": keep-alive\n\n"
