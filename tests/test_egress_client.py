"""The relay's client, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from zurelay.egress_client import Answer, EgressCall, End, Event

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNKED = b"HTTP/1.1 200 OK\r\nx-zurelay-model: m\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def listening(path: pathlib.Path, serve: Serve) -> AsyncIterator[str]:
    """A server for one test."""
    server = await asyncio.start_unix_server(serve, str(path))
    async with server:
        yield str(path)


async def gathered(call: EgressCall) -> list[Event]:
    """All events to the end, bytes joined."""
    found: list[Event] = []
    while not (found and isinstance(found[-1], End)):
        for event in await call.next(asyncio.get_running_loop().time() + 10):
            if isinstance(event, bytes) and found and isinstance(found[-1], bytes):
                found[-1] += event
            else:
                found.append(event)
    return found


async def test_a_request_goes_out_whole_and_its_answer_comes_back(tmp_path: pathlib.Path) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.extend((head, await reader.readexactly(5)))
        writer.write(CHUNKED + b"3\r\none\r\n")
        await writer.drain()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        writer.close()

    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {"x-a": "é"}, b"hello")
        events = await gathered(call)
        call.close()
    assert events == [
        Answer(200, {"x-zurelay-model": "m", "transfer-encoding": "chunked"}),
        b"onetwo",
        End(clean=True),
    ]
    assert seen == ["POST / HTTP/1.1\r\nhost: egress\r\ncontent-length: 5\r\nx-a: é\r\n\r\n".encode(), b"hello"]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_a_server_is_reached_by_host_and_port_too(host: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, host.strip("[]"), 0)
    async with server:
        call = await EgressCall.open(f"{host}:{server.sockets[0].getsockname()[1]}", "/", {}, b"")
        events = await gathered(call)
        call.close()
    assert events[-1] == End(clean=True)


@pytest.mark.parametrize(
    "sent", [b"", CHUNKED, CHUNKED + b"3\r\none\r\n", b"HTTP/1.1 garbage\r\n\r\n", b"HTTP/1.1 200"]
)
async def test_an_answer_that_breaks_off_is_no_clean_end(tmp_path: pathlib.Path, sent: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {}, b"")
        events = await gathered(call)
        call.close()
    assert events[-1] == End(clean=False)


async def test_an_informational_head_is_not_the_answer(tmp_path: pathlib.Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {}, b"")
        events = await gathered(call)
        call.close()
    assert [type(event) for event in events] == [Answer, End]


async def test_silence_ends_at_each_deadline_and_later_bytes_still_come(tmp_path: pathlib.Path) -> None:
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go_on.wait()
        writer.write(CHUNKED + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    loop = asyncio.get_running_loop()
    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {}, b"")
        assert await call.next(loop.time() + 10 * 0.01) == []
        assert await call.next(loop.time() + 0.01) == []
        go_on.set()
        events = await gathered(call)
        call.close()
    assert events[-1] == End(clean=True)


@pytest.mark.parametrize(("leave", "closed_by_us"), [(True, False), (False, True)])
async def test_leaving_lets_the_answer_end_and_closing_cuts_it(
    tmp_path: pathlib.Path, leave: bool, closed_by_us: bool
) -> None:
    left = asyncio.Event()
    cut: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"3\r\none\r\n")
        await writer.drain()
        await left.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.read(), 0.2)
            cut.set_result(True)
            writer.close()
            return
        writer.write(b"0\r\n\r\n")
        await reader.read()  # the client closes once the answer has ended
        cut.set_result(False)
        writer.close()

    loop = asyncio.get_running_loop()
    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {}, b"")
        while b"one" not in await call.next(loop.time() + 10):
            pass
        call.leave() if leave else call.close()
        left.set()
        assert await asyncio.wait_for(cut, 10) is closed_by_us


async def test_reading_pauses_while_nobody_takes_what_came(tmp_path: pathlib.Path) -> None:
    size = 20 << 20
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536
        writer.close()

    async with listening(tmp_path / "s", serve) as path:
        call = await EgressCall.open(path, "/", {}, b"")
        before = -1
        while before != sent or not sent:  # the server is blocked once a turn of the loop moves nothing
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size
        events = await gathered(call)
        call.close()
    assert sum(len(event) for event in events if isinstance(event, bytes)) == size
