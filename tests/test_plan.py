"""The plan: second tries, what is left after each kind of failure, and what Envoy is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import attempt, past, plan
from zurelay import plan as plans
from zurelay.model import Endpoint, Format
from zurelay.plan import REFUSE, Attempt, Past, Plan, Reason

LARGE = attempt("large/one", window=1_000_000, named=False)
SMALL = attempt("small/one", window=8_000, named=False)
SAME = attempt("same/one", named=False)


def clusters(attempts: tuple[Attempt, ...] | list[Attempt]) -> str:
    return " ".join(each.cluster for each in attempts)


@pytest.mark.parametrize(("routes", "expected"), [("", ""), ("m/a", "m/a m/a"), ("m/a m/b m/c", "m/a m/a m/b m/c")])
def test_a_models_plan_is_its_first_route_twice_then_the_others(routes: str, expected: str) -> None:
    assert expected == clusters(plans.tries(map(attempt, routes.split())))


ANSWERED = "first/one first/one first/two second/one second/one"
REMAINING = {
    "a 500 of the first try": (1, Reason.STATUS, "first/one first/two second/one second/one"),
    "a 401 of the first try": (1, Reason.DENIED, "first/two second/one second/one"),
    "a 429 of the first try": (1, Reason.RETRY_LATER, "first/two second/one second/one"),
    "a 429 of the second try": (2, Reason.RETRY_LATER, "first/two second/one second/one"),
    "a 429 of another route": (3, Reason.RETRY_LATER, "second/one second/one"),
    "a 429 of another model's first try": (4, Reason.RETRY_LATER, ""),
    "a 400 of another model": (4, Reason.BAD_REQUEST, "second/one"),
    "an error in a 200": (1, Reason.ERROR_BODY, "first/one first/two second/one second/one"),
    "no JSON": (1, Reason.NOT_JSON, "first/one first/two second/one second/one"),
    "no token": (1, Reason.NO_TOKEN, "first/one first/two second/one second/one"),
    "the last": (5, Reason.STATUS, ""),
}


@pytest.mark.parametrize(
    ("number", "reason", "expected"), [pytest.param(*row, id=name) for name, row in REMAINING.items()]
)
def test_what_is_left_after_a_failure(number: int, reason: Reason, expected: str) -> None:
    planned = plan(*ANSWERED.split())
    assert expected == clusters(plans.remaining(planned, number, reason))


FIRST = attempt("first/one")
LENGTH = {
    "a larger window follows": ((FIRST, FIRST, SMALL, LARGE, SAME, LARGE), 1, "large/one large/one"),
    "none is larger": ((FIRST, FIRST, SMALL, SAME), 1, ""),
    "its own second try is no larger": ((FIRST, FIRST), 1, ""),
    "another model, a larger one follows": ((FIRST, SAME, SAME, SMALL, LARGE), 2, "large/one"),
    "another model, none is larger: the other models": ((FIRST, SAME, SAME, SMALL, SMALL), 2, "small/one small/one"),
    "another model, nothing else": ((FIRST, SAME, SAME), 2, ""),
}


@pytest.mark.parametrize(
    ("attempts", "number", "expected"), [pytest.param(*row, id=name) for name, row in LENGTH.items()]
)
def test_after_a_refusal_for_length_only_what_may_hold_more_is_left(
    attempts: tuple[Attempt, ...], number: int, expected: str
) -> None:
    assert expected == clusters(plans.remaining(plan(*attempts), number, Reason.CONTEXT_LENGTH))


ROUTES = st.sampled_from([FIRST, attempt("first/two"), SMALL, SAME, LARGE])
PLANS = st.lists(ROUTES, min_size=1, max_size=12).map(lambda attempts: plan(*attempts))
REASONS = st.sampled_from(Reason)


@given(PLANS, st.lists(REASONS, min_size=1, max_size=12))
def test_moving_on_keeps_the_past_and_comes_to_an_end(planned: Plan, reasons: list[Reason]) -> None:
    now, number, length = planned, 1, planned.length
    for reason in reasons:
        rest = plans.remaining(now, number, reason)
        if not rest:
            break
        then = plans.moved_on(now, past(number, reason, cluster=now.attempts[number - 1].cluster), rest)
        assert now.attempts[:number] == then.attempts[:number]
        assert rest == then.attempts[number:]
        assert len(then.attempts) <= len(now.attempts)
        assert (*now.past, past(number, reason, cluster=now.attempts[number - 1].cluster)) == then.past
        assert (length, planned.asked, planned.request_id) == (then.length, then.asked, then.request_id)
        now, number = then, number + 1
    assert number <= length


@given(PLANS, REASONS, st.data())
def test_what_is_left_is_a_part_of_the_rest_in_its_order(planned: Plan, reason: Reason, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(planned.attempts)))
    rest = iter(planned.attempts[number:])
    assert all(any(each is one for one in rest) for each in plans.remaining(planned, number, reason))


@given(PLANS, st.sampled_from([".whole", ".stream"]), st.none() | st.just(".first"), st.integers(0, 11))
def test_envoy_is_told_as_many_clusters_as_the_plan_had(
    planned: Plan, suffix: str, first: str | None, gone: int
) -> None:
    kept = planned.attempts[: max(1, len(planned.attempts) - gone)]
    shorter = plan(*kept, length=planned.length)
    groups = plans.groups(shorter, suffix, first)
    assert planned.length == len(groups)
    assert [each.cluster + suffix for each in kept[1:]] == groups[1 : len(kept)]
    assert kept[0].cluster + (first or suffix) == groups[0]
    assert {REFUSE} >= set(groups[len(kept) :])


def test_the_bound_of_the_contract() -> None:
    assert plans.MOST_ATTEMPTS == 12


def test_models_and_clusters_are_listed() -> None:
    planned = plan("a/one", "a/one", "a/two", "b/one", "a/three")
    assert ["a", "b"] == planned.models
    assert ["a/one", "a/one", "a/two", "b/one", "a/three"] == planned.clusters


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [("first", "first/one", None), ("first", "second/one", "first"), ("zurelay-auto", "first/one", "zurelay-auto")],
)
def test_routed_from_is_said_whenever_another_model_answers(asked: str, answered: str, expected: str | None) -> None:
    assert expected == plans.routed_from(plan(asked=asked), attempt(answered))


NAMES = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
ATTEMPTS = st.builds(
    Attempt,
    cluster=NAMES,
    provider=NAMES,
    model=NAMES,
    upstream=NAMES,
    format=st.sampled_from(Format),
    path=NAMES,
    window=st.integers(0, 1 << 40),
    effort=st.none() | NAMES,
    shown_effort=st.none() | NAMES,
    named=st.booleans(),
    max_output=st.none() | st.integers(0, 1 << 40),
    rename=st.dictionaries(NAMES, NAMES, max_size=2),
    drop=st.lists(NAMES, max_size=2).map(tuple),
)
PAST = st.builds(
    Past,
    number=st.integers(1, 12),
    cluster=NAMES,
    reason=REASONS,
    status=st.integers(0, 599),
    retry_after=st.none() | st.integers(0, 10**6),
)
ANY = st.builds(
    Plan,
    request_id=NAMES,
    endpoint=st.sampled_from(Endpoint),
    attempts=st.lists(ATTEMPTS, min_size=1, max_size=4).map(tuple),
    first_token=st.floats(0, 1e6),
    whole=st.floats(0, 1e6),
    total=st.floats(0, 1e6),
    length=st.integers(1, 12),
    asked=NAMES,
    key=st.none() | NAMES,
    stream=st.booleans(),
    past=st.lists(PAST, max_size=3).map(tuple),
)


@given(ANY)
def test_a_plan_travels_as_json_and_comes_back(planned: Plan) -> None:
    assert planned == plans.decode(plans.encode(planned))
    assert planned == plans.decode(plans.encode(planned).decode())


def test_the_longest_plan_fits_a_header() -> None:
    long = attempt("m" * 128 + "/" + "p" * 64, upstream="u" * 128, rename={"max_tokens": "max_completion_tokens"})
    assert len(plans.encode(plan(*[long] * 12))) < 16 << 10
