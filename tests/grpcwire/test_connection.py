"""Our own connection with a client that is no grpcio: refusals, goodbyes, floods, random bytes."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator

import hpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grpcwire.methods import LIMIT, Methods
from http2.peer import ALL, HEADERS, data, head, request, reset, update, window
from zurelay.grpcwire.messages import framed
from zurelay.grpcwire.server import Server
from zurelay.http2.frames import Code, Flag, Kind, frame
from zurelay.http2.reader import PREFACE

BEGIN = PREFACE + window(ALL) + update(0, ALL)
ECHO = [(name, "/t.T/echo" if name == ":path" else value) for name, value in HEADERS]


def to(name: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [(key, f"/t.T/{name}" if key == ":path" else value) for key, value in HEADERS] + list(more)


class Raw:
    """A client that sends bytes and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.decoder = hpack.Decoder()

    async def frame(self) -> tuple[int, int, int, bytes]:
        """The next frame; () at the end of the connection."""
        first = await asyncio.wait_for(self.reader.readexactly(9), 10)
        payload = await self.reader.readexactly(int.from_bytes(first[:3]))
        return first[3], first[4], int.from_bytes(first[5:9]), payload

    async def until(self, kind: int) -> tuple[int, int, bytes]:
        """The next frame of a kind: flags, stream, payload."""
        while True:
            found, flags, number, payload = await self.frame()
            if found == kind:
                return flags, number, payload

    async def headers(self) -> tuple[int, dict[str, str]]:
        flags, _, block = await self.until(Kind.HEADERS)
        return flags, {str(name): str(value) for name, value in self.decoder.decode(block)}

    async def is_over(self) -> bool:
        await asyncio.wait_for(self.reader.read(), 10)
        return self.reader.at_eof()


@pytest.fixture
def methods() -> Methods:
    return Methods()


@pytest.fixture
async def server(methods: Methods, tmp_path: pathlib.Path) -> AsyncIterator[Server]:
    running = Server(methods.all(), LIMIT)
    await running.start(str(tmp_path / "s"))
    yield running
    await running.stop()


@pytest.fixture
async def raw(server: Server, tmp_path: pathlib.Path) -> AsyncIterator[Raw]:
    assert server.connections == set()
    made = Raw(*await asyncio.open_unix_connection(str(tmp_path / "s")))
    yield made
    made.writer.close()


async def test_an_answer_has_headers_messages_and_a_status(raw: Raw) -> None:
    raw.writer.write(BEGIN + head(1, ECHO) + data(1, framed(b"x"), end=True))
    flags, first = await raw.headers()
    assert (Flag.END_HEADERS, {":status": "200", "content-type": "application/grpc"}) == (flags, first)
    assert (0, 1, framed(b"x")) == await raw.until(Kind.DATA)
    flags, last = await raw.headers()
    assert (Flag.END_HEADERS | Flag.END_STREAM, {"grpc-status": "0"}) == (flags, last)


async def test_a_refusal_without_an_answer_is_all_in_its_head(raw: Raw) -> None:
    raw.writer.write(BEGIN + head(1, to("refuse")) + data(1, end=True))
    flags, told = await raw.headers()
    assert Flag.END_HEADERS | Flag.END_STREAM == flags
    assert {
        ":status": "200",
        "content-type": "application/grpc",
        "grpc-status": "3",
        "grpc-message": "100%25 ung%C3%BCltig%0A",
    } == told


@pytest.mark.parametrize("change", [(":method", "GET"), ("content-type", "application/json")])
async def test_what_is_no_grpc_is_refused(raw: Raw, change: tuple[str, str]) -> None:
    headers = [change if name == change[0] else (name, value) for name, value in ECHO]
    raw.writer.write(BEGIN + head(1, headers) + data(1, end=True))
    flags, told = await raw.headers()
    assert (Flag.END_HEADERS | Flag.END_STREAM, "415") == (flags, told[":status"])


async def test_a_compressed_message_is_refused(raw: Raw) -> None:
    raw.writer.write(BEGIN + head(1, to("echo", ("grpc-encoding", "gzip"))) + data(1, b"\1\0\0\0\1x"))
    assert "12" == (await raw.headers())[1]["grpc-status"]
    assert (0, 1, Code.NO_ERROR.to_bytes(4)) == await raw.until(Kind.RESET)


