"""What is written by hand is what protobuf would write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import wire
from zurelay.protos import core_pb2, ext_proc_pb2


def answer(body: bytes) -> ext_proc_pb2.ProcessingResponse:
    made = ext_proc_pb2.ProcessingResponse()
    common = made.request_body.response
    common.body_mutation.body = body
    option = common.header_mutation.set_headers.add(append_action=core_pb2.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD)
    option.header.key, option.header.raw_value = "content-length", str(len(body)).encode()
    return made


@given(st.binary(max_size=400))
def test_an_attempts_body_is_written_as_a_message(body: bytes) -> None:
    assert answer(body) == ext_proc_pb2.ProcessingResponse.FromString(wire.attempt_body(body))


@pytest.mark.parametrize("size", [(1 << 14) - 60, (1 << 14) - 1, 1 << 14, (1 << 21) - 60, 1 << 21, 20_000_000])
def test_a_large_body_is_too(size: int) -> None:
    body = b"x" * size
    assert answer(body) == ext_proc_pb2.ProcessingResponse.FromString(wire.attempt_body(body))
