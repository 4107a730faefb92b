"""One connection: streams, windows, what a client may not do, and random bytes."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http2.peer import (
    ALL,
    HEADERS,
    WHOLE,
    begun,
    data,
    decoded,
    head,
    heard,
    request,
    reset,
    sent,
    settings,
    update,
    window,
)
from zurelay.http2 import Connection, ConnectionFault, Ended, Event, Opened, Received, Reset, Writable, connection
from zurelay.http2.flow import MOST_FAULTS, MOST_IDLE, MOST_UNREAD, WINDOW
from zurelay.http2.frames import LARGEST, NUMBER, Code, Flag, Kind, Setting, frame
from zurelay.http2.reader import PREFACE

OK = (b"grpc-status", b"0")


def read(one: Connection, sent_bytes: bytes, cuts: list[int]) -> list[Event]:
    edges = [0, *sorted(cut % (len(sent_bytes) + 1) for cut in cuts), len(sent_bytes)]
    return [event for start, end in itertools.pairwise(edges) for event in one.feed(sent_bytes[start:end], 0)]


@hypothesis.settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=6))
def test_the_same_events_come_however_the_bytes_are_cut(cuts: list[int]) -> None:
    said = PREFACE + window(ALL) + request(1, b"abc") + request(3, end=False) + reset(3)
    opened = [Opened(number, dict(HEADERS)) for number in (1, 3)]
    expected = [Writable(0), opened[0], Received(1, b"abc"), Ended(1), opened[1], Reset(3)]
    assert expected == read(Connection(), said, cuts)


def test_it_says_first_what_it_takes() -> None:
    first, second = sent(Connection())
    assert (Kind.SETTINGS, 0, 0) == first[:3]
    pairs = {int.from_bytes(first[3][at : at + 2]): int.from_bytes(first[3][at + 2 : at + 6]) for at in (0, 6, 12)}
    assert {Setting.WINDOW: WINDOW, Setting.MOST_STREAMS: 16_384, Setting.HEADER_LIST: 65_536} == pairs
    assert (Kind.UPDATE, 0, 0) == second[:3]


def test_trailers_end_a_request() -> None:
    one = begun(request(1, b"abc", end=False))
    assert [Ended(1)] == heard(one, head(1, [("x", "y")], WHOLE | Flag.END_STREAM))


def test_pings_and_settings_are_acknowledged_and_acknowledgements_are_not() -> None:
    one, ping = begun(), b"12345678"
    heard(one, frame(Kind.PING, 0, 0, ping), window(5))
    heard(one, frame(Kind.PING, Flag.ACK, 0, ping), frame(Kind.SETTINGS, Flag.ACK, 0, b""))
    assert [(Kind.PING, Flag.ACK, 0, ping), (Kind.SETTINGS, Flag.ACK, 0, b"")] == sent(one)


def test_frames_that_say_nothing_to_us_are_left() -> None:
    one = begun()
    goaway, unknown = frame(Kind.GOAWAY, 0, 0, b"\0" * 8), frame(200, 255, 9, b"x")
    assert [] == heard(one, frame(Kind.PRIORITY, 0, 1, b"\0" * 5), goaway, unknown, settings((99, 1)))


def test_an_answer_is_headers_data_trailers() -> None:
    one = begun(request(1))
    one.begin(1, (b"content-type", b"x/y"))
    assert 3 == one.send(1, b"abc")
    one.close(1, OK)
    first, body, trailers = sent(one)
    assert (Kind.HEADERS, WHOLE, 1) == first[:3]
    assert [(":status", "200"), ("content-type", "x/y")] == decoded(first[3])
    assert (Kind.DATA, 0, 1, b"abc") == body
    assert (Kind.HEADERS, WHOLE | Flag.END_STREAM, 1) == trailers[:3]
    assert [("grpc-status", "0")] == decoded(trailers[3])


def test_an_answer_may_be_its_head_alone() -> None:
    one = begun(request(1))
    one.begin(1, OK, end=True)
    one.close(1)
    ((kind, flags, number, _),) = sent(one)
    assert (Kind.HEADERS, WHOLE | Flag.END_STREAM, 1) == (kind, flags, number)


def test_an_answer_that_comes_before_the_requests_end_ends_the_request_too() -> None:
    one = begun(request(1, end=False))
    one.close(1, OK)
    assert [Kind.HEADERS, Kind.RESET] == [kind for kind, *_ in sent(one)]


def test_what_comes_for_a_stream_that_is_over_is_left_and_nothing_is_sent_to_it() -> None:
    one = begun(request(1, end=False))
    one.close(1, OK)
    one.take()
    late = data(1, b"abc", end=True) + update(1, 5) + head(1, [("x", "y")], WHOLE | Flag.END_STREAM) + reset(1)
    assert [] == heard(one, late)
    one.begin(1, OK)
    assert 3 == one.send(1, b"abc")
    one.close(1, OK)
    assert b"" == one.take()


def test_a_stream_that_its_client_cut_hears_and_says_nothing_more() -> None:
    one = begun(request(1, end=False))
    assert [Reset(1)] == heard(one, reset(1), reset(1), data(1, b"x"), update(1, 5))
    one.begin(1, OK)
    assert 3 == one.send(1, b"abc")
    one.close(1, OK)
    assert b"" == one.take()


@pytest.mark.parametrize(
    ("more", "event"),
    [(update(1, 7), Writable(1)), (window(17), Writable(0))],
    ids=["by an update of the stream", "by the settings of all streams"],
)
def test_no_more_is_sent_than_a_streams_window_holds(more: bytes, event: Event) -> None:
    one = Connection()
    one.feed(PREFACE + window(10) + update(0, ALL) + request(1), 0)
    assert (10, 0) == (one.send(1, b"0123456789abcdef"), one.send(1, b"abcdef"))
    assert [event] == heard(one, more)
    assert 6 == one.send(1, b"abcdef")


def test_no_more_is_sent_than_the_connections_window_holds() -> None:
    one = Connection()
    one.feed(PREFACE + window(ALL) + request(1) + request(3), 0)
    assert [60_000, 5_535, 0] == [one.send(number, b"x" * 60_000) for number in (1, 3, 1)]
    assert [Writable(0)] == heard(one, update(0, 1))
    assert 1 == one.send(1, b"xy")


def test_what_was_read_is_granted_again_in_large_pieces() -> None:
    one = begun(request(1, end=False))
    one.grant(1, WINDOW // 2 - 1)
    assert b"" == one.take()
    one.grant(1, 1)
    assert [(Kind.UPDATE, 0, 1, (WINDOW // 2).to_bytes(4))] == sent(one)


def test_padding_is_granted_at_once() -> None:
    one = begun(request(1, end=False))
    padded = frame(Kind.DATA, Flag.PADDED, 1, b"\xff" + b"x" * 10 + b"\0" * 255)
    for _ in range(WINDOW // 256):
        assert [Received(1, b"x" * 10)] == heard(one, padded)
        one.grant(1, 10)


def test_a_connection_is_never_full_for_what_streams_hold() -> None:
    one = begun(request(1, end=False))
    updates = []
    for _ in range(1 << 15):
        heard(one, data(1, b"\0" * LARGEST))
        one.grant(1, LARGEST)
        updates += [frame for frame in sent(one) if frame[2] == 0]
    assert [(Kind.UPDATE, 0, 0, (1 << 29).to_bytes(4))] == updates


def test_a_stream_that_sends_more_than_it_may_is_cut_alone() -> None:
    one = begun(request(1, end=False), request(3, end=False))
    for _ in range(WINDOW // LARGEST):
        heard(one, data(1, b"x" * LARGEST))
    assert [Reset(1), Received(3, b"x")] == heard(one, data(1, b"x"), data(3, b"x"))
    assert [(Kind.RESET, 0, 1, Code.FLOW_CONTROL.to_bytes(4))] == sent(one)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (data(1, b"x"), Code.STREAM_CLOSED),
        (head(1, [("x", "y")], WHOLE | Flag.END_STREAM), Code.STREAM_CLOSED),
        (update(1, 0), Code.PROTOCOL),
        (update(1, NUMBER), Code.FLOW_CONTROL),
        (frame(Kind.PRIORITY, 0, 1, b"\0"), Code.FRAME_SIZE),
    ],
    ids=["data behind the end", "headers behind the end", "an empty update", "a window too large", "a cut priority"],
)
def test_what_breaks_one_stream_cuts_it_alone(said: bytes, code: int) -> None:
    one = begun(request(1), request(3, end=False))
    assert [Reset(1), Received(3, b"x")] == heard(one, said, data(3, b"x"))
    assert [(Kind.RESET, 0, 1, code.to_bytes(4))] == sent(one)


def test_headers_in_the_middle_of_a_request_cut_it() -> None:
    assert [Reset(1)] == heard(begun(request(1, end=False)), head(1, [("x", "y")]))


def test_what_makes_no_request_opens_nothing() -> None:
    one = begun()
    assert [Opened(3, dict(HEADERS))] == heard(one, head(1, HEADERS[1:]), head(3))
    assert [(Kind.RESET, 0, 1, Code.PROTOCOL.to_bytes(4))] == sent(one)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (head(2), Code.PROTOCOL),
        (data(3, b"x"), Code.PROTOCOL),
        (reset(3), Code.PROTOCOL),
        (update(3, 5), Code.PROTOCOL),
        (data(2, b"x"), Code.PROTOCOL),
        (frame(Kind.PUSH, 0, 1, b"\0" * 4), Code.PROTOCOL),
        (update(0, 0), Code.PROTOCOL),
        (update(0, NUMBER), Code.FLOW_CONTROL),
        (window(NUMBER + 1), Code.FLOW_CONTROL),
        (update(1, NUMBER - ALL) + window(ALL + 1), Code.FLOW_CONTROL),
        (settings((Setting.PUSH, 2)), Code.PROTOCOL),
        (settings((Setting.FRAME_SIZE, 1)), Code.PROTOCOL),
        (settings((Setting.FRAME_SIZE, 1 << 24)), Code.PROTOCOL),
        (frame(Kind.SETTINGS, 0, 0, b"\0\0\0"), Code.FRAME_SIZE),
        (frame(Kind.SETTINGS, Flag.ACK, 0, b"\0" * 6), Code.FRAME_SIZE),
        (frame(Kind.HEADERS, WHOLE, 3, b"\xff"), Code.COMPRESSION),
        (frame(Kind.HEADERS, WHOLE | Flag.END_STREAM, 1, b"\xff"), Code.COMPRESSION),
        (frame(Kind.DATA, Flag.PADDED, 1, b"\x09abc"), Code.PROTOCOL),
    ],
    ids=[
        "a stream of ours opened",
        "data for no stream",
        "a reset of no stream",
        "an update of no stream",
        "data for a stream of ours",
        "a promise",
        "an empty update",
        "a window too large",
        "a first window too large",
        "a first window too large for what is open",
        "push is neither yes nor no",
        "frames too small",
        "frames too large",
        "a setting that is cut",
        "an acknowledgement that says more",
        "a header block that is none",
        "trailers that are none",
        "more padding than frame",
    ],
)
def test_what_breaks_the_protocol_is_the_connections_fault(said: bytes, code: int) -> None:
    one = begun(request(1, end=False))
    with pytest.raises(ConnectionFault) as fault:
        heard(one, said)
    assert code == fault.value.code
    one.give_up(fault.value)
    kind, _, number, told = sent(one)[-1]
    assert (Kind.GOAWAY, 0) == (kind, number)
    assert (1, code) == (int.from_bytes(told[:4]) % 2, int.from_bytes(told[4:8]))
    assert str(fault.value).encode() == told[8:]


@pytest.mark.parametrize(
    ("said", "most"),
    [
        (frame(Kind.PING, Flag.ACK, 0, b"\0" * 8), MOST_IDLE),
        (frame(Kind.PRIORITY, 0, 1, b"\0" * 5), MOST_IDLE),
        (frame(250, 0, 1, b""), MOST_IDLE),
        (data(1), MOST_IDLE),
        (update(1, 1), MOST_IDLE),
        (frame(Kind.PING, 0, 0, b"\0" * 8), MOST_UNREAD),
        (settings(), MOST_UNREAD),
    ],
    ids=["acknowledgements", "priorities", "unknown", "empty data", "updates", "pings", "settings"],
)
def test_a_flood_ends_the_connection(said: bytes, most: int) -> None:
    one = begun(request(1, end=False))
    with pytest.raises(ConnectionFault) as fault:
        heard(one, said * (most + 5))
    assert Code.CALM == fault.value.code


def test_so_does_a_flood_of_requests_that_are_none() -> None:
    def flood() -> None:
        one = begun()
        for number in range(1, 2 * MOST_FAULTS + 10, 2):
            heard(one, head(number, HEADERS[1:]))
            one.take()

    with pytest.raises(ConnectionFault) as fault:
        flood()
    assert Code.CALM == fault.value.code


def test_streams_that_were_cut_count_until_their_work_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_STREAMS", 3)
    one = begun()
    numbers = [1, 3, 5, 7]
    events = heard(one, *(request(number, end=False) + reset(number) for number in numbers))
    assert [1, 3, 5] == [event.stream for event in events if isinstance(event, Opened)]
    assert [(Kind.RESET, 0, 7, Code.REFUSED_STREAM.to_bytes(4))] == sent(one)
    one.close(3)
    assert [Opened(9, dict(HEADERS))] == heard(one, request(9, end=False))


def test_who_leaves_says_so_and_takes_no_more() -> None:
    one = begun(request(1, end=False))
    one.leave()
    assert [Received(1, b"x")] == heard(one, request(3, end=False), data(1, b"x"))
    goaway, refused = sent(one)
    assert (Kind.GOAWAY, 0, 0, (1).to_bytes(4) + Code.NO_ERROR.to_bytes(4)) == goaway
    assert (Kind.RESET, 0, 3, Code.REFUSED_STREAM.to_bytes(4)) == refused


@hypothesis.settings(deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=5))
def test_random_bytes_are_read_or_are_a_fault(pieces: list[bytes]) -> None:
    one = begun(request(1, end=False))
    try:
        for piece in pieces:
            one.feed(piece, 0)
    except ConnectionFault as fault:
        one.give_up(fault)
    one.take()


KINDS = st.integers(0, 10)
NUMBERS = st.sampled_from([0, 1, 2, 3, 5, NUMBER])
FRAMES = st.builds(frame, KINDS, st.integers(0, 255), NUMBERS, st.binary(max_size=40))


@hypothesis.settings(deadline=None)
@given(st.lists(FRAMES, max_size=12))
def test_random_frames_are_read_or_are_a_fault(frames: list[bytes]) -> None:
    one = begun(request(1, end=False))
    opened = {1}
    try:
        for each in frames:
            events = one.feed(each, 0)
            opened |= {event.stream for event in events if isinstance(event, Opened)}
            one.send(1, b"x" * 10)
    except ConnectionFault as fault:
        one.give_up(fault)
    for number in opened:
        one.close(number, OK)
    one.take()
