"""Header blocks: well-formed requests, bounds, and the memory of those that repeat."""

from __future__ import annotations

import hpack
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http2.peer import HEADERS
from zurelay.http2.blocks import Block, Blocks, literal
from zurelay.http2.frames import Code, ConnectionFault, StreamFault


def encoded(headers: list[tuple[str, str]]) -> bytes:
    return hpack.Encoder().encode(headers)


def test_blocks_that_repeat_through_the_table_mean_the_same() -> None:
    encoder, blocks = hpack.Encoder(), Blocks()
    for _ in range(4):
        assert dict(HEADERS) == blocks.request(encoder.encode(HEADERS))


@hypothesis.settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c" * 500, "d" * 3_900, "e" * 4_200]), max_size=40))
def test_the_same_bytes_are_read_by_the_table_as_it_is_now(values: list[str]) -> None:
    """Entries come, push others out, and come again: what is remembered must never be of an older table."""
    encoder, blocks = hpack.Encoder(), Blocks()
    for value in values:
        headers = [*HEADERS, ("mark", value), ("again", value[:2])]
        assert dict(headers) == blocks.request(encoder.encode(headers))


def test_repeated_headers_are_joined() -> None:
    assert "1,2" == Blocks().request(encoded([*HEADERS, ("x", "1"), ("x", "2")]))["x"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        HEADERS[1:],
        [HEADERS[0], *HEADERS[2:]],
        [*HEADERS[:2], *HEADERS[3:]],
        [*HEADERS, HEADERS[0]],
        [HEADERS[0], *HEADERS],
        [*HEADERS[:3], (":status", "200")],
        [*HEADERS[:3], (":protocol", "websocket")],
        [*HEADERS, ("Upper", "x")],
        [*HEADERS, ("", "x")],
        [*HEADERS, ("a b", "x")],
        [*HEADERS, ("x", "a\r\nb")],
        [*HEADERS, ("x", "a\0b")],
        [*HEADERS, ("connection", "close")],
        [*HEADERS, ("transfer-encoding", "chunked")],
        [*HEADERS, ("upgrade", "h2c")],
    ],
)
def test_what_makes_no_request_is_its_streams_fault(headers: list[tuple[str, str]]) -> None:
    blocks, block = Blocks(), encoded(headers)
    for _ in range(2):  # it is not remembered as good
        with pytest.raises(StreamFault) as fault:
            blocks.request(block)
        assert Code.PROTOCOL == fault.value.code


@pytest.mark.parametrize(
    "block",
    [b"\xff", b"\x80", b"\x3f\xff\xff\x7f", b"\x40\x05ab", b"\x00\x85\xff\xff\xff\xff\xff\x00", b"\xbe", b"\x40"],
)
def test_a_block_that_can_not_be_read_is_a_fault(block: bytes) -> None:
    with pytest.raises(ConnectionFault) as fault:
        Blocks().request(block)
    assert Code.COMPRESSION == fault.value.code


def test_a_small_block_that_says_much_is_too_much() -> None:
    encoder = hpack.Encoder()
    first = encoder.encode([*HEADERS, ("x", "y" * 2_000)])
    bomb = encoder.encode([*HEADERS, *[("x", "y" * 2_000)] * 40])
    assert len(bomb) < 100
    blocks = Blocks()
    blocks.request(first)
    with pytest.raises(ConnectionFault) as fault:
        blocks.request(bomb)
    assert Code.CALM == fault.value.code


@pytest.mark.parametrize("piece", [b"", b"x" * 16_384])
def test_a_block_without_an_end_is_given_up(piece: bytes) -> None:
    def endless() -> None:
        block = Block(1, 0, b"")
        for _ in range(100):
            block.add(piece)

    with pytest.raises(ConnectionFault) as fault:
        endless()
    assert Code.CALM == fault.value.code


@hypothesis.settings(deadline=None)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.binary(max_size=70_000)), max_size=4))
def test_what_is_written_is_read_as_it_was(headers: list[tuple[bytes, bytes]]) -> None:
    decoder = hpack.Decoder(1 << 20)
    block = b"".join(literal(name, value) for name, value in headers)
    assert headers == [tuple(header) for header in decoder.decode(block, raw=True)]
    assert 0 == len(decoder.header_table.dynamic_entries)
