"""What goes out: headers without a table, data within the windows, in frames of the default size."""

from __future__ import annotations

import hpack
import pytest

from http2.peer import decoded
from zurelay.http2.flow import DEFAULT_WINDOW, Stream
from zurelay.http2.frames import LARGEST, Flag, Kind, frame
from zurelay.http2.outbox import Outbox


def taken(outbox: Outbox) -> list[tuple[int, int, bytes]]:
    out, found = outbox.take(), []
    while out:
        size = int.from_bytes(out[:3])
        found.append((out[3], out[4], out[9 : 9 + size]))
        out = out[9 + size :]
    return found


def test_what_is_taken_is_gone() -> None:
    outbox = Outbox()
    outbox.put(Kind.PING, Flag.ACK, 0, b"12345678")
    assert frame(Kind.PING, Flag.ACK, 0, b"12345678") == outbox.take()
    assert b"" == outbox.take()


@pytest.mark.parametrize(
    ("headers", "first", "read"),
    [
        (((b"a", b"b"),), True, [(":status", "200"), ("a", "b")]),
        (((b":status", b"415"), (b"a", b"b")), True, [(":status", "415"), ("a", "b")]),
        (((b"grpc-status", b"0"), (b"m", b"x" * 300)), False, [("grpc-status", "0"), ("m", "x" * 300)]),
    ],
)
def test_headers_begin_with_their_status_and_trailers_have_none(
    headers: tuple[tuple[bytes, bytes], ...], first: bool, read: list[tuple[str, str]]
) -> None:
    outbox = Outbox()
    outbox.head(1, headers, first=first, last=True)
    ((kind, flags, block),) = taken(outbox)
    assert (Kind.HEADERS, Flag.END_HEADERS | Flag.END_STREAM) == (kind, flags)
    assert read == decoded(block)


def test_a_peer_that_makes_its_table_smaller_is_told_once_that_ours_is_empty() -> None:
    outbox = Outbox()
    outbox.shrink()
    decoder = hpack.Decoder()
    for size in (0, 0):
        outbox.head(1, ((b"a", b"b"),), first=True, last=False)
        ((*_, block),) = taken(outbox)
        assert [":status", "a"] == [str(name) for name, _ in decoder.decode(block)]
        assert size == decoder.header_table.maxsize
    assert not block.startswith(b"\x20")


def test_a_large_message_goes_in_frames_of_the_default_size() -> None:
    outbox, stream = Outbox(), Stream(1 << 20)
    outbox.window = 1 << 20
    data = bytes(range(256)) * 200
    assert len(data) == outbox.data(1, stream, memoryview(data))
    assert len(data) == outbox.size
    sent = taken(outbox)
    assert data == b"".join(piece for *_, piece in sent)
    assert max(len(piece) for *_, piece in sent) == LARGEST
    assert 0 == outbox.size


@pytest.mark.parametrize(("of_stream", "of_all"), [(10, 100), (100, 10)])
def test_no_more_goes_than_either_window_holds(of_stream: int, of_all: int) -> None:
    outbox, stream = Outbox(), Stream(of_stream)
    outbox.window = of_all
    assert [8, 2, 0] == [outbox.data(1, stream, b"x" * 8) for _ in range(3)]
    assert (of_stream - 10, of_all - 10) == (stream.window, outbox.window)


def test_a_window_that_was_taken_back_sends_nothing() -> None:
    outbox, stream = Outbox(), Stream(-5)
    assert 0 == outbox.data(1, stream, b"x")
    assert (DEFAULT_WINDOW, -5) == (outbox.window, stream.window)
