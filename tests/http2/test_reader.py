"""Bytes become frames, wherever they are cut; what can't become one is a fault."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http2.peer import WHOLE, data, settings
from zurelay.http2.frames import Code, ConnectionFault, Flag, Kind, frame
from zurelay.http2.reader import PREFACE, Frame, Reader

BEGIN = PREFACE + settings()


def read(sent: bytes, edges: list[int]) -> list[Frame]:
    reader = Reader()
    return [found for start, end in itertools.pairwise(edges) for found in reader.feed(sent[start:end])]


@hypothesis.settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=8))
def test_the_same_frames_come_however_the_bytes_are_cut(cuts: list[int]) -> None:
    padded = frame(Kind.HEADERS, Flag.PADDED | Flag.PRIORITY | Flag.END_STREAM, 1, b"\x02" + b"\0" * 5 + b"abc\0\0")
    sent = BEGIN + padded + frame(Kind.CONTINUATION, 0, 1, b"de") + frame(Kind.CONTINUATION, WHOLE, 1, b"f")
    sent += data(1, b"x" * 500, end=True) + frame(Kind.PING, 0, 0, b"12345678") + frame(99, 1, 0, b"")
    expected = [
        (Kind.SETTINGS, 0, 0, b""),
        (Kind.HEADERS, Flag.PADDED | Flag.PRIORITY | Flag.END_STREAM, 1, b"abcdef"),
        (Kind.DATA, Flag.END_STREAM, 1, b"x" * 500),
        (Kind.PING, 0, 0, b"12345678"),
        (99, 1, 0, b""),
    ]
    assert expected == read(sent, [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)])
    assert expected == read(sent, list(range(len(sent) + 1)))


OPEN = frame(Kind.HEADERS, 0, 1, b"")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", Code.PROTOCOL),
        (b"X", Code.PROTOCOL),
        (PREFACE + frame(Kind.PING, 0, 0, b"12345678"), Code.PROTOCOL),
        (PREFACE + data(1, b"x"), Code.PROTOCOL),
        (PREFACE + frame(Kind.SETTINGS, Flag.ACK, 0, b""), Code.PROTOCOL),
        (BEGIN + b"\x00\x40\x01\0\0\0\0\0\1", Code.FRAME_SIZE),
        (BEGIN + frame(Kind.CONTINUATION, WHOLE, 1, b""), Code.PROTOCOL),
        (BEGIN + OPEN + frame(Kind.PING, 0, 0, b"\0" * 8), Code.PROTOCOL),
        (BEGIN + OPEN + data(1, b"x"), Code.PROTOCOL),
        (BEGIN + OPEN + frame(Kind.CONTINUATION, WHOLE, 3, b""), Code.PROTOCOL),
        (BEGIN + OPEN + frame(Kind.CONTINUATION, 0, 1, b"x" * 16_000) * 5, Code.CALM),
        (BEGIN + OPEN + frame(Kind.CONTINUATION, 0, 1, b"") * 50, Code.CALM),
        (BEGIN + frame(Kind.HEADERS, WHOLE | Flag.PADDED, 1, b""), Code.FRAME_SIZE),
    ],
    ids=[
        "HTTP/1",
        "a first byte that can't be right",
        "no settings at first",
        "data at first",
        "an acknowledgement at first",
        "a frame over the limit",
        "a continuation of nothing",
        "a header block cut by a ping",
        "a header block cut by data",
        "a continuation of another stream",
        "a header block too large",
        "continuations that carry nothing",
        "padding without a length",
    ],
)
def test_what_can_not_be_read_is_a_fault(sent: bytes, code: int) -> None:
    with pytest.raises(ConnectionFault) as fault:
        list(Reader().feed(sent))
    assert code == fault.value.code
