"""Server-sent events, whole and in pieces."""

from __future__ import annotations

import itertools
import pathlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay.sse import DONE, KEEP_ALIVE, Decoder, Event, SseError, encode

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "sse"
STREAMS = {path.stem: path.read_bytes() for path in sorted(FIXTURES.glob("*.sse"))}
LIMIT = 1 << 20
OPENAI_TEXT = '안녕하세요 세계! 👩🏽\u200d💻 ✅line\u2028and\u2029paragraph\u0085nexta\\b "quoted"\n'


def read(*chunks: bytes, limit: int = LIMIT) -> list[Event]:
    """Decode chunks to the end of the stream."""
    decoder = Decoder(limit)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    rest = decoder.flush()
    return events if rest is None else [*events, rest]


def meaning(*chunks: bytes) -> list[tuple[str, bytes | None]]:
    return [(event.name, event.data) for event in read(*chunks)]


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


BLOCKS: dict[str, tuple[bytes, list[tuple[str, bytes | None]]]] = {
    "the spec's stock example": (
        b"data: YHOO\ndata: +2\ndata: 10\n\n",
        [("", b"YHOO\n+2\n10")],
    ),
    "the spec's example of four blocks": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [("", None), ("", b"first event"), ("", b"second event"), ("", b" third event")],
    ),
    "the spec's example of empty data": (b"data\n\ndata\ndata\n\n", [("", b""), ("", b"\n")]),
    "one space is dropped, no more": (b"data:test\n\ndata: test\n\n", [("", b"test"), ("", b"test")]),
    "a name": (b"event: ping\ndata: {}\n\n", [("ping", b"{}")]),
    "the last name counts": (b"event: a\nevent:b\ndata: 1\n\n", [("b", b"1")]),
    "a name without data": (b"event: ping\n\n", [("ping", None)]),
    "a name that isn't UTF-8": (b"event: \xff\ndata: 1\n\n", [("\ufffd", b"1")]),
    "a colon in the data": (b"data: a: b\n\n", [("", b"a: b")]),
    "unknown fields and other cases": (b"Data: 1\ndata2: 2\n data: 3\nfoo\n\n", [("", None)]),
    "a comment in a block": (b": hm\ndata: 1\n:data: 2\n\n", [("", b"1")]),
    "blank lines between": (
        b"\n\ndata: 1\n\n\ndata: 2\n\n",
        [("", None), ("", None), ("", b"1"), ("", None), ("", b"2")],
    ),
    "CR": (b"data: 1\rdata: 2\r\rdata: 3\r\r", [("", b"1\n2"), ("", b"3")]),
    "CR LF": (b"data: 1\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n", [("", b"1\n2"), ("", b"3")]),
    "line ends mixed": (b"data: 1\n\r\ndata: 2\r\n\ndata: 3\r\r\n", [("", b"1"), ("", b"2"), ("", b"3")]),
    "CR after LF events": (b"data: 1\n\ndata: 2\r\n\r\n", [("", b"1"), ("", b"2")]),
    "CR LF is one line end": (b"data: 1\r\ndata: 2\n\n", [("", b"1\n2")]),
    "a blank line first": (b"\r\ndata: 1\r\n\r\n", [("", None), ("", b"1")]),
    "U+2028, U+2029, U+0085, VT and FF are text": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\n\n".encode(),
        [("", "a\u2028b\u2029c\u0085d\x0be\x0cf".encode())],
    ),
    "a byte order mark": (b"\xef\xbb\xbfdata: 1\n\n", [("", b"1")]),
    "a byte order mark and CR LF": (b"\xef\xbb\xbfdata: 1\r\n\r\n", [("", b"1")]),
    "a byte order mark before a blank line": (b"\xef\xbb\xbf\ndata: 1\n\n", [("", None), ("", b"1")]),
    "a byte order mark that isn't first": (b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n", [("", b"1"), ("", None)]),
    "nothing": (b"", []),
}
CASES = [pytest.param(*case, id=name) for name, case in BLOCKS.items()]


