"""The attempts of a request: what was judged, what nobody saw, what ended it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from making import attempt, past, plan
from zurelay import settlement, tried
from zurelay.model import Endpoint, Price
from zurelay.moments import Moments
from zurelay.plan import Attempt, Plan, Reason
from zurelay.ports import Record
from zurelay.tried import Tried
from zurelay.usage import Usage

ONE, TWO, THREE = attempt("first/one"), attempt("first/two"), attempt("other/three")


def record(planned: Plan, number: int, answering: Attempt | None, **facts: Any) -> Record:
    return Record(
        **{
            "plan": planned,
            "number": number,
            "attempt": answering,
            "outcome": settlement.ANSWERED,
            "moments": Moments(began=50, ended=60),
            "status": 200,
            **facts,
        }
    )


def made(given: Record) -> list[tuple[int, str, str]]:
    return [(one.number, one.attempt.cluster, one.error) for one in tried.tried(given)]


def test_the_first_attempt_answers() -> None:
    (only,) = tried.tried(record(plan(ONE, TWO), 1, ONE))
    assert Tried(attempt=ONE, number=1, began=50, ended=60, status=200, ends=True) == only


def test_what_was_given_up_comes_before_what_answered() -> None:
    planned = plan(ONE, ONE, TWO, past=(past(1, began=10, ended=20), past(2, began=20, ended=30)))
    found = tried.tried(record(planned, 3, TWO))
    assert [(1, "first/one", "500"), (2, "first/one", "500"), (3, "first/two", "")] == made(record(planned, 3, TWO))
    assert [(10, 20), (20, 30), (50, 60)] == [(one.began, one.ended) for one in found]
    assert [False, False, True] == [one.ends for one in found]


def test_an_attempt_that_no_filter_saw_shows_in_the_numbers() -> None:
    planned = plan(ONE, TWO, THREE, decided=5, past=(past(2, cluster="first/two", began=10, ended=20),))
    found = tried.tried(record(planned, 3, THREE))
    assert [(1, "first/one", "no_answer"), (2, "first/two", "500"), (3, "other/three", "")] == [
        (one.number, one.attempt.cluster, one.error) for one in found
    ]
    assert (5, 10) == (found[0].began, found[0].ended)


def test_one_that_no_filter_saw_just_before_the_answer_ends_when_that_began() -> None:
    found = tried.tried(record(plan(ONE, TWO, decided=5), 2, TWO))
    assert [(5, 50), (50, 60)] == [(one.began, one.ended) for one in found]


def test_the_last_attempt_failed_and_is_on_record_once() -> None:
    last = past(2, Reason.NOT_JSON, status=200, began=20, ended=30)
    planned = plan(ONE, ONE, past=(past(1), last))
    found = tried.tried(record(planned, 2, ONE, outcome=settlement.REFUSED, moments=Moments(ended=30)))
    assert [("500", False), ("not_json", True)] == [(one.error, one.ends) for one in found]
    assert ["status", "not_json"] == [one.reason for one in found]
    assert (20, 30) == (found[1].began, found[1].ended)


def test_a_clients_own_mistake_is_the_status() -> None:
    given = record(plan(ONE), 1, ONE, outcome=settlement.REFUSED, status=400)
    assert [(1, "first/one", "400")] == made(given)


def test_attempts_that_all_reached_nobody() -> None:
    given = record(plan(ONE, TWO), 2, TWO, outcome=settlement.FAILED, status=0, moments=Moments(ended=60))
    assert [(1, "first/one", "no_answer"), (2, "first/two", "no_answer")] == made(given)


def test_a_relayed_plan_whose_every_attempt_failed_knows_no_last_one() -> None:
    given = record(plan(ONE, TWO, past=(past(1),)), 2, None, outcome=settlement.REFUSED, status=0)
    assert [(1, "first/one", "500"), (2, "first/two", "no_answer")] == made(given)


def test_a_client_that_left_early_leaves_one_attempt_without_an_error() -> None:
    given = record(plan(ONE, TWO), 0, ONE, outcome=settlement.CLIENT_LEFT, status=0)
    assert [(1, "first/one", "")] == made(given)


def test_a_request_that_ended_before_any_attempt_has_none() -> None:
    assert [] == made(record(plan(ONE), 0, None, outcome=settlement.CLIENT_LEFT))


def test_a_break_in_the_midst_of_an_answer_is_the_attempts_error() -> None:
    given = record(plan(ONE), 1, ONE, outcome=settlement.BROKEN)
    assert [(1, "first/one", "broken")] == made(given)


def test_a_plan_that_got_shorter_still_knows_its_routes() -> None:
    """The relay has the plan as it was made: attempt 2 was another route than its second one."""
    planned = plan(ONE, ONE, TWO, past=(past(1, Reason.RETRY_LATER, status=429), past(2, cluster="first/two")))
    assert [(1, "first/one", "429"), (2, "first/two", "500")] == made(record(planned, 2, None, outcome="refused"))


def test_what_an_attempt_wasted_has_its_price() -> None:
    dear = attempt("first/one", price=Price(input=Decimal(1_000_000), output=Decimal(0)))
    planned = plan(
        dear, TWO, past=(past(1, usage=Usage(prompt=3)), past(2, cluster="first/two", usage=Usage(prompt=3)))
    )
    assert [Decimal(3), None] == [one.discarded for one in tried.tried(record(planned, 2, None, outcome="refused"))]


def test_the_last_attempt_of_a_relayed_plan_ends_it_though_the_relay_does_not_know_which_it_was() -> None:
    given = record(plan(ONE, TWO, past=(past(1), past(2, status=400))), 2, None, outcome=settlement.REFUSED, status=0)
    assert [False, True] == [one.ends for one in tried.tried(given)]


def test_what_an_attempt_wasted_is_what_is_settled() -> None:
    dear = attempt("first/one", price=Price(input=Decimal(1_000_000), output=Decimal(0)), window=100)
    lie = past(1, usage=Usage(prompt=10**12, completion=0))
    found = tried.tried(record(plan(dear, TWO, past=(lie,), prompt=7), 2, TWO))
    assert [Decimal(7), None] == [one.discarded for one in found]
    counting = plan(dear, TWO, past=(lie,), endpoint=Endpoint.COUNT_TOKENS)
    assert [None, None] == [one.discarded for one in tried.tried(record(counting, 2, TWO))]
