"""What the tests of both transports call, and how."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from zurelay.grpcwire.calls import Call, CallError, Code, Method, bidirectional, client_streaming, unary
from zurelay.grpcwire.over_grpcio import GrpcioServer
from zurelay.grpcwire.server import Server

Stream = grpc.aio.StreamStreamCall[Any, bytes]
Channel = Any  # grpc.aio.Channel: its types know messages by their serializers, and ours are bytes

LIMIT = 12 << 20  # bytes of a message
_UNBOUND = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def number(message: bytes) -> int:
    return int(message)


class Methods:
    """The methods; `gone` tells of calls that were left."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.release = asyncio.Event()

    def all(self) -> list[Method[Any]]:
        served = (self.echo, self.double, self.early, self.bug, self.refuse, self.hold, self.slow, self.told)
        return [
            *(bidirectional(f"/t.T/{serve.__name__}", bytes, serve) for serve in served),
            unary("/t.T/negate", number, self.negate),
            client_streaming("/t.T/sum", number, self.sum),
        ]

    async def echo(self, call: Call[bytes]) -> None:
        while (message := await call.read()) is not None:
            await call.write(call.metadata.get("mark", "").encode() + message)

    async def double(self, call: Call[bytes]) -> None:
        while (message := await call.read()) is not None:
            await call.write(message)
            await call.write(message)

    async def early(self, call: Call[bytes]) -> None:
        await call.read()
        await call.write(b"enough")

    async def bug(self, call: Call[bytes]) -> None:
        raise KeyError(call.metadata["user-agent"])

    async def refuse(self, _: Call[bytes]) -> None:
        raise CallError(Code.INVALID_ARGUMENT, "100% ungültig\n")

    async def hold(self, call: Call[bytes]) -> None:
        await call.write(b"here")
        try:
            await call.read()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.gone.set()
            raise

    async def slow(self, call: Call[bytes]) -> None:
        await self.release.wait()
        await self.echo(call)

    async def told(self, call: Call[bytes]) -> None:
        """Write more than any window holds, to a client that reads when it likes."""
        for _ in range(64):
            await call.write(bytes(1 << 20))
        self.release.set()

    async def negate(self, question: int) -> bytes:
        return b"%d" % -question

    async def sum(self, call: Call[int]) -> bytes:
        total = 0
        while (one := await call.read()) is not None:
            total += one
        return b"%d" % total


@contextlib.asynccontextmanager
async def serving(transport: str, methods: list[Method[Any]], directory: str) -> AsyncIterator[Channel]:
    """Serve methods by one transport, and give grpcio's client of it."""
    server: Server | GrpcioServer
    if transport == "own":
        server, target = Server(methods, LIMIT), f"unix:{directory}/s"
        await server.start(f"{directory}/s")
    else:
        server = GrpcioServer(methods, LIMIT)
        target = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    async with grpc.aio.insecure_channel(target, options=_UNBOUND) as opened:
        yield opened
    await server.stop()


def call(channel: Channel, name: str, **metadata: str) -> Stream:
    stream: Stream = channel.stream_stream(f"/t.T/{name}")(metadata=tuple(metadata.items()))
    return stream


async def status(stream: Stream) -> grpc.StatusCode:
    return await asyncio.wait_for(stream.code(), 10)


async def size(stream: Stream) -> int:
    """How many bytes the next message has."""
    message = await stream.read()
    assert isinstance(message, bytes)
    return len(message)