@pytest.mark.parametrize(("stream", "expected"), CASES)
def test_blocks_mean_what_the_standard_says(stream: bytes, expected: list[tuple[str, bytes | None]]) -> None:
    assert expected == meaning(stream)


@pytest.mark.parametrize(("stream", "expected"), CASES)
def test_blocks_mean_the_same_byte_by_byte(stream: bytes, expected: list[tuple[str, bytes | None]]) -> None:
    assert expected == meaning(*bytewise(stream))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_gives_the_same_events_byte_by_byte(name: str) -> None:
    assert read(STREAMS[name]) == read(*bytewise(STREAMS[name]))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_gives_the_same_events_when_cut_in_two_anywhere(name: str) -> None:
    stream = STREAMS[name]
    whole = read(stream)

    assert all(whole == read(stream[:cut], stream[cut:]) for cut in range(len(stream) + 1))


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("trailing", [b'data: {"cut', b"data: [DONE]\n", b":", b"\n", b"\r", b"\xe2\x9c"])
def test_trailing_data_changes_no_event_before_it(name: str, trailing: bytes) -> None:
    stream = STREAMS[name]
    expected = read(stream)
    events = read(stream + trailing)

    assert expected == events[: len(expected)]
    assert stream + trailing == b"".join(event.raw for event in events)


@pytest.mark.parametrize("name", ["openai", "openai_crlf", "openai_nospace", "openai_comments"])
def test_every_form_of_a_chat_stream_says_the_same(name: str) -> None:
    data = [data for _, data in meaning(STREAMS[name]) if data is not None]
    texts = [choice["delta"].get("content", "") for one in data[:-1] for choice in msgspec.json.decode(one)["choices"]]

    assert data[-1] == b"[DONE]"
    assert "".join(texts) == OPENAI_TEXT


def test_comments_and_fields_without_data_are_blocks_of_their_own() -> None:
    blocks = [event.raw for event in read(STREAMS["openai_comments"]) if event.data is None]

    assert blocks == [b": waiting\n\n", b": keep-alive\n\n", b":\n\n", b"retry: 3000\nid: 7\n\n"]


def test_a_messages_stream_names_its_events() -> None:
    events = read(STREAMS["anthropic"])

    assert [event.name for event in events] == [
        "message_start", "content_block_start", "ping", "content_block_delta", "ping", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert [event.name for event in events] == [msgspec.json.decode(event.data or b"")["type"] for event in events]


LINES = [b"data", b"data:", b"data: x", "data: ✅".encode(), b"event: e", b"id: 1", b":", b" "]
ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf"]
pieces = st.sampled_from(LINES + ENDS)


@settings(max_examples=300)
@given(st.lists(pieces, max_size=24).map(b"".join), st.lists(st.integers(0, 80), max_size=8))
def test_any_chunking_gives_the_same_events_and_every_byte(stream: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(borders)]
    chunks.append(stream[sum(map(len, chunks)) :])

    assert read(stream) == read(*chunks)
    assert stream == b"".join(event.raw for event in read(stream))


def test_an_event_is_given_with_its_last_byte() -> None:
    decoder = Decoder(LIMIT)

    assert decoder.feed(b"data: 1\n") == []
    assert [Event("", b"1", b"data: 1\n\n")] == decoder.feed(b"\n")


def test_a_cr_waits_for_the_lf_that_may_belong_to_it() -> None:
    decoder = Decoder(LIMIT)

    assert decoder.feed(b"data: 1\r\n\r") == []
    assert [Event("", b"1", b"data: 1\r\n\r\n")] == decoder.feed(b"\n")


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        pytest.param(b"", None, id="nothing is left"),
        pytest.param(b"data: 1\n", Event("", b"1", b"data: 1\n", whole=False), id="the blank line is missing"),
        pytest.param(b"data: 1", Event("", b"1", b"data: 1", whole=False), id="both line ends are missing"),
        pytest.param(b"data: \nX", Event("", b"", b"data: \nX", whole=False), id="cut in the next field"),
        pytest.param(b"event: e\nda", Event("e", None, b"event: e\nda", whole=False), id="cut in a field's name"),
        pytest.param(b"data: 1\r\r", Event("", b"1", b"data: 1\r\r"), id="the CR waited for nothing"),
        pytest.param(b"data: 1\r\n\r", Event("", b"1", b"data: 1\r\n\r"), id="the CR of a CR LF"),
        pytest.param(b"data: 1\r", Event("", b"1", b"data: 1\r", whole=False), id="a line's CR"),
        pytest.param(b"\r", Event("", None, b"\r"), id="a blank line"),
    ],
)
def test_what_is_left_is_shown_at_the_end(rest: bytes, expected: Event | None) -> None:
    decoder = Decoder(LIMIT)
    assert [Event("", b"0", b"data: 0\n\n")] == decoder.feed(b"data: 0\n\n" + rest)[:1]

    assert expected == decoder.flush()
    assert decoder.flush() is None


