import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from zurelay.http1 import Server
from zurelay.http1_messages import Reply, Request

Answer = Callable[[Reply], None]
Ask = Callable[..., Awaitable[bytes]]


def test_a_path_has_no_query() -> None:
    assert Request(connection=1, target="/a/b?c=d?e").path == "/a/b"


def test_a_header_is_found_whatever_its_case() -> None:
    request = Request(connection=1, headers=(("Accept", "a"), ("ACCEPT", "b")))
    assert (request.header("accept"), request.header("host")) == ("a", None)


@pytest.fixture(name="ask")
async def _ask() -> AsyncIterator[Ask]:
    servers: list[Server] = []

    async def ask(answer: Answer, request: bytes = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n") -> bytes:
        async def handle(_: Request, reply: Reply) -> None:
            answer(reply)

        server = Server(handle)
        servers.append(server)
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.listen("127.0.0.1", 0))
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()

    yield ask
    for server in servers:
        await server.stop()


def chunked(reply: Reply) -> None:
    reply.start(200, [("a", "b")])
    reply.send(b"abc")
    reply.send(b"")
    reply.send(b"de")
    reply.finish()


def counted(reply: Reply) -> None:
    reply.whole(529, [], b"abcde")


def short(reply: Reply) -> None:
    reply.start(200, length=9)
    reply.send(b"abc")
    reply.finish()


def cut(reply: Reply) -> None:
    reply.start(200)
    reply.send(b"abc")
    reply.close()


def empty(reply: Reply) -> None:
    reply.start(204)
    reply.finish()


def silent(reply: Reply) -> None:
    reply.close()


KEPT = b"GET / HTTP/1.1\r\n\r\n"
ENDED = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
ANSWERS = {
    "chunked": (chunked, ENDED, b"HTTP/1.1 200 OK|a: b|transfer-encoding: chunked|connection: close||3|abc|2|de|0||"),
    "with a length": (counted, ENDED, b"HTTP/1.1 529 Unknown|content-length: 5|connection: close||abcde"),
    "to HTTP/1.0": (chunked, b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK|a: b|connection: close||abcde"),
    "to HEAD": (
        counted,
        b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 529 Unknown|content-length: 5|connection: close||",
    ),
    "without content": (empty, ENDED, b"HTTP/1.1 204 No Content|connection: close||"),
    "shorter than its length": (short, KEPT, b"HTTP/1.1 200 OK|content-length: 9||abc"),
    "cut": (cut, KEPT, b"HTTP/1.1 200 OK|transfer-encoding: chunked||3|abc|"),
    "nothing": (silent, KEPT, b""),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_framed_as_it_was_begun(ask: Ask, name: str) -> None:
    answer, request, expected = ANSWERS[name]
    said = await ask(answer, request)
    lines = [line for line in said.split(b"\r\n") if not line.startswith(b"date: ")]
    assert expected == b"|".join(lines)


async def test_a_reset_comes_as_one(ask: Ask) -> None:
    with pytest.raises(ConnectionResetError):
        await ask(Reply.reset)


async def test_a_reply_counts_the_body_that_it_sent(ask: Ask) -> None:
    sent: list[int] = []

    def answer(reply: Reply) -> None:
        chunked(reply)
        sent.append(reply.sent)

    await ask(answer)
    assert sent == [5]
