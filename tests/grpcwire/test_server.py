"""The server as a whole; what a call is like on it: test_conformance.py, test_connection.py."""

from __future__ import annotations

import asyncio
import pathlib

import grpc
import grpc.aio

from grpcwire.methods import Methods, call, status
from zurelay.grpcwire.server import Server


async def test_a_socket_that_a_dead_server_left_is_taken_over(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "s")
    for _ in range(2):
        server = Server(Methods().all(), 100)
        await server.start(path)
        # Else the second channel takes over what is left of the first one's connection.
        own = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"unix:{path}", options=own) as channel:
            stream = call(channel, "negate")
            await stream.write(b"7")
            assert b"-7" == await stream.read()
        await server.stop()


async def test_the_limit_may_change_while_it_serves(tmp_path: pathlib.Path) -> None:
    server = Server(Methods().all(), 1)
    await server.start(str(tmp_path / "s"))
    async with grpc.aio.insecure_channel(f"unix:{tmp_path / 's'}") as channel:
        stream = call(channel, "echo")
        await stream.write(b"12")
        assert await status(stream) is grpc.StatusCode.RESOURCE_EXHAUSTED
        server.limit = 2
        stream = call(channel, "echo")
        await stream.write(b"12")
        assert b"12" == await stream.read()
    await server.stop()


async def test_a_server_that_never_started_stops() -> None:
    await Server([], 1).stop()


async def test_calls_that_take_longer_than_the_grace_are_cancelled(tmp_path: pathlib.Path) -> None:
    methods = Methods()
    server = Server(methods.all(), 100)
    await server.start(str(tmp_path / "s"))
    async with grpc.aio.insecure_channel(f"unix:{tmp_path / 's'}") as channel:
        stream = call(channel, "hold")
        assert await stream.read() == b"here"
        await asyncio.wait_for(server.stop(0.05), 10)
        assert methods.gone.is_set()
        assert await status(stream) is grpc.StatusCode.UNAVAILABLE