@pytest.mark.parametrize("cut", [1, 5, 1000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_an_event_of_the_limit_passes(cut: int, end: bytes) -> None:
    stream = b"data: 12" + end

    expected = [Event("", b"12", stream)]
    assert expected == read(*(stream[place : place + cut] for place in range(0, len(stream), cut)), limit=len(stream))


@pytest.mark.parametrize("cut", [1, 5, 12, 1000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b""])
def test_an_event_over_the_limit_is_an_error_after_the_events_before_it(cut: int, end: bytes) -> None:
    stream = b"data: 1\n\ndata: " + b"x" * 20 + end + b"data: 2\n\n"
    decoder = Decoder(20)
    events: list[Event] = []

    with pytest.raises(SseError, match="longer than 20 bytes"):  # noqa: PT012 - any of the calls may be the one
        for place in range(0, len(stream), cut):
            events += decoder.feed(stream[place : place + cut])
        decoder.flush()

    assert [Event("", b"1", b"data: 1\n\n")] == events
    with pytest.raises(SseError):
        decoder.feed(b"data: 3\n\n")


def test_a_megabyte_byte_by_byte_is_one_event() -> None:
    data = b"x" * (1 << 18)
    decoder = Decoder(1 << 19)
    events = [event for byte in bytewise(b"data: " + data + b"\n\n") for event in decoder.feed(byte)]

    assert [data] == [event.data for event in events]


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        pytest.param(b"{}", None, b"data: {}\n\n", id="data"),
        pytest.param(b"", None, b"data: \n\n", id="nothing"),
        pytest.param(b" a", None, b"data:  a\n\n", id="a space at the start"),
        pytest.param(b"{}", "ping", b"event: ping\ndata: {}\n\n", id="a name"),
        pytest.param(b"a\nb\n", None, b"data: a\ndata: b\ndata: \n\n", id="several lines"),
        pytest.param(b"a\r\nb\rc", None, b"data: a\ndata: b\ndata: c\n\n", id="other line ends"),
        pytest.param(b"{}", "a\ndata: b", b"event: a data: b\ndata: {}\n\n", id="a name can't smuggle a line"),
    ],
)
def test_events_are_written_as_the_standard_reads_them(data: bytes, name: str | None, expected: bytes) -> None:
    assert expected == encode(data, name)


@given(st.binary(max_size=40).map(lambda data: data.replace(b"\r", b"\n")), st.sampled_from(["", "ping", "이름"]))
def test_what_is_written_is_read_back(data: bytes, name: str) -> None:
    written = encode(data, name or None)

    assert [Event(name, data, written)] == read(written)


def test_the_ready_made_blocks_read_as_what_they_are() -> None:
    assert meaning(KEEP_ALIVE + DONE) == [("", None), ("", b"[DONE]")]
