"""A call on our own connection: what it grants, when it waits, how it ends."""

from __future__ import annotations

import asyncio

import pytest

from zurelay.grpcwire.call import OwnCall
from zurelay.grpcwire.calls import CallError, Code
from zurelay.grpcwire.messages import framed


class Wire:
    """A connection that takes `room` bytes."""

    def __init__(self, room: int = 1 << 20) -> None:
        self.loop = asyncio.get_running_loop()
        self.room = room
        self.begun: list[int] = []
        self.granted: list[int] = []
        self.sent = b""

    def begin(self, number: int) -> None:
        self.begun.append(number)

    def send(self, _: int, data: bytes | memoryview) -> int:
        taken = min(self.room, len(data))
        self.room -= taken
        self.sent += bytes(data[:taken])
        return taken

    def grant(self, _: int, size: int) -> None:
        self.granted.append(size)


def made(wire: Wire, limit: int = 100) -> OwnCall[bytes]:
    return OwnCall(wire, 1, {}, bytes, limit)


async def test_bytes_are_granted_again_when_their_messages_are_read() -> None:
    wire = Wire()
    call = made(wire)
    call.received(framed(b"a") + framed(b"b"))
    assert ([b"a"], []) == ([await call.read()], wire.granted)
    assert ([b"b"], [12]) == ([await call.read()], wire.granted)


async def test_bytes_of_a_message_that_is_not_whole_are_granted_at_once() -> None:
    wire = Wire()
    call = made(wire)
    call.received(framed(b"abc")[:6])
    assert [6] == wire.granted


async def test_a_message_waits_for_room_and_goes_on_where_it_stopped() -> None:
    wire = Wire(room=3)
    call = made(wire)
    writing = asyncio.create_task(call.write(b"abcdef"))
    for room in (4, 1, 100):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (0, False) == (wire.room, writing.done())
        wire.room = room
        call.writable()
    await writing
    assert (framed(b"abcdef"), [1]) == (wire.sent, wire.begun)


async def test_messages_before_a_fault_are_read_and_then_the_fault() -> None:
    call = made(Wire(), limit=3)
    call.received(framed(b"abc") + framed(b"abcd"))
    call.received(b"whatever")
    assert b"abc" == await call.read()
    with pytest.raises(CallError) as error:
        await call.read()
    assert Code.RESOURCE_EXHAUSTED is error.value.code


async def test_a_fault_wakes_the_one_who_reads() -> None:
    call = made(Wire())
    reading = asyncio.create_task(call.read())
    await asyncio.sleep(0)
    call.received(b"\1\0\0\0\0")
    with pytest.raises(CallError):
        await reading


@pytest.mark.parametrize(("rest", "code"), [(b"\0\0", Code.INTERNAL), (b"", None)])
async def test_the_end_is_told_and_a_cut_message_is_a_fault(rest: bytes, code: Code | None) -> None:
    call = made(Wire())
    reading = asyncio.create_task(call.read())
    await asyncio.sleep(0)
    call.received(rest)
    call.ended()
    if code is None:
        assert await reading is None
        return
    with pytest.raises(CallError) as error:
        await reading
    assert code is error.value.code
