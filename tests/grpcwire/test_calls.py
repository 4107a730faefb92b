"""What a method is made of; tests/grpcwire/test_conformance.py calls them over both transports."""

from __future__ import annotations

import collections

import pytest

from zurelay.grpcwire.calls import CallError, Code, bidirectional, client_streaming, unary


class Scripted:
    """A call whose messages are there already."""

    def __init__(self, *messages: bytes) -> None:
        self.metadata: dict[str, str] = {}
        self.written: list[bytes] = []
        self._messages = collections.deque(messages)

    async def read(self) -> bytes | None:
        return self._messages.popleft() if self._messages else None

    async def write(self, message: bytes) -> None:
        self.written.append(message)


async def test_a_unary_method_answers_the_first_message() -> None:
    async def answer(question: bytes) -> bytes:
        return question[::-1]

    call = Scripted(b"abc")
    await unary("/p", bytes, answer).serve(call)
    assert [b"cba"] == call.written


async def test_a_unary_method_wants_a_message() -> None:
    async def answer(question: bytes) -> bytes:
        return question

    with pytest.raises(CallError) as error:
        await unary("/p", bytes, answer).serve(Scripted())
    assert Code.INVALID_ARGUMENT is error.value.code


async def test_a_client_streaming_method_answers_once_at_the_end() -> None:
    async def joined(call: Scripted) -> bytes:
        found = b""
        while (message := await call.read()) is not None:
            found += message
        return found

    call = Scripted(b"a", b"b")
    await client_streaming("/p", bytes, joined).serve(call)  # type: ignore[arg-type]  # it reads bytes
    assert [b"ab"] == call.written


async def test_a_bidirectional_method_is_served_as_it_is() -> None:
    async def twice(call: Scripted) -> None:
        await call.write(b"1")
        await call.write(b"2")

    call = Scripted()
    await bidirectional("/p", bytes, twice).serve(call)  # type: ignore[arg-type]  # it reads bytes
    assert [b"1", b"2"] == call.written
