"""How an attempt that gave no answer ends: what moves on, what goes back to the client, what stays on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judging import GOOD, MISTAKE, TWO, both, whole
from making import attempt, past, plan
from zurelay.errors import InvalidRequest, ModelUnavailable, ProviderRefusal
from zurelay.plan import Reason
from zurelay.verdict import Answered, Kind, timed

TOO_LONG = json.dumps({"error": {"message": "prompt is too long: 9 > 8", "code": None}}).encode()


MOVES = {
    401: Reason.DENIED,
    403: Reason.DENIED,
    404: Reason.DENIED,
    408: Reason.STATUS,
    409: Reason.STATUS,
    425: Reason.STATUS,
    429: Reason.RETRY_LATER,
    500: Reason.STATUS,
    502: Reason.STATUS,
    503: Reason.STATUS,
    504: Reason.STATUS,
    529: Reason.STATUS,
    302: Reason.STATUS,
}


@pytest.mark.parametrize(("status", "reason"), MOVES.items())
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":{"message":"m"}}', GOOD])
def test_a_status_that_moves_on(status: int, reason: Reason, body: bytes) -> None:
    verdict = both(status, body)
    assert (Kind.MOVE_ON, reason, status) == (verdict.kind, verdict.reason, verdict.status)
    second_try = reason not in (Reason.DENIED, Reason.RETRY_LATER)
    assert verdict.plan is not None
    assert (5 if second_try else 4) == len(verdict.plan.attempts)
    assert [(1, "first/one", reason, status)] == [
        (one.number, one.cluster, one.reason, one.status) for one in verdict.plan.past
    ]


@pytest.mark.parametrize("status", [400, 402, 405, 410, 413, 415, 422])
def test_the_clients_own_mistake_goes_back(status: int) -> None:
    verdict = both(status, MISTAKE)
    error = verdict.error
    assert isinstance(error, ProviderRefusal)
    assert (Kind.FAIL, status, "bad stop", "odd", "stop", {}) == (
        verdict.kind,
        error.status,
        error.message,
        error.code,
        error.param,
        error.headers(),
    )


def test_a_mistake_without_words_says_what_is_known() -> None:
    error = both(400, b"<html>Bad Request</html>").error
    assert error is not None
    assert "The provider refused the request with status 400 and gave no reason." == error.message
    assert error.code == "invalid_request"


def test_any_400_of_a_model_that_wasnt_named_moves_on() -> None:
    verdict = both(400, MISTAKE, number=4, planned=plan(*TWO.attempts, past=(past(1), past(2), past(3))))
    assert (Kind.MOVE_ON, Reason.BAD_REQUEST) == (verdict.kind, verdict.reason)
    assert both(422, MISTAKE, number=4).kind is Kind.FAIL


def named(cluster: str, window: int) -> Any:
    return attempt(cluster, window=window)


A, B, C = named("first/one", 100), named("second/one", 100), named("third/one", 1_000)
OVERLONG: dict[str, tuple[tuple[Any, ...], tuple[Reason, ...], str | int]] = {
    "a later window is larger": ((A, A, B, C), (), "third/one"),
    "none is larger": ((A, A, B), (), 400),
    "no other model": ((A, A), (), 400),
    "the named model, after another failure": ((A, A, B), (Reason.STATUS,), 400),
    "the last of several refused for length": ((A, C), (Reason.CONTEXT_LENGTH,), 400),
    "another model, after another failure": ((A, C), (Reason.STATUS,), 503),
    "another model, none is larger": ((A, B, attempt("last/one", window=50)), (Reason.STATUS,), "last/one"),
    "another model, the last, all refused for length": (
        (A, C, C),
        (Reason.CONTEXT_LENGTH, Reason.CONTEXT_LENGTH),
        400,
    ),
    "an attempt that never got an answer among them": ((A, A, C, C), (Reason.CONTEXT_LENGTH,) * 2, 503),
}


@pytest.mark.parametrize(
    ("tries", "before", "expected"), [pytest.param(*row, id=name) for name, row in OVERLONG.items()]
)
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_for_length(
    tries: tuple[Any, ...], before: tuple[Reason, ...], expected: str | int, status: int
) -> None:
    gone = tuple(past(number, reason) for number, reason in enumerate(before, 1))
    number = len(tries) if expected == 503 else len(before) + 1
    verdict = both(status, TOO_LONG, planned=plan(*tries, past=gone), number=number)
    if isinstance(expected, str):
        assert verdict.plan is not None
        assert [expected] == [each.cluster for each in verdict.plan.attempts[number:]]
        return
    error = verdict.error
    assert error is not None
    assert (Kind.FAIL, expected) == (verdict.kind, error.status)
    if expected == 400:
        assert isinstance(error, InvalidRequest)
        assert ("context_length_exceeded", "messages") == (error.code, error.param)
        assert error.message == "prompt is too long: 9 > 8"


ASIDE: dict[str, tuple[int, int | None, int | None]] = {
    "429 with a wait": (429, 7, 7),
    "503 with a wait": (503, 7, 7),
    "a minute": (429, 60, 60),
    "more than a minute": (429, 3_600, 60),
    "none": (429, None, None),
    "503 without": (503, None, None),
    "another status": (500, 7, None),
    "a success": (200, 7, None),
}


@pytest.mark.parametrize(("status", "wait", "expected"), [pytest.param(*row, id=name) for name, row in ASIDE.items()])
def test_a_route_that_said_when_is_set_aside(status: int, wait: int | None, expected: int | None) -> None:
    body = GOOD if status == 200 else b""
    assert expected == whole(status, body, retry_after=wait).aside
    if status != 200:
        assert expected == both(status, body, retry_after=wait).aside
        assert expected == both(status, body, retry_after=wait, planned=plan("first/one")).aside


LAST: dict[str, tuple[tuple[Any, ...], int, int | None, int, str]] = {
    "the only attempt": ((), 1, None, 5, "The only attempt to get an answer failed. Try again in 5 s"),
    "the last of two": ((past(1),), 2, None, 5, "All 2 attempts to get an answer failed. Try again in 5 s"),
    "it said when": ((), 1, 17, 17, "Try again in 17 s"),
    "another said sooner": ((past(1, retry_after=9),), 2, 17, 9, "Try again in 9 s"),
    "another said later": ((past(1, retry_after=30),), 2, 17, 17, "Try again in 17 s"),
    "at once": ((), 1, 0, 1, "Try again in 1 s"),
    "in an hour": ((), 1, 3_600, 60, "Try again in 60 s"),
    "one that got no answer": ((past(1),), 3, None, 5, "All 3 attempts"),
}


@pytest.mark.parametrize(
    ("gone", "number", "wait", "expected", "says"), [pytest.param(*row, id=name) for name, row in LAST.items()]
)
@pytest.mark.parametrize("status", [429, 500, 401])
def test_when_every_attempt_failed_the_client_learns_when_to_ask_again(
    gone: tuple[Any, ...], number: int, wait: int | None, expected: int, says: str, status: int
) -> None:
    planned = plan(*["first/one"] * number, past=gone)
    verdict = both(status, b"", planned=planned, number=number, retry_after=wait)
    error = verdict.error
    assert isinstance(error, ModelUnavailable)
    assert {"retry-after": str(expected), "x-should-retry": "false"} == error.headers()
    assert says in error.message


HEADS: dict[str, tuple[dict[str, str], Answered]] = {
    "all": (
        {":status": "429", "content-encoding": "br", "content-length": "7", "retry-after": "3", "set-cookie": "x"},
        Answered(status=429, content_encoding="br", content_length=7, retry_after=3),
    ),
    "a date": (
        {":status": "503", "retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"},
        Answered(status=503, retry_after=20),
    ),
    "little": ({":status": "200"}, Answered(status=200)),
    "nothing": ({}, Answered(status=0)),
}


@pytest.mark.parametrize(("headers", "expected"), [pytest.param(*row, id=name) for name, row in HEADS.items()])
def test_the_head_of_an_answer(headers: dict[str, str], expected: Answered) -> None:
    assert expected == Answered.read(headers, 10.0)


@pytest.mark.parametrize(("status", "expected"), [(199, False), (200, True), (204, True), (299, True), (300, False)])
def test_a_success_is_a_2xx(status: int, *, expected: bool) -> None:
    assert expected is Answered(status=status).is_success


def test_the_clients_own_mistake_gives_no_attempt_up() -> None:
    assert whole(400, MISTAKE).past is None


def test_an_attempt_that_is_given_up_says_when_it_was() -> None:
    verdict = timed(whole(500, b""), 5, 7)
    assert verdict.past is not None
    assert verdict.plan is not None
    assert (5, 7) == (verdict.past.began, verdict.past.ended)
    assert (verdict.past,) == verdict.plan.past


def test_the_last_attempt_says_when_it_was_too_and_an_answer_needs_not() -> None:
    verdict = timed(whole(500, b"", number=5), 5, 7)
    assert verdict.past is not None
    assert (5, 7, None) == (verdict.past.began, verdict.past.ended, verdict.plan)
    answer = whole()
    assert answer is timed(answer, 5, 7)
