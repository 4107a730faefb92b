from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import running, streams

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(pieces: list[bytes]) -> bytes:
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8))
def test_a_body_is_the_same_however_it_is_cut(pieces: list[bytes]) -> None:
    assert b"".join(pieces) == streams.body_of(chunked(pieces))


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "not a stream"),
        (b"HTTP/1.1 200 OK\r\n", "not a stream"),
        (HEAD + b"3\r\nabc\r\n", "no end"),
        (HEAD + b"2\r\nabc\r\n0\r\n\r\n", "length"),
    ],
)
def test_a_response_that_is_no_whole_stream_is_refused(response: bytes, said: str) -> None:
    with pytest.raises(running.BenchError, match=said):
        streams.body_of(response)


@pytest.mark.parametrize(
    ("found", "count"),
    [(b"abcdef", 0), (b"abcd", 2), (b"", 6), (b"abxdef", 4), (b"abcdefgh", 2), (b"bcdef", 6)],
)
def test_bytes_are_lost_from_the_first_difference_on(found: bytes, count: int) -> None:
    assert count == streams.lost(found, b"abcdef")
