"""Streamed requests from beginning to end, at explicit times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import chunk, event, plan
from zurelay import failure
from zurelay.chat_stream import ChatStream
from zurelay.errors import InvalidRequest, ModelUnavailable, ProviderRefusal, ZurelayError
from zurelay.families import TIME_PER_OUTPUT_CHUNK
from zurelay.model import Endpoint
from zurelay.plan import Plan
from zurelay.relay import Relay
from zurelay.relay_words import FAILURE, Outcome, Output, Times, early_headers
from zurelay.sse import DONE, KEEP_ALIVE, Decoder
from zurelay.usage import Usage

TIMES = Times(open_after=20.0, keepalive=15.0, total=570.0, idle=300.0)
SILENT = Times(open_after=None, keepalive=None, total=570.0, idle=300.0)
OPEN_AT = 20.0
LIMIT = 1 << 20
HEAD = {
    "x-zurelay-request-id": "req_1",
    "x-zurelay-model": "first",
    "x-zurelay-attempts": "2",
    "content-type": "text/event-stream",
    "server": "envoy",
}
END = event(b"[DONE]")
USED = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
LAST = event(json.dumps({"choices": [], "model": "gpt-x", "usage": USED}, separators=(",", ":")).encode())
TEXT = (
    event(chunk(delta={"role": "assistant", "content": ""})) + event(chunk("Hel")) + event(chunk("lo", finish="stop"))
)
MINE = TEXT.replace(b'"model":"gpt-x"', b'"model":"first"')


class Client:
    """What a client sees of one relay, and a clock that never skips a deadline."""

    def __init__(self, relay: Relay, now: float = 0.0) -> None:
        self.relay = relay
        self.now = now
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.data = b""
        self.sent: list[tuple[float, bytes]] = []
        self.ended = False

    def take(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            assert not self.ended, "something follows the end"
            if output.status is not None:
                assert self.status is None, "two heads"
                self.status, self.headers = output.status, output.headers
            assert self.status is not None, "bytes before the head"
            self.data += output.data
            self.sent.append((self.now, output.data))
            self.ended = output.end
        assert self.ended is (self.relay.outcome is not Outcome.UNDER_WAY)

    def until(self, when: float) -> Client:
        """Let time pass, ticking whenever it is due."""
        while not self.ended and self.relay.deadline <= when:
            self.now = max(self.now, self.relay.deadline)
            self.take(self.relay.tick(self.now))
            over = self.relay.outcome is not Outcome.UNDER_WAY
            assert over or self.relay.deadline > self.now, "due again at once"
        self.now = max(self.now, when)
        return self

    def head(self, when: float, status: int = 200, **headers: str) -> Client:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        self.until(when).take(self.relay.head(status, HEAD | told if status == 200 else told, when))
        return self

    def body(self, when: float, data: bytes) -> Client:
        self.until(when).take(self.relay.body(data, when))
        return self

    def end(self, when: float, *, clean: bool = True) -> Client:
        self.until(when).take(self.relay.end(when, clean=clean))
        return self

    def failed(self, when: float, error: ZurelayError, attempts: str = "3") -> Client:
        """Every attempt failed, and the last one told why."""
        return self.head(
            when, error.status, **{FAILURE: failure.encode(error), "x-zurelay-attempts": attempts, "server": "envoy"}
        )

    @property
    def keepalives(self) -> list[float]:
        return [when for when, data in self.sent if data == KEEP_ALIVE]

    @property
    def error(self) -> dict[str, Any]:
        """The error that the stream ends with."""
        last = Decoder(LIMIT).feed(self.data)[-1].data if self.status == 200 else self.data
        found: dict[str, Any] = json.loads(last or b"")["error"]
        return found


def client(
    planned: Plan | None = None,
    times: Times = TIMES,
    *,
    ask: bool = False,
    choices: int = 1,
    limit: int = LIMIT,
    prompt: Callable[[], int] = lambda: 7,
    began: float = 0.0,
) -> Client:
    made = Relay(
        planned or plan("first/one", "first/one", "second/one"),
        times,
        began,
        heartbeat=KEEP_ALIVE,
        make_stream=lambda head: ChatStream(head["x-zurelay-model"], ask_usage=ask, choices=choices),
        estimate_prompt=prompt,
        limit=limit,
    )
    return Client(made, began)


def test_a_stream_goes_through() -> None:
    seen = client().head(1.0).body(1.0, TEXT).body(1.5, LAST + END).end(1.6)
    assert (200, MINE + DONE, True, Outcome.ANSWERED) == (seen.status, seen.data, seen.ended, seen.relay.outcome)
    assert {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "x-zurelay-request-id": "req_1",
        "x-zurelay-model": "first",
        "x-zurelay-attempts": "2",
    } == seen.headers
    assert (Usage(prompt=9, completion=2), ("stop",), 0) == (
        seen.relay.usage,
        seen.relay.finish_reasons,
        seen.relay.kept_alive,
    )


def test_each_piece_goes_at_once() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a"))).body(2.0, event(chunk("b")))
    assert [1.0, 2.0] == [when for when, _ in seen.sent]
    assert not seen.ended


def test_the_model_is_that_of_the_attempt_that_answers() -> None:
    seen = client().head(1.0, x_zurelay_model="second", x_zurelay_routed_from="first").body(1.0, TEXT + END)
    assert b'"model":"second"' in seen.data
    assert ("second", "first") == (seen.headers["x-zurelay-model"], seen.headers["x-zurelay-routed-from"])


def test_nothing_is_sent_before_the_answer_begins() -> None:
    seen = client().until(19.9).head(19.9)
    assert (None, []) == (seen.status, seen.sent)


def test_the_stream_opens_at_20_s_with_a_keep_alive_at_once_then_each_15_s() -> None:
    seen = client().until(66.0)
    assert [20.0, 35.0, 50.0, 65.0] == seen.keepalives
    assert (200, KEEP_ALIVE * 4, 4) == (seen.status, seen.data, seen.relay.kept_alive)
    seen.head(70.0).body(70.0, TEXT + END)
    assert KEEP_ALIVE * 4 + MINE + DONE == seen.data
    assert Outcome.ANSWERED is seen.relay.outcome


def test_a_keep_alive_is_due_after_15_s_of_silence_only() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a"))).body(10.0, event(chunk("b"))).until(24.9)
    assert [] == seen.keepalives
    seen.until(41.0).body(41.0, event(chunk("c"))).until(55.9)
    assert [25.0, 40.0] == seen.keepalives


def test_what_we_drop_is_silence_to_the_client() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a")))
    for when in range(2, 20):
        seen.body(float(when), b": PROCESSING\n\n")
    assert [16.0] == seen.keepalives
    assert b"PROCESSING" not in seen.data


def test_none_after_the_end() -> None:
    seen = client().head(1.0).body(1.0, TEXT + END)
    for when in (2.0, 20.0, 400.0, 600.0):
        seen.take(seen.relay.tick(when))
        seen.take(seen.relay.body(event(chunk("more")), when))
        seen.take(seen.relay.head(200, HEAD, when))
        seen.take(seen.relay.end(when, clean=True))
    assert MINE + DONE == seen.data


def test_the_switch_turns_keep_alives_and_early_opening_off() -> None:
    assert client(times=SILENT).until(500.0).status is None
    seen = client(times=SILENT).head(500.0).body(500.0, event(chunk("a"))).until(790.0)
    assert ([], 200) == (seen.keepalives, seen.status)


def test_the_switch_leaves_no_comment_anywhere() -> None:
    noisy = b": hm\n\n" + TEXT + b": hm\n\n" + END + b": hm\n\n"
    assert MINE + DONE == client(times=SILENT).head(1.0).body(1.0, noisy).data


def test_time_counts_from_the_requests_last_byte() -> None:
    seen = client(began=1_000.0).until(1_036.0)
    assert [1_020.0, 1_035.0] == seen.keepalives


def test_a_tick_before_its_time_does_nothing() -> None:
    assert [] == client().relay.tick(19.9)
    assert [] == client().until(20.0).relay.tick(34.9)
    assert [] == client().head(1.0).body(1.0, event(chunk("a"))).relay.tick(15.9)


def test_a_late_tick_opens_late() -> None:
    made = client()
    made.now = 44.0
    made.take(made.relay.tick(44.0))
    made.until(60.0)
    assert [44.0, 59.0] == made.keepalives


def test_a_stream_whose_head_is_known_opens_with_it() -> None:
    seen = client().head(19.0, x_zurelay_model="second").until(20.0)
    assert ("second", "2", KEEP_ALIVE) == (
        seen.headers["x-zurelay-model"],
        seen.headers["x-zurelay-attempts"],
        seen.data,
    )


@pytest.mark.parametrize("planned", [plan("first/one", "first/two"), plan("first/one", "second/one", asked="auto")])
def test_a_stream_that_opens_early_has_the_early_headers(planned: Plan) -> None:
    assert early_headers(planned) == client(planned).until(20.0).headers


FAILURES: dict[str, ZurelayError] = {
    "every attempt failed": ModelUnavailable("All failed.", retry_after=9, should_retry=False),
    "too long": InvalidRequest("Too long.", code="context_length_exceeded", param="messages"),
    "the client's mistake": ProviderRefusal("bad stop", status=422, code="odd", param="stop"),
}


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in FAILURES.items()])
def test_a_failure_before_opening_has_its_own_status(error: ZurelayError) -> None:
    seen = client().failed(5.0, error)
    assert (error.status, True, Outcome.REFUSED) == (seen.status, seen.ended, seen.relay.outcome)
    assert {"message": error.message, "type": error.type, "param": error.param, "code": error.code} == seen.error
    assert {
        "content-type": "application/json",
        "x-zurelay-request-id": "req_1",
        "x-zurelay-attempts": "3",
        **error.headers(),
    } == seen.headers


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in FAILURES.items()])
def test_a_failure_after_opening_is_one_event_of_the_same_shape(error: ZurelayError) -> None:
    seen = client().until(30.0).failed(36.0, error)
    assert (200, True, Outcome.BROKEN) == (seen.status, seen.ended, seen.relay.outcome)
    assert {"message": error.message, "type": error.type, "param": error.param, "code": error.code} == seen.error
    assert seen.data.startswith(KEEP_ALIVE * 2 + b"data: {")
    assert b"[DONE]" not in seen.data
    assert seen.data.count(b"data:") == 1


def test_a_failure_in_messages_shape_is_messages_shape() -> None:
    seen = client(plan(endpoint=Endpoint.MESSAGES)).failed(1.0, ModelUnavailable("All failed."))
    body = json.loads(seen.data)
    assert ("error", "overloaded_error", "req_1") == (body["type"], body["error"]["type"], body["request_id"])


LOCAL: dict[str, tuple[int, dict[str, str], int, str]] = {
    "Envoy's own answer": (503, {"retry-after": "17", "x-zurelay-attempts": "4"}, 503, "model_unavailable"),
    "our own listener refuses": (503, {}, 503, "gateway_unavailable"),
    "Envoy's timeout": (504, {"x-zurelay-attempts": "2"}, 503, "model_unavailable"),
}


@pytest.mark.parametrize(
    ("status", "headers", "expected", "code"), [pytest.param(*row, id=name) for name, row in LOCAL.items()]
)
def test_an_answer_that_no_attempt_gave_is_a_failure(
    status: int, headers: dict[str, str], expected: int, code: str
) -> None:
    seen = client().head(5.0, status, **headers)
    assert (expected, code) == (seen.status, seen.error["code"])
    assert headers.get("retry-after", "5") == seen.headers["retry-after"]
    assert headers.get("x-zurelay-attempts") == seen.headers.get("x-zurelay-attempts")


def test_a_success_that_no_attempt_gave_is_a_failure() -> None:
    for status, headers in ((200, {"content-type": "text/html"}), (300, HEAD), (302, HEAD)):
        seen = client()
        seen.take(seen.relay.head(status, headers, 1.0))
        assert (503, Outcome.REFUSED) == (seen.status, seen.relay.outcome)


def test_no_answer_in_time_is_503() -> None:
    assert client(times=SILENT).until(569.9).status is None
    seen = client(times=SILENT).until(570.0)
    assert (503, "model_unavailable", "false", "5") == (
        seen.status,
        seen.error["code"],
        seen.headers["x-should-retry"],
        seen.headers["retry-after"],
    )


def test_no_answer_in_time_ends_a_stream_that_is_open() -> None:
    seen = client().until(600.0)
    assert (200, Outcome.BROKEN) == (seen.status, seen.relay.outcome)
    assert [20.0 + 15.0 * count for count in range(37)] == seen.keepalives
    assert seen.sent[-1][0] == 570.0


def test_an_answer_that_began_has_no_total() -> None:
    seen = client().head(569.0)
    for when in range(569, 2_000, 10):
        seen.body(float(when), event(chunk("a")))
    assert not seen.ended


def test_a_stalled_stream_ends_in_an_error() -> None:
    seen = client().head(1.0).body(2.0, event(chunk("a"))).until(301.9)
    assert not seen.ended
    seen.until(302.0)
    assert (Outcome.BROKEN, "model_unavailable") == (seen.relay.outcome, seen.error["code"])
    assert [17.0 + 15.0 * count for count in range(19)] == seen.keepalives
    assert b"[DONE]" not in seen.data


def test_any_byte_ends_a_stall() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a"))).body(299.0, b":").until(598.0)
    assert not seen.ended
    assert seen.until(599.0).ended


def test_a_stall_before_any_content_has_a_status() -> None:
    seen = client(times=SILENT).head(1.0).until(301.0)
    assert (503, Outcome.REFUSED, "2", "5") == (
        seen.status,
        seen.relay.outcome,
        seen.headers["x-zurelay-attempts"],
        seen.headers["retry-after"],
    )


def test_a_provider_lost_before_its_answer_is_503() -> None:
    seen = client().end(3.0, clean=False)
    assert (503, Outcome.REFUSED) == (seen.status, seen.relay.outcome)
    opened = client().end(30.0, clean=False)
    assert (200, Outcome.BROKEN) == (opened.status, opened.relay.outcome)


ERROR = event(b'{"error":{"message":"overloaded","code":529}}')
BROKEN: dict[str, tuple[bytes, bool]] = {
    "the provider's error": (ERROR, True),
    "the provider's error, then its end": (ERROR + END, True),
    "an error by the event's name": (b"event: error\ndata: {}\n\n", True),
    "data that is no JSON": (event(b"hello"), True),
    "the end of the connection": (b"", False),
    "a clean end without a finish": (b"", True),
    "a cut within an event": (b'data: {"choices":[{"delta":', True),
    "a cut within a character": (event(chunk("안"))[:-12], True),
    "an end cut short, no finish": (b"data: [DO", True),
    "the provider's error without its blank line": (ERROR[:-2], True),
    "the provider's error, then the end of the connection": (ERROR[:-1], False),
}


@pytest.mark.parametrize(("rest", "clean"), [pytest.param(*row, id=name) for name, row in BROKEN.items()])
def test_a_stream_that_goes_wrong_ends_in_one_error_event(rest: bytes, *, clean: bool) -> None:
    begun = event(chunk("Hel"))
    seen = client(ask=True).head(1.0).body(1.0, begun + rest).end(2.0, clean=clean)
    assert (200, Outcome.BROKEN, True) == (seen.status, seen.relay.outcome, seen.ended)
    content, _, error = seen.data.partition(b'data: {"error"')
    assert begun.replace(b"gpt-x", b"first") == content
    assert error.endswith(b"\n\n")
    assert b"data:" not in error
    assert ("model_unavailable", "server_error") == (seen.error["code"], seen.error["type"])


def test_the_providers_words_are_in_the_error() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("Hel")) + ERROR)
    assert "overloaded" in seen.error["message"]


def test_a_stream_that_goes_wrong_before_any_content_has_a_status() -> None:
    seen = client().head(1.0).body(1.0, ERROR)
    assert (503, Outcome.REFUSED, "2") == (seen.status, seen.relay.outcome, seen.headers["x-zurelay-attempts"])


WHOLE: dict[str, tuple[int, bytes, bytes, bool]] = {
    "with its end": (1, TEXT + LAST + END, MINE + DONE, True),
    "with its end, then cut": (1, TEXT + END, MINE + DONE, False),
    "without its end": (1, TEXT, MINE + DONE, True),
    "without its end and its usage": (1, TEXT + LAST, MINE + DONE, True),
    "without its end, cut": (1, TEXT, MINE + DONE, False),
    "without its last blank line": (1, TEXT[:-2], MINE + DONE, True),
    "without half of its last blank line": (1, TEXT[:-1], MINE + DONE, True),
    "its end without a blank line": (1, TEXT + END[:-2], MINE + DONE, True),
    "its end cut short": (1, TEXT + END[:-6], MINE + DONE, True),
    "its usage cut short": (1, TEXT + LAST[:-9], MINE + DONE, True),
    "something behind its end": (1, TEXT + END + event(chunk("x")) + b"hello", MINE + DONE, True),
    "two choices": (
        2,
        TEXT + event(chunk("b", index=1, finish="length")),
        MINE + event(chunk("b", index=1, finish="length", model="first")) + DONE,
        True,
    ),
}


@pytest.mark.parametrize(
    ("choices", "sent", "expected", "clean"), [pytest.param(*row, id=name) for name, row in WHOLE.items()]
)
def test_a_stream_whose_every_choice_finished_is_whole(
    choices: int, sent: bytes, expected: bytes, *, clean: bool
) -> None:
    seen = client(choices=choices).head(1.0).body(1.0, sent).end(1.0, clean=clean)
    assert (Outcome.ANSWERED, expected) == (seen.relay.outcome, seen.data)


def test_a_stream_with_one_choice_open_is_cut() -> None:
    seen = client(choices=2).head(1.0).body(1.0, TEXT + event(chunk("b", index=1))).end(1.0)
    assert seen.relay.outcome is Outcome.BROKEN
    alone = client(choices=2).head(1.0).body(1.0, TEXT).end(1.0)
    assert alone.relay.outcome is Outcome.BROKEN


def test_a_cut_within_an_event_is_a_cut_when_the_connection_broke() -> None:
    seen = client().head(1.0).body(1.0, TEXT + LAST[:-9]).end(1.0, clean=False)
    assert seen.relay.outcome is Outcome.BROKEN


USAGE = {
    "reported": TEXT + LAST + END,
    "reported, without the end": TEXT + LAST,
    "reported, its blank line missing": TEXT + LAST[:-2],
    "reported in the last chunk": TEXT.replace(b'"stop"}]}', b'"stop"}],"usage":' + json.dumps(USED).encode() + b"}")
    + END,
}


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in USAGE.items()])
def test_usage_comes_once_before_the_end_where_it_is_wanted(sent: bytes) -> None:
    seen = client(ask=True).head(1.0).body(1.0, sent).end(1.0)
    events = Decoder(LIMIT).feed(seen.data)
    assert DONE == events[-1].raw
    last = json.loads(events[-2].data or b"")
    assert ([], USED, "first") == (last["choices"], last["usage"], last["model"])
    assert seen.data.count(b'"usage"') == 1
    assert MINE == b"".join(each.raw for each in events[:-2])


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in USAGE.items()])
def test_usage_comes_never_where_it_isnt_wanted(sent: bytes) -> None:
    seen = client().head(1.0).body(1.0, sent).end(1.0)
    assert MINE + DONE == seen.data
    assert Usage(prompt=9, completion=2) == seen.relay.usage


@pytest.mark.parametrize("sent", [TEXT + END, TEXT])
def test_usage_that_nobody_reports_is_an_estimate(sent: bytes) -> None:
    seen = client(ask=True).head(1.0).body(1.0, sent).end(1.0)
    last = json.loads(Decoder(LIMIT).feed(seen.data)[-2].data or b"")
    assert ([], 7, 2, 9) == (
        last["choices"],
        last["usage"]["prompt_tokens"],
        last["usage"]["completion_tokens"],
        last["usage"]["total_tokens"],
    )
    assert Usage(prompt=7, completion=2, estimated=True) == seen.relay.usage


def test_a_client_that_leaves_is_accounted_for() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("12345678")))
    assert Outcome.UNDER_WAY is seen.relay.outcome
    assert Usage(prompt=7, completion=2, estimated=True) == seen.relay.usage
    assert client().relay.usage is None
    assert client().relay.finish_reasons == ()


def test_the_prompt_is_not_counted_where_usage_is_reported() -> None:
    counted: list[int] = []

    def prompt() -> int:
        counted.append(1)
        return 7

    seen = client(ask=True, prompt=prompt).head(1.0).body(1.0, TEXT + LAST + END)
    assert (Usage(prompt=9, completion=2), []) == (seen.relay.usage, counted)


def test_what_a_client_may_not_have_read_is_bounded() -> None:
    seen = client(limit=4_000).head(1.0)
    for when in range(2, 200):
        if not seen.ended:
            seen.body(float(when), event(chunk("x" * 100)))
    assert seen.relay.outcome is Outcome.BROKEN
    assert len(seen.data) < 4_000 + 500
    assert "larger than the 4000 bytes" in seen.error["message"]


@pytest.mark.parametrize(("spare", "expected"), [(0, Outcome.ANSWERED), (-1, Outcome.BROKEN)])
def test_a_stream_of_the_bound_passes_and_one_byte_more_does_not(spare: int, expected: Outcome) -> None:
    seen = client(limit=len(MINE + DONE) + spare).head(1.0).body(1.0, TEXT).body(1.0, END)
    assert expected is seen.relay.outcome


def test_a_compressed_stream_is_read() -> None:
    coded = gzip.compress(TEXT + LAST + END)
    seen = client().head(1.0, content_encoding="gzip")
    for place in range(len(coded)):
        if not seen.ended:
            seen.body(1.0, coded[place : place + 1])
    assert MINE + DONE == seen.data


def test_a_compressed_stream_that_isnt_is_broken() -> None:
    for coding in ("gzip", "compress", "gzip, br"):
        seen = client().head(1.0, content_encoding=coding)
        if not seen.ended:
            seen.body(1.0, b"hello")
        assert (503, Outcome.REFUSED) == (seen.status, seen.relay.outcome)


def test_a_bomb_is_stopped() -> None:
    bomb = gzip.compress(b": " + b"x" * (8 << 20) + b"\n\n")
    seen = client().head(1.0, content_encoding="gzip").body(1.0, bomb)
    assert (503, Outcome.REFUSED) == (seen.status, seen.relay.outcome)


def test_an_event_without_end_is_stopped() -> None:
    seen = client(limit=64 << 20).head(1.0).body(1.0, event(chunk("a")))
    piece = b"x" * (1 << 20)
    fed = 0
    while not seen.ended:
        seen.body(2.0, piece)
        fed += len(piece)
        assert fed < 32 << 20
    assert seen.relay.outcome is Outcome.BROKEN


def test_an_event_without_end_behind_others_is_stopped() -> None:
    seen = client(limit=64 << 20).head(1.0).body(1.0, event(chunk("a")) + b"data: " + b"x" * (17 << 20))
    assert Outcome.UNDER_WAY is seen.relay.outcome
    assert Outcome.BROKEN is seen.end(2.0).relay.outcome


def test_bytes_before_the_head_say_nothing() -> None:
    seen = client().body(1.0, TEXT).head(2.0).body(2.0, TEXT + END)
    assert MINE + DONE == seen.data


def test_a_second_head_says_nothing() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a"))).head(2.0, x_zurelay_model="second").head(3.0, 503)
    seen.body(4.0, event(chunk("b", finish="stop")) + END)
    assert b"second" not in seen.data
    assert Outcome.ANSWERED is seen.relay.outcome


def test_a_late_head_finds_the_request_ended() -> None:
    seen = client(times=SILENT).until(570.0)
    seen.take(seen.relay.head(200, HEAD, 571.0))
    seen.take(seen.relay.body(TEXT, 571.0))
    assert seen.status == 503


STREAMS: dict[str, bytes] = {
    "plain": TEXT + LAST + END,
    "in many writings": event(chunk("안녕하세요 ✅ \u2028\u0085 \U0001f469\u200d\U0001f4bb", finish="stop"))
    + LAST
    + END,
    "CR LF": (TEXT + LAST + END).replace(b"\n", b"\r\n"),
    "CR": (TEXT + LAST + END).replace(b"\n", b"\r"),
    "no spaces": (TEXT + LAST + END).replace(b"data: ", b"data:"),
    "comments and names": b": hm\n\n"
    + TEXT.replace(b"data: ", b"event: message\n: hm\ndata: ")
    + b":\n\n"
    + LAST
    + END,
    "a byte order mark": b"\xef\xbb\xbf" + TEXT + END,
    "reasoning": event(chunk(delta={"reasoning": "hm ✅"})) + TEXT + LAST + END,
    "usage within": TEXT.replace(b"}}]}", b'}}],"usage":{"prompt_tokens":1}}') + END,
    "no end": TEXT + LAST,
    "no last blank line": TEXT[:-2],
    "cut": TEXT[:-20],
    "an error within": event(chunk("Hel")) + ERROR + END,
    "an error at once": ERROR,
    "no JSON within": event(chunk("Hel")) + event(b"hello") + END,
    "nothing": b"",
}


def outcome(pieces: Iterable[bytes], *, ask: bool, clean: bool) -> tuple[Any, ...]:
    seen = client(ask=ask).head(1.0)
    for piece in pieces:
        seen.body(1.0, piece)
    seen.end(1.0, clean=clean)
    return (seen.status, seen.headers, seen.data, seen.relay.outcome, seen.relay.usage, seen.relay.finish_reasons)


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize("stream", [pytest.param(stream, id=name) for name, stream in STREAMS.items()])
def test_a_stream_is_the_same_cut_in_two_at_every_byte(stream: bytes, *, ask: bool) -> None:
    whole = outcome([stream], ask=ask, clean=True)
    for place in range(len(stream) + 1):
        assert whole == outcome([stream[:place], stream[place:]], ask=ask, clean=True)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("stream", [pytest.param(stream, id=name) for name, stream in STREAMS.items()])
def test_a_stream_is_the_same_byte_by_byte(stream: bytes, *, clean: bool) -> None:
    pieces = [stream[place : place + 1] for place in range(len(stream))]
    assert outcome([stream], ask=True, clean=clean) == outcome(pieces, ask=True, clean=clean)


@given(
    st.sampled_from(list(STREAMS.values())), st.lists(st.integers(0, 2_000), max_size=8), st.booleans(), st.booleans()
)
def test_a_stream_is_the_same_however_it_is_cut(stream: bytes, places: list[int], ask: bool, clean: bool) -> None:
    cuts = sorted(min(place, len(stream)) for place in places)
    pieces = [stream[one:two] for one, two in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert outcome([stream], ask=ask, clean=clean) == outcome(pieces, ask=ask, clean=clean)


STEPS = st.lists(
    st.tuples(
        st.floats(0.0, 60.0),
        st.sampled_from(["head", "refusal", "token", "half", "rest", "comment", "error", "done", "end", "cut", "wait"]),
    ),
    max_size=30,
)
TOKEN = event(chunk("a"))
BYTES = {"token": TOKEN, "half": TOKEN[:9], "rest": TOKEN[9:], "comment": b": hm\n\n", "error": ERROR, "done": END}


@given(STEPS, st.sampled_from([TIMES, SILENT, Times(open_after=1.0, keepalive=1.0, total=30.0, idle=10.0)]))
def test_whatever_happens_there_is_one_head_one_end_and_a_next_deadline(
    steps: list[tuple[float, str]], times: Times
) -> None:
    """`Client` holds the laws: one head, nothing before it, nothing after the end, no deadline in the past."""
    seen = client(times=times)
    for later, what in steps:
        when = seen.now + later
        if what == "head":
            seen.head(when)
        elif what == "refusal":
            seen.failed(when, ModelUnavailable("All failed."))
        elif what in BYTES:
            seen.body(when, BYTES[what])
        elif what in ("end", "cut"):
            seen.end(when, clean=what == "end")
        else:
            seen.until(when)
    seen.until(seen.now + 10_000.0)
    assert seen.ended
    assert b"[DONE]" not in seen.data.removesuffix(DONE)
    if seen.status == 200:
        assert seen.data.endswith(DONE) is (seen.relay.outcome is Outcome.ANSWERED)
        assert [True] * len(Decoder(LIMIT).feed(seen.data)) == [each.whole for each in Decoder(LIMIT).feed(seen.data)]


@given(st.lists(st.integers(0, 100), max_size=40))
def test_silence_is_filled_every_15_s_and_nothing_else_is(gaps: list[int]) -> None:
    seen = client().head(1.0).body(1.0, TOKEN)
    expected: list[float] = []
    for gap in gaps:
        expected += [seen.now + 15.0 * count for count in range(1, gap // 15 + 1)]
        seen.body(seen.now + gap, TOKEN)
    assert expected == seen.keepalives


def test_the_pace_is_that_of_chunks_not_of_reads() -> None:
    seen = client().head(1.0).body(1.0, event(chunk("a")))
    seen.body(2.0, event(chunk("b")) + event(chunk("c"))).body(2.1, b": x")
    *counts, total = seen.relay.gaps
    half_a_second = next(place for place, bound in enumerate(TIME_PER_OUTPUT_CHUNK.bounds) if bound >= 0.5)
    assert {half_a_second: 2.0} == {place: count for place, count in enumerate(counts) if count}
    assert 1.0 == total


def test_the_first_chunk_has_no_pace() -> None:
    assert () == client().head(1.0).relay.gaps
    assert 0 == sum(client().head(1.0).body(5.0, event(chunk("a"))).relay.gaps)


def test_the_providers_name_of_the_model_is_kept() -> None:
    assert "gpt-x" == client().head(1.0).body(1.0, TEXT).relay.named
    nameless = event(b'{"choices":[{"index":0,"delta":{"content":"a"}}]}')
    seen = client().head(1.0)
    for _ in range(4):
        seen.body(1.0, nameless)
    assert "" == seen.body(1.0, TEXT).relay.named  # it isn't looked for without end


def test_an_answer_flows_from_its_head_on() -> None:
    seen = client()
    assert not seen.relay.flowing
    assert seen.head(1.0).relay.flowing


def test_what_attempts_tell_us_alone_reaches_no_client() -> None:
    seen = client().head(1.0, x_zurelay_route="first/one", x_zurelay_past="[]", x_zurelay_began="5").body(1.0, TEXT)
    assert {"x-zurelay-route", "x-zurelay-past", "x-zurelay-began"}.isdisjoint(seen.headers)
