"""What an entry of Envoy's access log says of a request's end."""

from __future__ import annotations

from typing import Any

import pytest

from making import past, plan
from zurelay.access_log import Entry, record
from zurelay.moments import Moments
from zurelay.passthrough import Counted
from zurelay.usage import Usage

LEFT: dict[str, Any] = {"status": 0, "cut": True, "details": "downstream_remote_disconnect"}
PAID = Usage(prompt=50, estimated=True)
PLAN = plan("first/one", "first/one", "second/two", prompt=50)

ENDS: dict[str, tuple[dict[str, Any], tuple[str, int, str | None, Usage | None]]] = {
    "every route refused": ({"sent": False}, ("failed", 3, "second", None)),
    "every attempt was reset": ({}, ("failed", 3, "second", None)),
    "the first attempt hung until the end": ({"tries": 1}, ("failed", 1, "first", None)),
    "no attempt was made": ({"tries": 0, "sent": False}, ("failed", 0, None, None)),
    "the client left while the model worked": ({**LEFT, "tries": 1}, ("client_left", 1, "first", PAID)),
    "the client left at the last attempt": (LEFT, ("client_left", 3, "second", PAID)),
    "the client left before a provider had its request": ({**LEFT, "sent": False}, ("client_left", 3, "second", None)),
    "the client left before an attempt": ({**LEFT, "tries": 0, "sent": False}, ("client_left", 0, None, None)),
    "the client left in the midst of our error": ({**LEFT, "status": 503}, ("failed", 3, "second", None)),
    "Envoy was stopped": ({**LEFT, "details": "downstream_local_disconnect(x)"}, ("failed", 3, "second", None)),
}


@pytest.mark.parametrize(("facts", "expected"), [pytest.param(*row, id=name) for name, row in ENDS.items()])
def test_an_end_is_read(facts: dict[str, Any], expected: tuple[str, int, str | None, Usage | None]) -> None:
    usual = {"plan": PLAN, "tries": 3, "status": 503, "cut": False, "sent": True, "details": "said"}
    entry = Entry(**{**usual, **facts})
    found = record(entry)
    model = found.attempt.model if found.attempt is not None else None
    assert expected == (found.outcome, found.number, model, found.usage)
    assert (PLAN, entry.details) == (found.plan, found.why)


def test_tries_that_fill_a_shortened_plan_up_are_none() -> None:
    shortened = plan("first/one", "second/two", length=5, past=(past(1),))
    entry = Entry(plan=shortened, tries=5, status=503, cut=False, sent=False, details="")
    assert 2 == record(entry).number


TOLD = '{"prompt_tokens":7,"completion_tokens":9}'
SAID = Usage(prompt=7, completion=9)
GUESS = Usage(prompt=50, completion=12, estimated=True)
CUT: dict[str, Any] = {"cut": True, "details": "downstream_remote_disconnect"}

PASSED: dict[str, tuple[dict[str, Any], Counted, tuple[str, Usage, str]]] = {
    "whole": ({}, Counted(number=2, first=TOLD, whole=True), ("answered", SAID, "")),
    "whole, without the provider's word": ({}, Counted(number=2, events=12, whole=True), ("answered", GUESS, "")),
    "whole, and the client left at once": (CUT, Counted(number=2, first=TOLD, whole=True), ("answered", SAID, "")),
    "the client left": (CUT, Counted(number=2, events=12), ("client_left", GUESS, CUT["details"])),
    "the provider broke off": ({}, Counted(number=2, events=12), ("broken", GUESS, "via_upstream")),
}


@pytest.mark.parametrize(
    ("facts", "counted", "expected"), [pytest.param(*row, id=name) for name, row in PASSED.items()]
)
def test_the_end_of_a_stream_that_passed_through_is_read(
    facts: dict[str, Any], counted: Counted, expected: tuple[str, Usage, str]
) -> None:
    usual = {"plan": PLAN, "tries": 3, "status": 200, "cut": False, "sent": True, "details": "via_upstream"}
    found = record(Entry(**{**usual, **facts}, counted=counted, began=1, answered=2, ended=3))
    assert (200, Moments(began=1, first_token=2, ended=3)) == (found.status, found.moments)
    assert expected == (found.outcome, found.usage, found.why)
    assert (2, PLAN.attempts[1]) == (found.number, found.attempt)
