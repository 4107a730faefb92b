"""What holds of both transports, with grpcio's own client on the other side."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from grpcwire.methods import LIMIT, Channel, Methods, Stream, call, serving, size, status


@pytest.fixture
def methods() -> Methods:
    return Methods()


@pytest.fixture(params=["own", "grpcio"])
async def channel(request: pytest.FixtureRequest, methods: Methods, tmp_path: pathlib.Path) -> AsyncIterator[Channel]:
    async with serving(request.param, methods.all(), str(tmp_path)) as opened:
        yield opened


@pytest.mark.parametrize("length", [0, 1, 16_379, 16_380, 1 << 20, 9 << 20, LIMIT])
async def test_messages_of_every_size_pass_both_ways(channel: Channel, length: int) -> None:
    stream = call(channel, "echo")
    sent = bytes(length)
    for _ in range(2):
        await stream.write(sent)
        assert sent == await stream.read()
    await stream.done_writing()
    assert await stream.read() is grpc.aio.EOF
    assert await status(stream) is grpc.StatusCode.OK


async def test_a_message_over_the_limit_is_refused(channel: Channel) -> None:
    stream = call(channel, "echo")
    await stream.write(bytes(LIMIT + 1))
    assert await status(stream) is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_metadata_reaches_the_call(channel: Channel) -> None:
    for mark in ("a", "a", "b", "c" * 300, "a"):
        stream = call(channel, "echo", mark=mark)
        await stream.write(b"x")
        assert mark.encode() + b"x" == await stream.read()


async def test_repeated_metadata_is_joined(channel: Channel) -> None:
    stream: Stream = channel.stream_stream("/t.T/echo")(metadata=(("mark", "a"), ("mark", "b")))
    await stream.write(b"x")
    assert await stream.read() == b"a,bx"


async def test_a_message_that_is_answered_twice_gives_two(channel: Channel) -> None:
    stream = call(channel, "double")
    await stream.write(b"x")
    assert [b"x", b"x"] == [await stream.read(), await stream.read()]


async def test_many_calls_at_once_keep_their_own(channel: Channel) -> None:
    async def one(number: int) -> list[object]:
        stream = call(channel, "echo", mark=str(number))
        found: list[object] = []
        for _ in range(5):
            await stream.write(b".")
            found.append(await stream.read())
        await stream.done_writing()
        assert await status(stream) is grpc.StatusCode.OK
        return found

    answers = await asyncio.gather(*(one(number) for number in range(200)))
    assert [[f"{number}.".encode()] * 5 for number in range(200)] == answers


async def test_a_call_may_end_before_its_client_has(channel: Channel) -> None:
    stream = call(channel, "early")
    await stream.write(b"x")
    assert await stream.read() == b"enough"
    assert await status(stream) is grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bug", grpc.StatusCode.UNKNOWN),
        ("refuse", grpc.StatusCode.INVALID_ARGUMENT),
        ("missing", grpc.StatusCode.UNIMPLEMENTED),
    ],
)
async def test_a_call_that_fails_says_how_and_fails_alone(channel: Channel, name: str, code: grpc.StatusCode) -> None:
    assert code is await status(call(channel, name))
    stream = call(channel, "echo")
    await stream.write(b"x")
    assert await stream.read() == b"x"


async def test_the_message_of_a_refusal_arrives_as_it_is(channel: Channel) -> None:
    failed = call(channel, "refuse")
    await status(failed)
    assert await failed.details() == "100% ungültig\n"


async def test_a_message_that_can_not_be_read_ends_its_call(channel: Channel) -> None:
    negate = channel.unary_unary("/t.T/negate")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await negate(b"no number")
    assert failed.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
    assert await negate(b"7") == b"-7"


async def test_a_question_has_its_answer(channel: Channel) -> None:
    assert [b"-1", b"-2"] == [await channel.unary_unary("/t.T/negate")(b"%d" % one) for one in (1, 2)]


async def test_a_call_without_its_question_is_refused(channel: Channel) -> None:
    stream = call(channel, "negate")
    await stream.done_writing()
    assert await status(stream) is grpc.StatusCode.INVALID_ARGUMENT


async def test_many_messages_have_one_answer(channel: Channel) -> None:
    total = channel.stream_unary("/t.T/sum")(iter([b"%d" % one for one in range(1_000)]))
    assert await total == b"499500"


async def test_a_client_that_leaves_cancels_its_call(channel: Channel, methods: Methods) -> None:
    stream = call(channel, "hold")
    assert await stream.read() == b"here"
    stream.cancel()
    await asyncio.wait_for(methods.gone.wait(), 10)


async def test_a_connection_that_ends_cancels_its_calls(channel: Channel, methods: Methods) -> None:
    stream = call(channel, "hold")
    assert await stream.read() == b"here"
    await channel.close()
    await asyncio.wait_for(methods.gone.wait(), 10)


async def test_what_is_not_read_makes_the_client_wait(channel: Channel, methods: Methods) -> None:
    stream = call(channel, "slow")

    async def send() -> None:
        for _ in range(64):
            await stream.write(bytes(1 << 20))
        await stream.done_writing()

    sending = asyncio.create_task(send())
    other = call(channel, "echo")
    for _ in range(20):  # nothing tells that a client waits; the others go on
        await other.write(b"x")
        assert await other.read() == b"x"
    assert not sending.done()
    methods.release.set()
    assert [1 << 20] * 64 == [await size(stream) for _ in range(64)]
    await sending
    assert await status(stream) is grpc.StatusCode.OK


async def test_a_client_that_does_not_read_makes_the_call_wait(channel: Channel, methods: Methods) -> None:
    stream = call(channel, "told")
    other = call(channel, "echo")
    for _ in range(20):
        await other.write(b"x")
        assert await other.read() == b"x"
    assert not methods.release.is_set()
    assert [1 << 20] * 64 == [await size(stream) for _ in range(64)]
    assert await status(stream) is grpc.StatusCode.OK


async def test_calls_are_cancelled_when_the_server_stops(tmp_path: pathlib.Path, methods: Methods) -> None:
    for transport in ("own", "grpcio"):
        methods.gone.clear()
        async with serving(transport, methods.all(), str(tmp_path)) as opened:
            stream = call(opened, "hold")
            assert await stream.read() == b"here"
        await asyncio.wait_for(methods.gone.wait(), 10)
