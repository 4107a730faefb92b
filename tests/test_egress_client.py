"""The relay's client, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from zurelay.egress_client import Answer, Egress, EgressCall, End, Event

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNKED = b"HTTP/1.1 200 OK\r\nx-zurelay-model: m\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def listening(path: pathlib.Path, serve: Serve) -> AsyncIterator[str]:
    """A server for one test; all it served is over in the end."""
    served: list[asyncio.Task[None]] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await serve(reader, writer)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.create_task(one(reader, writer)))

    server = await asyncio.start_unix_server(begin, str(path))
    async with server:
        yield str(path)
        await asyncio.wait_for(asyncio.gather(*served), 10)
    await asyncio.sleep(0)  # closed transports close their sockets


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
        call = await Egress(path).open("/", {"x-a": "é"}, b"hello")
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
        call = await Egress(f"{host}:{server.sockets[0].getsockname()[1]}").open("/", {}, b"")
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
        call = await Egress(path).open("/", {}, b"")
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
        call = await Egress(path).open("/", {}, b"")
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
        call = await Egress(path).open("/", {}, b"")
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
        cut.set_result(False)

    loop = asyncio.get_running_loop()
    async with listening(tmp_path / "s", serve) as path:
        call = await Egress(path).open("/", {}, b"")
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
        call = await Egress(path).open("/", {}, b"")
        before = -1
        while before != sent or not sent:  # the server is blocked once a turn of the loop moves nothing
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size
        events = await gathered(call)
        call.close()
    assert sum(len(event) for event in events if isinstance(event, bytes)) == size


class Counting:
    """A server that answers each request of a connection with the connection's number; `end` is how answers end."""

    def __init__(self, end: bytes = b"0\r\n\r\n", head: bytes = CHUNKED) -> None:
        self.connections = 0
        self.cut = asyncio.Event()
        self._end = end
        self._head = head

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(self._head + b"1\r\n%d\r\n" % number + self._end)
        self.cut.set()
        writer.close()


async def test_a_connection_whose_answer_is_over_serves_the_next_request(tmp_path: pathlib.Path) -> None:
    async with listening(tmp_path / "s", Counting()) as path:
        egress = Egress(path)
        first, second = await egress.open("/", {}, b""), await egress.open("/", {}, b"")
        found = []
        for call in (first, second):
            found.append((await gathered(call))[1])
            call.leave()
        third = await egress.open("/", {}, b"")
        assert (third, True) == (second, third.again)
        assert [b"1", b"2", b"2"] == [*found, (await gathered(third))[1]]
        third.close()
        first.close()


@pytest.mark.parametrize(
    ("end", "head"),
    [(b"", CHUNKED), (b"0\r\n\r\n", CHUNKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))],
    ids=["an answer that isn't over", "an answer that says so"],
)
async def test_a_connection_that_can_not_serve_again_is_not_kept(
    tmp_path: pathlib.Path, end: bytes, head: bytes
) -> None:
    server = Counting(end, head)
    async with listening(tmp_path / "s", server) as path:
        egress = Egress(path)
        call = await egress.open("/", {}, b"")
        while b"1" not in await call.next(asyncio.get_running_loop().time() + 10):
            pass
        call.leave() if end else call.close()
        await asyncio.wait_for(server.cut.wait(), 10)
        other = await egress.open("/", {}, b"")
        assert not other.again
        other.close()


async def test_an_idle_connection_that_is_closed_is_not_used(tmp_path: pathlib.Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"0\r\n\r\n")
        await asyncio.wait_for(parked.wait(), 10)
        writer.close()

    parked = asyncio.Event()
    async with listening(tmp_path / "s", serve) as path:
        egress = Egress(path)
        call = await egress.open("/", {}, b"")
        await gathered(call)
        call.leave()
        parked.set()
        while egress._idle:  # noqa: ASYNC110  # the other side's close comes when it comes
            await asyncio.sleep(0.001)
        other = await egress.open("/", {}, b"")
        assert (False, False) == (other.again, other is call)
        other.close()


async def test_no_answers_trailers_are_the_next_ones_headers(tmp_path: pathlib.Path) -> None:
    async with listening(tmp_path / "s", Counting(b"0\r\nx-trailer: 1\r\n\r\n")) as path:
        egress = Egress(path)
        for again in (False, True):
            call = await egress.open("/", {}, b"")
            head = (await gathered(call))[0]
            assert again is call.again
            assert isinstance(head, Answer)
            assert "x-trailer" not in head.headers
            call.leave()
        call.close()


@pytest.mark.parametrize("behind", [CHUNKED, CHUNKED + b"3\r\none\r\n", CHUNKED + b"0\r\n\r\n", b"x"])
async def test_a_connection_that_says_more_than_it_was_asked_is_not_kept(tmp_path: pathlib.Path, behind: bytes) -> None:
    server = Counting(b"0\r\n\r\n" + behind)
    async with listening(tmp_path / "s", server) as path:
        egress = Egress(path)
        call = await egress.open("/", {}, b"")
        assert [b"1", End(clean=True)] == (await gathered(call))[1:]
        call.leave()
        await asyncio.wait_for(server.cut.wait(), 10)
        other = await egress.open("/", {}, b"")
        assert not other.again
        other.close()
