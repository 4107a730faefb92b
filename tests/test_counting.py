"""What is counted, under which labels: the catalog's and closed sets of words alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from making import attempt, past, plan, unplanned
from zurelay import counting, families, settlement, tally
from zurelay.attributes import Place
from zurelay.families import GAUGES, TIME_PER_OUTPUT_CHUNK
from zurelay.limits import Kind, Refused, Scope
from zurelay.model import Endpoint
from zurelay.moments import SECOND, Moments
from zurelay.ports import Record
from zurelay.rules import Effect, Finding
from zurelay.store import Spent
from zurelay.tally import Family, Labels, Tally
from zurelay.tried import tried
from zurelay.usage import Usage

ONE, TWO = attempt("first/one"), attempt("other/two")
LABELS_ONE = ("chat", "one", "one-first", "one.test", "443")
LABELS_TWO = ("chat", "two", "two-other", "two.test", "443")


class Counted:
    """A tally, read by family and labels."""

    def __init__(self) -> None:
        self.tally = Tally()

    def finish(self, **facts: Any) -> None:
        given = {"plan": plan(ONE, TWO, began=SECOND), "number": 1, "attempt": ONE, "outcome": settlement.ANSWERED}
        record = Record(**{**given, **facts})
        counting.finished(self.tally, record, tried(record), lambda name: Place(name, f"{name}.test", 443))

    def of(self, family: Family) -> dict[Labels, tuple[float, ...]]:
        found = tally.total([self.tally.samples()], GAUGES)
        return {labels: values for (name, labels), values in found.items() if name == family.name}

    def count(self, family: Family) -> dict[Labels, tuple[float, float]]:
        """How often something was observed, and the sum."""
        return {labels: (sum(values[:-1]), values[-1]) for labels, values in self.of(family).items()}


def test_an_answer_counts_once_with_its_times_tokens_and_cost() -> None:
    counted = Counted()
    counted.finish(
        usage=Usage(prompt=5, completion=7),
        moments=Moments(began=2 * SECOND, ended=4 * SECOND),
        spent=Spent(usd=Decimal("0.5"), ours=Decimal("0.25")),
    )
    assert {("first", "answered"): (1,)} == counted.of(families.REQUESTS)
    assert {("first", "false"): (1, 3.0)} == counted.count(families.REQUEST_DURATION)
    assert {(*LABELS_ONE, ""): (1, 2.0)} == counted.count(families.OPERATION_DURATION)
    assert {(*LABELS_ONE, "input"): (1, 5), (*LABELS_ONE, "output"): (1, 7)} == counted.count(families.TOKEN_USAGE)
    assert {("first",): (0.5,)} == counted.of(families.COST)
    assert {("first",): (0.25,)} == counted.of(families.OWN_COST)
    assert {} == counted.of(families.FALLBACKS) | counted.of(families.EARLY_OPENS) | counted.of(families.KEEPALIVES)
    assert {} == counted.of(families.TIME_TO_FIRST_TOKEN)


def test_a_stream_counts_its_first_token_for_us_and_for_the_caller() -> None:
    counted = Counted()
    gaps = (1.0,) + (0.0,) * len(TIME_PER_OUTPUT_CHUNK.bounds) + (0.005,)
    counted.finish(
        plan=plan(ONE, began=SECOND, stream=True),
        moments=Moments(
            began=2 * SECOND,
            first_token=3 * SECOND,
            opened=2 * SECOND,
            ended=4 * SECOND,
            keepalives=4,
            gaps=gaps,
        ),
    )
    assert {LABELS_ONE: (1, 1.0)} == counted.count(families.TIME_TO_FIRST_CHUNK)
    assert {LABELS_ONE[:3]: (1, 2.0)} == counted.count(families.TIME_TO_FIRST_TOKEN)
    assert {LABELS_ONE: gaps} == counted.of(TIME_PER_OUTPUT_CHUNK)
    assert {(): (4,)} == counted.of(families.KEEPALIVES)
    assert {(): (1,)} == counted.of(families.EARLY_OPENS)
    assert {("first", "true"): (1, 3.0)} == counted.count(families.REQUEST_DURATION)


def test_attempts_that_failed_have_their_times_and_errors_and_the_request_fell_back_once() -> None:
    counted = Counted()
    planned = plan(ONE, TWO, began=SECOND, past=(past(1, began=SECOND, ended=2 * SECOND),))
    counted.finish(plan=planned, number=2, attempt=TWO, moments=Moments(began=2 * SECOND, ended=4 * SECOND))
    assert {(*LABELS_ONE, "500"): (1, 1.0), (*LABELS_TWO, ""): (1, 2.0)} == counted.count(families.OPERATION_DURATION)
    assert {("first", "status"): (1,)} == counted.of(families.FALLBACKS)


def test_a_refused_request_has_no_model_that_answered() -> None:
    counted = Counted()
    counted.finish(outcome=settlement.REFUSED)
    assert {("", "refused"): (1,)} == counted.of(families.REQUESTS)


def test_a_request_without_times_counts_without_them() -> None:
    counted = Counted()
    counted.finish(plan=plan(ONE), outcome=settlement.CLIENT_LEFT)
    assert {} == counted.of(families.REQUEST_DURATION)
    assert 1 == sum(values[0] for values in counted.of(families.REQUESTS).values())


def test_a_decision_counts_by_category_and_model() -> None:
    counted = Counted()
    counting.decided(counted.tally, plan(TWO, category="simple"), 0.002)
    assert {("simple", "other"): (1,)} == counted.of(families.DECISIONS)
    assert {("decide",): (1, 0.002)} == counted.count(families.SIDECAR_DURATION)


def test_what_a_client_wrote_is_no_label() -> None:
    counted = Counted()
    for number in range(1_000):
        refusal = unplanned(request_id=f"req_{number}", asked=f"made-up-{number}")
        counting.unplanned(counted.tally, refusal)
    assert {("model_not_found",): (1_000,)} == counted.of(families.REFUSALS)


@pytest.mark.parametrize("outcome", [settlement.ANSWERED, settlement.CLIENT_LEFT])
def test_a_request_without_a_plan_that_was_not_refused_is_counted_by_its_outcome(outcome: str) -> None:
    counted = Counted()
    given = unplanned(method="GET", path="/v1/models", outcome=outcome, code="")
    counting.unplanned(counted.tally, given)
    assert {("", outcome): (1,)} == counted.of(families.REQUESTS)
    assert {} == counted.of(families.REFUSALS)


def test_attempts_given_up_limits_and_policies_are_counted() -> None:
    counted = Counted()
    counting.gave_up(counted.tally, plan(ONE, TWO), 2, "status")
    for name in ("policy:p key:team", "key:team"):
        scope = Scope(name=name, label="it")
        refused = Refused(scope=scope, kind=Kind.REQUESTS, limit=5, used=5, needed=1, wait=1)
        counting.limited(counted.tally, refused, shadow=True)
    counting.ruled(counted.tally, Finding("p", Effect.MODEL, "why"), shadow=False)
    assert {("other/two", "status"): (1,)} == counted.of(families.GIVEN_UP)
    assert {
        ("policy:p", "requests_per_minute", "true"): (1,),
        ("key", "requests_per_minute", "true"): (1,),
    } == counted.of(families.LIMITS_HIT)
    assert {("p", "model", "false"): (1,)} == counted.of(families.POLICY_EFFECTS)


def test_who_counts_tokens_uses_none() -> None:
    counted = Counted()
    counted.finish(plan=plan(ONE, began=SECOND, endpoint=Endpoint.COUNT_TOKENS), usage=Usage(prompt=5))
    assert {} == counted.of(families.TOKEN_USAGE)


def test_attempts_that_nobody_judged_are_given_up_as_well() -> None:
    counted = Counted()
    counted.finish(plan=plan(ONE, TWO, began=SECOND), number=2, attempt=TWO)
    counted.finish(outcome=settlement.BROKEN)
    assert {("first/one", "no_answer"): (1,), ("first/one", "broken"): (1,)} == counted.of(families.GIVEN_UP)