async def test_a_fault_is_told_and_ends_the_connection_with_its_calls(raw: Raw, methods: Methods) -> None:
    raw.writer.write(BEGIN + head(1, to("hold")))
    await raw.until(Kind.DATA)
    raw.writer.write(frame(Kind.PUSH, 0, 1, b""))
    _, _, told = await raw.until(Kind.GOAWAY)
    assert (1, Code.PROTOCOL, b"a client promises nothing") == (
        int.from_bytes(told[:4]),
        int.from_bytes(told[4:8]),
        told[8:],
    )
    assert await raw.is_over()
    await asyncio.wait_for(methods.gone.wait(), 10)


async def test_a_client_that_cuts_a_stream_at_once_is_not_served(raw: Raw, methods: Methods) -> None:
    raw.writer.write(BEGIN + b"".join(head(number, to("hold")) + reset(number) for number in range(1, 2_001, 2)))
    raw.writer.write(head(2_001, ECHO) + data(2_001, framed(b"x")))
    assert (0, 2_001, framed(b"x")) == await raw.until(Kind.DATA)
    assert not methods.gone.is_set()  # none of them had begun


async def test_a_flood_whose_answers_nobody_reads_ends_the_connection(raw: Raw, server: Server) -> None:
    async def flood() -> None:
        while True:
            raw.writer.write(frame(Kind.PING, 0, 0, b"12345678") * 1_000)
            await raw.writer.drain()

    raw.writer.write(BEGIN)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(flood(), 10)
    assert server.connections == set()


async def test_a_server_that_stops_says_goodbye_and_lets_calls_end(raw: Raw, server: Server, methods: Methods) -> None:
    raw.writer.write(BEGIN + head(1, to("slow")) + data(1, framed(b"x"), end=True) + frame(Kind.PING, 0, 0, bytes(8)))
    await raw.until(Kind.PING)
    stopping = asyncio.create_task(server.stop(10))
    _, _, told = await raw.until(Kind.GOAWAY)
    assert (1, Code.NO_ERROR) == (int.from_bytes(told[:4]), int.from_bytes(told[4:8]))
    methods.release.set()
    assert (0, 1, framed(b"x")) == await raw.until(Kind.DATA)
    assert "0" == (await raw.headers())[1]["grpc-status"]
    await asyncio.wait_for(stopping, 10)
    assert await raw.is_over()


async def test_what_is_written_and_not_read_is_bounded(raw: Raw, server: Server, methods: Methods) -> None:
    raw.writer.write(
        PREFACE + window(2**31 - 1) + update(0, 2**30) + head(1, to("told")) + frame(Kind.PING, 0, 0, bytes(8))
    )
    await raw.until(Kind.DATA)
    (connection,) = server.connections
    transport = connection._transport
    assert transport is not None
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert transport.get_write_buffer_size() < 256 << 10  # a piece of a message, and what the socket had no room for
    assert not methods.release.is_set()


async def test_a_call_has_its_turn_among_others_that_fill_the_socket(raw: Raw) -> None:
    """Each of the others has 64 MiB to tell; its word doesn't wait for that."""
    floods = b"".join(head(number, to("told")) for number in range(1, 41, 2))
    raw.writer.write(PREFACE + window(2**31 - 1) + update(0, 2**30) + floods)
    await raw.until(Kind.DATA)
    raw.writer.write(head(41, to("echo")) + data(41, framed(b"x"), end=True))
    before, found = 0, (0, 0)
    while found != (Kind.DATA, 41):
        kind, _, number, payload = await raw.frame()
        found = kind, number
        before += len(payload)
    assert before < 16 << 20


FRAMES = st.builds(
    frame, st.integers(0, 10), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5]), st.binary(max_size=40)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.lists(FRAMES, max_size=15).map(b"".join)), st.booleans())
async def test_random_bytes_never_hang_or_break_the_server(
    server: Server, tmp_path: pathlib.Path, sent: bytes, begin: bool
) -> None:
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write((BEGIN + request(1, framed(b"x"), end=False) if begin else b"") + sent)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), 10)
    writer.close()
    other = Raw(*await asyncio.open_unix_connection(str(tmp_path / "s")))
    other.writer.write(BEGIN + head(1, ECHO) + data(1, framed(b"x"), end=True))
    assert (0, 1, framed(b"x")) == await other.until(Kind.DATA)
    other.writer.close()
    assert server.limit == LIMIT
