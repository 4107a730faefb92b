import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
import trustme

from zurelay.http1 import Bounds, Handler, Reply, Request, Server

END = b"Connection: close\r\n\r\n"
SMALL = Bounds(head=1000, body=1000, seconds=0.1)


async def echo(request: Request, reply: Reply) -> None:
    facts = [request.method, request.target, dict(request.headers), request.body.decode()]
    reply.whole(200, [("content-type", "application/json")], msgspec.json.encode(facts))


@pytest.fixture(name="servers")
async def _servers() -> AsyncIterator[list[Server]]:
    made: list[Server] = []
    yield made
    for server in made:
        await server.stop()


async def start(servers: list[Server], handler: Handler = echo, bounds: Bounds | None = None) -> int:
    servers.append(Server(handler, bounds))
    return await servers[-1].listen("127.0.0.1", 0)


async def talk(port: int, *pieces: bytes) -> bytes:
    """Send pieces, each by itself, and give all that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    said = await reader.read()
    writer.close()
    return said


async def until(met: Callable[[], bool]) -> None:
    while not met():  # noqa: ASYNC110  what goes on inside a connection has no event
        await asyncio.sleep(0)


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


def body_of(said: bytes) -> bytes:
    return said.partition(b"\r\n\r\n")[2]


REQUESTS = {
    "without a body": (b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n" + END, ["GET", "/a?b=c", ""]),
    "with a length": (b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n" + END + b"abc", ["POST", "/a", "abc"]),
    "chunked": (
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END + b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
        ["POST", "/a", "abc"],
    ),
    "HTTP/1.0": (b"GET /a HTTP/1.0\r\n\r\n", ["GET", "/a", ""]),
    "asking for another protocol": (
        b"GET /a HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        ["GET", "/a", ""],
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("bytewise", [False, True])
async def test_a_request_arrives_whole_however_it_was_cut(servers: list[Server], name: str, bytewise: bool) -> None:
    sent, expected = REQUESTS[name]
    port = await start(servers)
    said = await talk(port, *([bytes((byte,)) for byte in sent] if bytewise else [sent]))
    method, target, _, body = msgspec.json.decode(body_of(said))
    assert [*expected, 200] == [method, target, body, status_of(said)]


async def test_headers_keep_their_names_order_and_empty_values_and_trailers_are_no_headers(
    servers: list[Server],
) -> None:
    port = await start(servers)
    head = b"POST / HTTP/1.1\r\nA: 1\r\nb:\r\nTransfer-Encoding: chunked\r\n" + END
    said = await talk(port, head + b"0\r\nt: 1\r\n\r\n")
    headers = msgspec.json.decode(body_of(said))[2]
    assert headers == {"A": "1", "b": "", "Transfer-Encoding": "chunked", "Connection": "close"}


async def test_requests_on_one_connection_are_answered_in_order(servers: list[Server]) -> None:
    port = await start(servers)
    sent = b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(30)) + b"GET /last HTTP/1.1\r\n" + END
    said = await talk(port, sent)
    targets = [
        msgspec.json.decode(b"[" + part.split(b"\r\n\r\n[")[1].split(b"HTTP/1.1")[0])[1]
        for part in said.split(b"200 OK")[1:]
    ]
    assert [*(f"/{number}" for number in range(30)), "/last"] == targets


REFUSED = {
    "no HTTP": (b"nonsense\r\n\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "length and chunked": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "a header too long": (b"GET / HTTP/1.1\r\nA: " + b"a" * 1000 + b"\r\n\r\n", 431),
    "a target too long": (b"GET /" + b"a" * 1000 + b" HTTP/1.1\r\n\r\n", 431),
    "a length over the bound": (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", 413),
    "chunks over the bound": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"a" * 1001, 413),
    "a head that doesn't end": (b"GET / HTTP/1.1\r\n", 408),
    "a body that doesn't end": (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 408),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cant_be_read_is_refused_and_the_connection_ends(servers: list[Server], name: str) -> None:
    sent, expected = REFUSED[name]
    port = await start(servers, bounds=SMALL)
    said = await talk(port, sent[:40], sent[40:])
    assert (expected, True) == (status_of(said), b"connection: close" in said)


async def test_a_header_without_end_is_refused_before_its_time_is_up(servers: list[Server]) -> None:
    port = await start(servers, bounds=Bounds(head=1000))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nA: a")
    await until(lambda: any(connection._in_head for connection in servers[0].connections))
    writer.write(b"a" * 1001)
    assert status_of(await reader.read()) == 431
    writer.close()


async def test_a_body_that_comes_with_the_end_of_its_head_is_no_head(servers: list[Server]) -> None:
    port = await start(servers, bounds=Bounds(head=1000))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nA: a")
    await until(lambda: any(connection._in_head for connection in servers[0].connections))
    writer.write(b"a\r\nContent-Length: 1001\r\n" + END + b"a" * 1001)
    assert status_of(await reader.read()) == 200
    writer.close()


async def test_a_refusal_waits_for_the_answer_before_it(servers: list[Server]) -> None:
    port = await start(servers)
    said = await talk(port, b"GET /good HTTP/1.1\r\n\r\nnonsense\r\n\r\n")
    assert [int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:]] == [200, 400]


async def test_a_body_at_the_bound_passes(servers: list[Server]) -> None:
    port = await start(servers, bounds=SMALL)
    said = await talk(port, b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n" + END + b"a" * 1000)
    assert status_of(said) == 200


async def test_a_client_that_expects_it_is_told_to_continue(servers: list[Server]) -> None:
    port = await start(servers)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + END)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"ab")
    assert status_of(await reader.read()) == 200
    writer.close()


async def test_a_client_that_leaves_cancels_the_handler(servers: list[Server]) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    left: list[bool] = []

    async def wait(_: Request, reply: Reply) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.append(reply.left)
            ended.set()

    port = await start(servers, wait)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await begun.wait()
    writer.close()
    await ended.wait()
    assert left == [True]


async def test_stopping_cancels_handlers_whose_clients_did_not_leave(servers: list[Server]) -> None:
    begun = asyncio.Event()
    left: list[bool] = []

    async def wait(_: Request, reply: Reply) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.append(reply.left)

    port = await start(servers, wait)
    asking = asyncio.create_task(talk(port, b"GET / HTTP/1.1\r\n\r\n"))
    await begun.wait()
    await servers[0].stop()
    await asyncio.wait([asking])
    assert (left, isinstance(asking.exception(), TimeoutError)) == ([False], False)


async def test_a_handler_that_fails_before_its_answer_gives_500(
    servers: list[Server], caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: Request, __: Reply) -> None:
        raise LookupError("gone")

    port = await start(servers, fail)
    said = await talk(port, b"GET /x HTTP/1.1\r\n" + END)
    assert (status_of(said), "the handler failed at GET /x" in caplog.text) == (500, True)


async def test_a_handler_that_fails_within_its_answer_leaves_it_unfinished(servers: list[Server]) -> None:
    async def fail(_: Request, reply: Reply) -> None:
        reply.start(200)
        reply.send(b"abc")
        raise LookupError("gone")

    port = await start(servers, fail)
    assert body_of(await talk(port, b"GET /x HTTP/1.1\r\n\r\n")) == b"3\r\nabc\r\n"


async def test_a_slow_reader_holds_the_handler_back(servers: list[Server]) -> None:
    total = 64 << 20
    sent = 0

    async def flood(_: Request, reply: Reply) -> None:
        nonlocal sent
        reply.start(200, length=total)
        while sent < total:
            reply.send(bytes(1 << 16))
            await reply.drain()
            sent += 1 << 16
        reply.finish()

    port = await start(servers, flood)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n" + END)
    await until(lambda: any(not connection.writable.is_set() for connection in servers[0].connections))
    assert sent < total
    assert total == len(body_of(await reader.read()))
    writer.close()


async def test_it_listens_on_a_unix_socket(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server(echo))
    await servers[0].listen_unix(str(tmp_path / "socket"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "socket"))
    writer.write(b"GET /unix HTTP/1.1\r\n" + END)
    assert msgspec.json.decode(body_of(await reader.read()))[1] == "/unix"
    writer.close()


async def test_it_speaks_tls(servers: list[Server]) -> None:
    authority = trustme.CA()
    theirs, ours = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(theirs)
    authority.issue_cert("localhost").configure_cert(ours)
    servers.append(Server(echo))
    port = await servers[0].listen("127.0.0.1", 0, ours)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=theirs, server_hostname="localhost")
    writer.write(b"GET /tls HTTP/1.1\r\n" + END)
    assert msgspec.json.decode(body_of(await reader.read()))[1] == "/tls"
    writer.close()
