"""One attempt's verdict: who answers, what moves on, what goes back to the client."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging import GOOD, LIMIT, MISTAKE, TWO, both, facts_of, streamed, whole
from making import attempt, chunk, event, plan
from zurelay import attempt as attempts
from zurelay.attempt import HELD, StreamAttempt
from zurelay.errors import ProviderRefusal
from zurelay.model import Endpoint, Format
from zurelay.plan import Reason
from zurelay.usage import Usage
from zurelay.verdict import Answered, Kind

ROLE = event(chunk(delta={"role": "assistant", "content": ""}))
TOKEN = event(chunk("H"))


def test_a_good_answer_is_the_clients() -> None:
    verdict = whole(body=GOOD[:-1] + b',"usage":{"prompt_tokens":3,"completion_tokens":1}}')
    assert (Kind.ANSWER, Usage(prompt=3, completion=1), ("stop",), 200) == (
        verdict.kind,
        verdict.usage,
        verdict.finish_reasons,
        verdict.status,
    )
    assert json.loads(verdict.body or b"")["model"] == "first"
    assert (None, None, None, None) == (verdict.error, verdict.plan, verdict.reason, verdict.aside)


def test_the_model_is_that_of_the_attempt_that_answers() -> None:
    assert json.loads(whole(number=4).body or b"")["model"] == "second"


NO_ANSWER = {
    "an error": (b'{"error":{"message":"m"}}', Reason.ERROR_BODY),
    "no JSON": (b"<html>", Reason.NOT_JSON),
    "nothing": (b"", Reason.NOT_JSON),
    "cut short": (GOOD[:-9], Reason.NOT_JSON),
    "a stream": (event(chunk("H")), Reason.NOT_JSON),
    "no choices": (b'{"choices":[]}', Reason.NO_TOKEN),
}


@pytest.mark.parametrize(("body", "reason"), [pytest.param(*row, id=name) for name, row in NO_ANSWER.items()])
def test_a_200_that_is_none_moves_on(body: bytes, reason: Reason) -> None:
    for number, cluster in ((1, "first/one"), (3, "first/two")):
        verdict = whole(body=body, number=number)
        assert (Kind.MOVE_ON, reason, 200) == (verdict.kind, verdict.reason, verdict.status)
        assert verdict.plan is not None
        assert [(number, cluster)] == [(one.number, one.cluster) for one in verdict.plan.past]


STREAMS: dict[str, tuple[bytes, Reason | None]] = {
    "a token": (TOKEN, None),
    "a role, then a token": (ROLE + TOKEN, None),
    "comments, then a token": (b": OPENROUTER PROCESSING\n\n" * 3 + TOKEN, None),
    "a ping, then a token": (b"event: ping\ndata: {}\n\n" + TOKEN, None),
    "a reasoning token": (event(chunk(delta={"reasoning": "hm"})), None),
    "a tool call": (event(chunk(delta={"tool_calls": [{"index": 0}]})), None),
    "a finish alone": (event(chunk(finish="stop")), None),
    "CR LF": (b"data: " + chunk("H") + b"\r\n\r\n", None),
    "CR": (b"data: " + chunk("H") + b"\r\r", None),
    "no space": (b"data:" + chunk("H") + b"\n\n", None),
    "no blank line at the end": (b"data: " + chunk("H"), None),
    "an event's name": (b"event: message\ndata: " + chunk("H") + b"\n\n", None),
    "a byte order mark": (b"\xef\xbb\xbf" + TOKEN, None),
    "data in two lines": (b"data: " + chunk("H").replace(b',"choices"', b',\ndata: "choices"') + b"\n\n", None),
    "an error first": (event(b'{"error":{"message":"overloaded"}}'), Reason.FIRST_EVENT_ERROR),
    "an error by the event's name": (b"event: error\ndata: {}\n\n", Reason.FIRST_EVENT_ERROR),
    "an error after a role": (ROLE + event(b'{"error":{"code":500}}'), Reason.FIRST_EVENT_ERROR),
    "an error, then the end": (event(b'{"error":{"code":400}}') + event(b"[DONE]"), Reason.FIRST_EVENT_ERROR),
    "the end alone": (event(b"[DONE]"), Reason.NO_TOKEN),
    "a role, then the end": (ROLE + event(b"[DONE]"), Reason.NO_TOKEN),
    "a role, then silence": (ROLE, Reason.NO_TOKEN),
    "usage alone": (event(b'{"choices":[],"usage":{}}'), Reason.NO_TOKEN),
    "comments alone": (b": hm\n\n", Reason.NO_TOKEN),
    "nothing": (b"", Reason.NO_TOKEN),
    "a complete answer": (GOOD, Reason.NO_TOKEN),
    "an error that is no stream": (b'{"error":{"message":"m"}}', Reason.NO_TOKEN),
    "a page": (b"<html>\n\n</html>", Reason.NO_TOKEN),
    "data that is no JSON": (event(b"hello"), Reason.NOT_A_STREAM),
    "a token cut short": (b"data: " + chunk("Hello")[:-9], Reason.NOT_A_STREAM),
    "an Anthropic stream": (
        (
            b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
        ),
        Reason.NO_TOKEN,
    ),
}


@pytest.mark.parametrize(("stream", "reason"), [pytest.param(*row, id=name) for name, row in STREAMS.items()])
def test_a_stream_is_judged_by_its_first_token(stream: bytes, reason: Reason | None) -> None:
    pieces = [stream[place : place + 1] for place in range(len(stream))]
    for cut in ([stream], [stream, b""], [*pieces, b""]):
        verdict = streamed(*cut)
        assert verdict is not None
        expected = (Kind.ANSWER, None) if reason is None else (Kind.MOVE_ON, reason)
        assert expected == (verdict.kind, verdict.reason)


def test_nothing_is_said_before_the_first_token() -> None:
    held = StreamAttempt(TWO, 1, Answered(status=200))
    for piece in (b": hm\n\n", ROLE, b"data: " + chunk("H")):
        assert held.feed(piece, end=False) is None
    verdict = held.feed(b"\n\n", end=False)
    assert verdict is not None
    assert verdict.kind is Kind.ANSWER


@given(st.data())
def test_the_verdict_on_a_stream_is_the_same_however_it_is_cut(data: st.DataObject) -> None:
    stream, reason = data.draw(st.sampled_from(list(STREAMS.values())))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[one:two] for one, two in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    verdict = streamed(*pieces)
    assert verdict is not None
    assert reason is verdict.reason


HELD_CASES = {
    "comments without end": (b": " + b"x" * 100 + b"\n\n", Reason.TOO_LARGE),
    "roles without end": (ROLE, Reason.TOO_LARGE),
    "one event that fills it is content": (b"x" * 1_000, None),
    "a page without end": (b" " * 1_000, Reason.TOO_LARGE),
    "blank lines without end": (b"\n" * 1_000, Reason.TOO_LARGE),
}


@pytest.mark.parametrize(("piece", "reason"), [pytest.param(*row, id=name) for name, row in HELD_CASES.items()])
def test_what_never_says_anything_is_given_up_in_time(piece: bytes, reason: Reason | None) -> None:
    held = StreamAttempt(TWO, 1, Answered(status=200))
    fed = 0
    verdict = held.feed(b"data: " if reason is None else b"", end=False)
    while verdict is None:
        assert fed < HELD
        verdict = held.feed(piece, end=False)
        fed += len(piece)
    assert (Kind.ANSWER if reason is None else Kind.MOVE_ON, reason) == (verdict.kind, verdict.reason)


def test_an_event_beyond_all_bounds_moves_on() -> None:
    for first in (b"", TOKEN.replace(b'"H"', b'""')):
        verdict = streamed(first + b"data: " + b"x" * (5 * HELD), b"")
        assert verdict is not None
        assert verdict.kind is Kind.MOVE_ON


def test_an_error_body_without_end_is_judged_by_its_status() -> None:
    held = StreamAttempt(TWO, 1, Answered(status=400))
    verdict = None
    for _ in range(HELD // 1_000 + 1):
        assert verdict is None
        verdict = held.feed(b"x" * 1_000, end=False)
    assert verdict is not None
    assert (Kind.FAIL, 400) == (verdict.kind, verdict.status)


def test_a_message_after_64_kib_of_echo_is_read() -> None:
    body = json.dumps({"error": {"input": "x" * (200 << 10), "message": "bad stop"}}).encode()
    error = both(400, body).error
    assert error is not None
    assert error.message == "bad stop"


CODED = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "in capitals": ("GZIP", gzip.compress),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize(("coding", "code"), [pytest.param(*row, id=name) for name, row in CODED.items()])
def test_a_coded_answer_is_read(coding: str, code: Any) -> None:
    assert whole(body=code(GOOD), content_encoding=coding).kind is Kind.ANSWER
    stream = streamed(code(ROLE + TOKEN), content_encoding=coding)
    assert stream is not None
    assert stream.kind is Kind.ANSWER
    error = both(400, code(MISTAKE), content_encoding=coding).error
    assert error is not None
    assert error.message == "bad stop"


UNREADABLE = {
    "no such data": ("gzip", b"hello"),
    "cut short": ("gzip", gzip.compress(b"x" * 5_000)[:-20]),
    "an unknown coding": ("compress", b"hello"),
    "two codings": ("gzip, br", b"hello"),
    "a bomb": ("gzip", gzip.compress(b"\n" * (4 << 20))),
}


@pytest.mark.parametrize(("coding", "body"), [pytest.param(*row, id=name) for name, row in UNREADABLE.items()])
def test_a_success_that_cant_be_decoded_moves_on(coding: str, body: bytes) -> None:
    verdict = whole(body=body, content_encoding=coding)
    assert (Kind.MOVE_ON, Reason.UNREADABLE) == (verdict.kind, verdict.reason)
    stream = streamed(body, content_encoding=coding)
    assert stream is not None
    cut = body == UNREADABLE["cut short"][1]  # what there is of it can be read
    assert (Kind.MOVE_ON, Reason.NO_TOKEN if cut else Reason.UNREADABLE) == (stream.kind, stream.reason)


@pytest.mark.parametrize(("coding", "body"), [pytest.param(*row, id=name) for name, row in UNREADABLE.items()])
@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [(400, Kind.FAIL, None), (429, Kind.MOVE_ON, Reason.RETRY_LATER), (500, Kind.MOVE_ON, Reason.STATUS)],
)
def test_a_failure_that_cant_be_decoded_goes_by_its_status(
    coding: str, body: bytes, status: int, kind: Kind, reason: Reason | None
) -> None:
    verdict = both(status, body, content_encoding=coding)
    assert (kind, reason, status) == (verdict.kind, verdict.reason, verdict.status)


def test_the_last_answer_that_is_none_fails_too() -> None:
    verdict = whole(body=b"<html>", planned=plan("first/one"))
    assert (Kind.FAIL, Reason.NOT_JSON) == (verdict.kind, verdict.reason)
    last = streamed(event(b"[DONE]"), planned=plan("first/one"))
    assert last is not None
    assert (Kind.FAIL, Reason.NO_TOKEN) == (last.kind, last.reason)


USAGE = b'"usage":{"prompt_tokens":3,"completion_tokens":1}'
WASTED: dict[str, tuple[bytes, Usage | None]] = {
    "an error beside its usage": (b'{"error":{"message":"no"},' + USAGE + b"}", Usage(prompt=3, completion=1)),
    "no choice, with usage": (b'{"choices":[],' + USAGE + b"}", Usage(prompt=3, completion=1)),
    "cut short": (GOOD[:40], Usage(prompt=9, completion=10, estimated=True)),
    "an error": (b'{"error":{"message":"no"}}', None),
    "no answer at all": (b"<html>", None),
    "usage that is none": (b'{"choices":[],"usage":[1],"message":7}', None),
}


@pytest.mark.parametrize(("body", "expected"), [pytest.param(*row, id=name) for name, row in WASTED.items()])
def test_what_a_failed_answer_used_stays_on_record(body: bytes, expected: Usage | None) -> None:
    for number in (1, 5):
        verdict = whole(
            body=body, planned=plan("first/one", "first/one", "first/two", "a/b", "a/c", prompt=9), number=number
        )
        assert verdict.past is not None
        assert expected == verdict.past.usage


def test_a_stream_that_was_dropped_before_its_first_token_leaves_what_it_used() -> None:
    told = event(chunk(usage={"prompt_tokens": 3, "completion_tokens": 1}))
    for end in (b"data: [DONE]\n\n", event(b'{"error":{"message":"no"}}')):
        verdict = streamed(ROLE + told + end)
        assert verdict is not None
        assert verdict.past is not None
        assert Usage(prompt=3, completion=1) == verdict.past.usage


def test_the_head_of_a_messages_stream_tells_what_its_prompt_used() -> None:
    planned = plan(attempt("first/one", format=Format.ANTHROPIC), endpoint=Endpoint.MESSAGES)
    head = b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":8}}}\n\n'
    verdict = streamed(head + b'event: error\ndata: {"type":"error"}\n\n', planned=planned)
    assert verdict is not None
    assert verdict.past is not None
    assert Usage(prompt=8, estimated=True) == verdict.past.usage


KIB = 1 << 10
HEADS_ALONE: dict[str, tuple[int, int | None, tuple[Kind, Reason] | None]] = {
    "an answer": (200, 70, None),
    "an answer without a length": (200, None, None),
    "an answer of the limit": (200, LIMIT, None),
    "an answer over it": (200, LIMIT + 1, (Kind.MOVE_ON, Reason.TOO_LARGE)),
    "a short failure": (500, 64 * KIB, None),
    "a long failure": (500, 64 * KIB + 1, (Kind.MOVE_ON, Reason.STATUS)),
    "a failure without a length": (503, None, (Kind.MOVE_ON, Reason.STATUS)),
    "too many requests, long": (429, LIMIT, (Kind.MOVE_ON, Reason.RETRY_LATER)),
    "denied without a length": (401, None, (Kind.MOVE_ON, Reason.DENIED)),
    "a 400 whose body must be read": (400, 70 * KIB, None),
    "a 400 without a length": (400, None, None),
}


@pytest.mark.parametrize(
    ("status", "length", "expected"), [pytest.param(*row, id=name) for name, row in HEADS_ALONE.items()]
)
def test_what_a_head_alone_decides(status: int, length: int | None, expected: tuple[Kind, Reason] | None) -> None:
    verdict = attempts.judge_head(TWO, 1, Answered(status=status, content_length=length), limit=LIMIT)
    assert expected == (verdict and (verdict.kind, verdict.reason))


def test_a_400_whose_body_is_over_the_limit_goes_back_without_its_words() -> None:
    verdict = attempts.judge_head(TWO, 1, Answered(status=400, content_length=LIMIT + 1), limit=LIMIT)
    assert verdict is not None
    assert isinstance(verdict.error, ProviderRefusal)


@given(st.integers(300, 599), st.integers(0, 5))
def test_a_head_decides_as_the_whole_answer_does(status: int, waited: int) -> None:
    answered = Answered(status=status, retry_after=waited)
    verdict = attempts.judge_head(TWO, 1, answered, limit=LIMIT)
    assert verdict is None or facts_of(verdict) == facts_of(whole(status, b"", retry_after=waited))


def test_an_attempt_leaves_nothing_behind() -> None:
    """A second stream of the same plan begins anew."""
    assert streamed(event(b'{"error":{}}'), event(b"[DONE]")) is not None
    again = streamed(TOKEN)
    assert again is not None
    assert again.kind is Kind.ANSWER


def test_what_is_held_stays_under_envoys_buffer() -> None:
    assert attempts.HELD <= 512 << 10
