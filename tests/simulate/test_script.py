import gzip
from types import ModuleType

import msgspec
import pytest

from simulate.helpers import answer, body_of, events_of, head_of
from zurelay.simulate import anthropic, faults, openai, script
from zurelay.simulate.actions import Action, Close, End, Hang, Head, Pause, Reset, Send
from zurelay.simulate.faults import Fault
from zurelay.simulate.nouns import Refusal

BOTH = pytest.mark.parametrize("dialect", [openai, anthropic], ids=["chat", "messages"])


def play(dialect: ModuleType, spec: str, *, stream: bool = False) -> list[Action]:
    fault = faults.parse(spec)
    return list(script.answered(answer(), fault, dialect, stream=stream, pause=0))


def kind_of(played: list[Action]) -> str:
    return dict(head_of(played).headers)["content-type"]


BEFORE: dict[str, list[Action]] = {
    "ok": [],
    "slow-head:2": [Pause(2)],
    "hang": [Hang()],
    "reset": [Reset()],
    "slow-head:2+close": [Pause(2), Close()],
}


@pytest.mark.parametrize("spec", BEFORE)
def test_some_faults_come_before_any_answer(spec: str) -> None:
    assert BEFORE[spec] == list(script.before(faults.parse(spec)))


REFUSALS = {
    "ok": None,
    "status:503": Refusal(503, "A simulated error of status 503."),
    "status:429+code:insufficient_quota": Refusal(429, "A simulated error of status 429.", "insufficient_quota"),
    "context-length": openai.too_long(70),
    "refuse:stop": None,
    "refuse:max_tokens": Refusal(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        param="max_tokens",
    ),
}


@pytest.mark.parametrize("spec", REFUSALS)
def test_some_faults_are_errors(spec: str) -> None:
    assert REFUSALS[spec] == script.refusal(faults.parse(spec), openai, 70, {"model", "max_tokens"})


@BOTH
def test_an_error_is_answered_in_the_dialects_shape(dialect: ModuleType) -> None:
    refusal = Refusal(418, "no")
    played = list(script.refused(refusal, Fault(), dialect))
    body = dialect.refuse(refusal)
    assert [Head(418, (("content-type", "application/json"),), len(body)), Send(body), End()] == played


def test_an_error_may_say_when_to_come_back() -> None:
    played = list(script.refused(Refusal(429, "no"), faults.parse("retry-after:7+retry-after-date:9"), openai))
    assert (head_of(played).headers[-1], head_of(played).retry_at) == (("retry-after", "7"), 9)


def test_plain_json_is_answered_with_its_length() -> None:
    head = Head(200, (("content-type", "application/json"),), 2)
    assert [head, Send(b"{}"), End()] == list(script.plain(b"{}", Fault()))


ALL = len(openai.whole(answer()))
HALF = ALL // 2
WHOLE: dict[str, tuple[int, int, list[Action]]] = {  # the length told, the length that comes, and what else happens
    "ok": (ALL, ALL, [End()]),
    "cut:1": (HALF, HALF, [End()]),
    "cut-json": (HALF, HALF, [End()]),
    "short-body": (ALL + 100, ALL, [Pause(0.05), Close()]),
    "abort:1": (ALL, HALF, [Pause(0.05), Reset()]),
    "stall-after:1": (ALL, HALF, [Hang()]),
    "stall": (ALL, 0, [Hang()]),
    "reset-after-head": (ALL, 0, [Pause(0.05), Reset()]),
    "slow-body:3": (ALL, ALL, [Pause(3), End()]),
    "no-done": (ALL, ALL, [End()]),
    "gap:1": (ALL, ALL, [End()]),
    "empty-stream": (0, 0, [End()]),
}


@pytest.mark.parametrize("spec", WHOLE)
def test_an_answer_that_isnt_streamed_breaks_in_its_own_way(spec: str) -> None:
    told, came, expected = WHOLE[spec]
    played = play(openai, spec)
    rest = [action for action in played[1:] if not isinstance(action, Send)]
    assert (told, openai.whole(answer())[:came], expected) == (head_of(played).length, body_of(played), rest)


ERRORS = {
    "error-200": (True, True),
    "first-error": (True, False),
    "role-then-error": (True, False),
    "late-error:2": (True, False),
}


@pytest.mark.parametrize("spec", ERRORS)
@BOTH
def test_an_error_under_200_is_json_where_no_stream_was_asked(spec: str, dialect: ModuleType) -> None:
    found = tuple(kind_of(play(dialect, spec, stream=stream)) == "application/json" for stream in (False, True))
    body = msgspec.json.decode(body_of(play(dialect, f"{spec}+error:429")))
    expected = msgspec.json.decode(dialect.refuse(Refusal(429, "A simulated error.")))
    assert (ERRORS[spec], expected) == (found, body)


KINDS = {
    "ok": ("application/json", "text/event-stream; charset=utf-8"),
    "json-for-stream": ("application/json", "application/json"),
    "sse-for-json": ("text/event-stream; charset=utf-8", "text/event-stream; charset=utf-8"),
    "html": ("text/html; charset=utf-8", "text/html; charset=utf-8"),
    "not-json": ("application/json", "text/event-stream"),
    "wrong-type": ("text/plain", "text/plain"),
}


@pytest.mark.parametrize("spec", KINDS)
def test_the_content_type_is_as_asked(spec: str) -> None:
    assert KINDS[spec] == tuple(kind_of(play(openai, spec, stream=stream)) for stream in (False, True))


@pytest.mark.parametrize("spec", ["html", "not-json"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_json_is_no_stream_either(spec: str, stream: bool) -> None:
    body = body_of(play(openai, spec, stream=stream))
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(body)
    assert b"data:" not in body


@BOTH
def test_the_other_way_of_answering_has_the_same_answer(dialect: ModuleType) -> None:
    whole, stream = play(dialect, "json-for-stream", stream=True), play(dialect, "sse-for-json")
    expected = (dialect.whole(answer()), [event.data.decode() for event in dialect.events(answer())])
    assert expected == (body_of(whole), [data for _, data in events_of(body_of(stream))])


@BOTH
def test_a_zipped_answer_has_the_length_of_what_comes(dialect: ModuleType) -> None:
    played = play(dialect, "gzip")
    body = body_of(played)
    expected = (dialect.whole(answer()), ("content-encoding", "gzip"), len(body))
    assert expected == (gzip.decompress(body), head_of(played).headers[-1], head_of(played).length)


def test_a_split_answer_is_the_same_in_single_bytes() -> None:
    sent = [action.data for action in play(openai, "split") if isinstance(action, Send)]
    assert (openai.whole(answer()), {1}) == (b"".join(sent), {len(data) for data in sent})
