"""gRPC's framing: any cuts give the same messages, in linear time, within bounds."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay.grpcwire.calls import CallError, Code
from zurelay.grpcwire.messages import Messages, framed


def fed(data: bytes, edges: list[int], limit: int = 1 << 20) -> Messages:
    messages = Messages(limit)
    for start, end in itertools.pairwise(edges):
        messages.feed(data[start:end])
    return messages


@hypothesis.settings(deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=5), st.lists(st.integers(0, 300), max_size=8))
def test_the_same_messages_come_however_the_bytes_are_cut(sent: list[bytes], cuts: list[int]) -> None:
    data = b"".join(framed(message) for message in sent)
    whole = fed(data, [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)])
    assert sent == list(whole.whole)
    whole.end()
    assert sent == list(fed(data, list(range(len(data) + 1))).whole)


@pytest.mark.parametrize("size", [1, 4, 5, 6, 8])
def test_a_message_that_is_cut_is_none(size: int) -> None:
    messages = fed(framed(b"abcd")[:size], [0, size])
    with pytest.raises(CallError) as error:
        messages.end()
    assert Code.INTERNAL is error.value.code
    assert not messages.whole


def test_a_message_may_be_as_large_as_the_limit_and_no_larger() -> None:
    assert [b"x" * 10] == list(fed(framed(b"x" * 10), [0, 15], limit=10).whole)
    with pytest.raises(CallError) as error:
        fed(framed(b"x" * 11)[:5], [0, 5], limit=10)
    assert Code.RESOURCE_EXHAUSTED is error.value.code


def test_a_compressed_message_is_refused_and_those_before_it_count() -> None:
    messages = Messages(100)
    with pytest.raises(CallError) as error:
        messages.feed(framed(b"x") + b"\1\0\0\0\1x")
    assert Code.UNIMPLEMENTED is error.value.code
    assert [b"x"] == list(messages.whole)


def test_pieces_are_joined_once_a_message() -> None:
    """Many pieces of one message must not be copied again with each that comes."""
    messages = Messages(1 << 30)
    data = framed(bytes(1 << 22))
    for start in range(0, len(data), 1 << 10):
        messages.feed(data[start : start + (1 << 10)])
        assert len(messages._pieces) == (start // (1 << 10) + 1) % (len(data) // (1 << 10) + 1)
    assert [1 << 22] == [len(message) for message in messages.whole]
