import gzip
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulate.helpers import answer, body_of, events_of, head_of
from zurelay.simulate import anthropic, faults, openai, streams
from zurelay.simulate.actions import Action, Hang, Pause, Reset, Send
from zurelay.simulate.nouns import Event, Kind

BOTH = pytest.mark.parametrize("dialect", [openai, anthropic], ids=["chat", "messages"])


def play(dialect: ModuleType, spec: str = "ok", pause: float = 0) -> list[Action]:
    """Play a stream of three tokens up to where it ends."""
    played: list[Action] = []
    for action in streams.streamed(answer(), faults.parse(spec), dialect, pause):
        played.append(action)
        if type(action).__name__ in {"End", "Close", "Reset", "Hang"}:
            break
    return played


def shape(dialect: ModuleType, spec: str) -> str:
    """Name each event by a letter and the end by its word: a start, tokens, finish, end, or error."""
    played = play(dialect, spec)
    known = {event.data.decode(): event.kind.name[0] for event in dialect.events(answer())}
    letters = "".join(known.get(data, "!") for _, data in events_of(body_of(played)))
    return f"{letters} {type(played[-1]).__name__}"


SHAPES = {
    "ok": ("ATTTFE End", "AAATTTAFE End"),
    "first-error": ("! End", "! End"),
    "first-error+error-done": ("!E End", None),
    "role-then-error": ("A! End", "AAA! End"),
    "late-error:0": ("A! End", "AAA! End"),
    "late-error:2": ("ATT! End", "AAATT! End"),
    "late-error:9": ("ATTT! End", "AAATTTA! End"),
    "cut:0": ("A End", "AAA End"),
    "cut:1": ("AT End", "AAAT End"),
    "cut:9": ("ATTT End", "AAATTTA End"),
    "abort:2": ("ATT Reset", "AAATT Reset"),
    "stall-after:2": ("ATT Hang", "AAATT Hang"),
    "empty-stream": ("E End", " End"),
    "no-done": ("ATTTF End", "AAATTTAF End"),
    "cut-json": ("A! End", "AAA! End"),
    "short-body": ("ATTTFE Close", "AAATTTAFE Close"),
    "stall": (" Hang", " Hang"),
    "reset-after-head": (" Reset", " Reset"),
}


@pytest.mark.parametrize("spec", SHAPES)
def test_a_chat_stream_breaks_where_the_fault_says(spec: str) -> None:
    assert SHAPES[spec][0] == shape(openai, spec)


@pytest.mark.parametrize("spec", [spec for spec in SHAPES if SHAPES[spec][1] is not None])
def test_a_message_stream_breaks_where_the_fault_says(spec: str) -> None:
    assert SHAPES[spec][1] == shape(anthropic, spec)


@BOTH
def test_an_error_event_is_that_of_the_fault(dialect: ModuleType) -> None:
    last = events_of(body_of(play(dialect, "late-error:1+error:429+code:overloaded_error")))[-1][1]
    assert ("overloaded_error" in last, "A simulated error." in last) == (True, True)


@BOTH
def test_cut_json_is_half_a_token(dialect: ModuleType) -> None:
    token = next(event.data.decode() for event in dialect.events(answer()) if event.kind is Kind.TOKEN)
    assert token[: len(token) // 2] == events_of(body_of(play(dialect, "cut-json")))[-1][1]


@BOTH
def test_a_short_body_promises_more_than_comes(dialect: ModuleType) -> None:
    played = play(dialect, "short-body")
    assert len(body_of(played)) + 100 == head_of(played).length


PACES: dict[str, tuple[float, list[float]]] = {
    "ok": (0, []),
    "tokens:3": (0.5, [0.5, 0.5, 0.5]),
    "gap:2": (0.5, [0.5, 2, 2]),
    "gap:0": (0, [0, 0]),
    "slow-token:3": (0.5, [3, 0.5, 0.5]),
    "slow-token:3+gap:1": (0, [3, 1, 1]),
    "slow-body:4": (0, [4]),
    "big:3": (0.5, []),
    "big:3+gap:1": (0.5, [1, 1]),
    "abort:1": (0, [0.05]),
}


@pytest.mark.parametrize("spec", PACES)
@BOTH
def test_a_stream_is_paced(spec: str, dialect: ModuleType) -> None:
    pause, expected = PACES[spec]
    assert expected == [action.seconds for action in play(dialect, spec, pause) if isinstance(action, Pause)]


def test_a_slow_token_comes_after_the_role() -> None:
    played = play(openai, "slow-token:3")
    before = played[: played.index(Pause(3))]
    assert sum(isinstance(action, Send) for action in before) == 1


FRAMES = {
    "ok": b"event: e\ndata: d\n\n",
    "crlf": b"event: e\r\ndata: d\r\n\r\n",
    "cr": b"event: e\rdata: d\r\r",
    "nospace": b"event:e\ndata:d\n\n",
    "sse-comments": b": a comment\n\nevent: e\n: another\ndata: d\n\n",
    "sse-comments+crlf+nospace": b": a comment\r\n\r\nevent:e\r\n: another\r\ndata:d\r\n\r\n",
}


@pytest.mark.parametrize("spec", FRAMES)
def test_an_event_is_framed_as_asked(spec: str) -> None:
    assert FRAMES[spec] == streams.framer(faults.parse(spec))(Event(Kind.TOKEN, b"d", "e"))


def test_a_bom_stands_before_everything() -> None:
    assert b"\xef\xbb\xbf" + body_of(play(openai)) == body_of(play(openai, "bom"))


@BOTH
def test_a_zipped_stream_can_be_read_as_it_goes_and_whole(dialect: ModuleType) -> None:
    plain, zipped = (play(dialect, spec) for spec in ("ok", "gzip"))
    assert body_of(plain) == gzip.decompress(body_of(zipped))
    assert ("content-encoding", "gzip") in head_of(zipped).headers


@given(count=st.integers(0, 5), break_=st.sampled_from(["cut", "abort", "stall-after", "late-error"]))
def test_what_comes_before_a_break_is_what_would_have_come(count: int, break_: str) -> None:
    whole = body_of(play(openai))
    broken = events_of(body_of(play(openai, f"{break_}:{count}")))
    kept = broken[:-1] if break_ == "late-error" else broken
    assert events_of(whole)[: len(kept)] == kept


def test_a_stall_is_a_silence_without_end() -> None:
    assert Hang() == play(openai, "stall-after:1")[-1]


def test_an_abort_is_a_reset_that_lets_what_came_be_read() -> None:
    assert [Pause(0.05), Reset()] == play(openai, "abort:1")[-2:]
