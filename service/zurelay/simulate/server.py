"""The simulated provider's shell: it listens, counts, remembers what came, and carries out what `respond` decides."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import email.utils
import hashlib
import resource
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import msgspec

from zurelay import http1
from zurelay.simulate.actions import Action, Close, End, Hang, Head, Pause, Reset, Send
from zurelay.simulate.respond import Facts, Settings, respond

_KEYS = 10_000  # sequences whose attempts are counted; the oldest are forgotten
_JSON = (("content-type", "application/json"),)


class Config(Settings, frozen=True, kw_only=True):
    """How the provider behaves, and how much of the requests it remembers: how many, and bytes of each body."""

    keep_requests: int = 1000
    keep_body: int = 64 << 10
    largest_body: int = 128 << 20


class Record(msgspec.Struct, kw_only=True):
    """One request that came. `at` and `left` are the loop's seconds; `left` None: the client stayed to the end."""

    number: int
    connection: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    length: int
    sha256: str
    at: float
    spec: str = "ok"
    status: int | None = None
    sent: int = 0
    ended: bool = False
    left: float | None = None

    def header(self, name: str) -> str | None:
        """Find the first header of this lower-case name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class SimulatedProvider:
    """An HTTP server that answers as OpenAI and Anthropic do, and goes wrong on request."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.requests: collections.deque[Record] = collections.deque(maxlen=self.config.keep_requests)
        self._server = http1.Server(self._handle, http1.Bounds(body=self.config.largest_body))
        self._seen: collections.OrderedDict[tuple[str, ...], int] = collections.OrderedDict()
        self._changed = asyncio.Event()
        self._count = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0, ssl_context: ssl.SSLContext | None = None) -> int:
        """Listen, and give the port; 0 takes a free one."""
        return await self._server.listen(host, port, ssl_context)

    async def stop(self) -> None:
        """Cut every connection and end."""
        await self._server.stop()

    def reset(self) -> None:
        """Forget all requests and sequences."""
        self.requests.clear()
        self._seen.clear()

    async def until(self, met: Callable[[Sequence[Record]], bool], seconds: float = 10.0) -> None:
        """Wait until the requests are as `met` wants them; TimeoutError if they don't become so."""
        async with asyncio.timeout(seconds):
            while not met(tuple(self.requests)):
                self._changed.clear()
                await self._changed.wait()

    async def _handle(self, request: http1.Request, reply: http1.Reply) -> None:
        if request.path in {"/_requests", "/_reset"}:
            self._administer(request, reply)
            return
        record = self._remember(request)
        try:
            response = respond(_facts(request), self.config, self._attempt)
            record.spec = response.spec
            await _play(response.actions, reply)
        finally:
            record.status, record.sent, record.ended = reply.status, reply.sent, True
            record.left = asyncio.get_running_loop().time() if reply.left else None
            self._changed.set()

    def _remember(self, request: http1.Request) -> Record:
        self._count += 1
        record = Record(
            number=self._count,
            connection=request.connection,
            method=request.method,
            path=request.target,
            headers=request.headers,
            body=request.body[: self.config.keep_body],
            length=len(request.body),
            sha256=hashlib.sha256(request.body).hexdigest(),
            at=asyncio.get_running_loop().time(),
        )
        self.requests.append(record)
        self._changed.set()
        return record

    def _attempt(self, key: tuple[str, ...]) -> int:
        """Count an attempt; gives how many came before it."""
        before = self._seen.pop(key, 0)
        self._seen[key] = before + 1
        if len(self._seen) > _KEYS:
            self._seen.popitem(last=False)
        return before

    def _administer(self, request: http1.Request, reply: http1.Reply) -> None:
        wanted = "GET" if request.path == "/_requests" else "POST"
        if request.method != wanted:
            reply.whole(405, (*_JSON, ("allow", wanted)), msgspec.json.encode({"error": f"Use {wanted}."}))
            return
        if request.path == "/_reset":
            self.reset()
        told = [_told(record) for record in self.requests]
        reply.whole(200, _JSON, msgspec.json.encode({"requests": told}))


def _facts(request: http1.Request) -> Facts:
    return Facts(
        method=request.method,
        path=request.path,
        headers={name.lower(): value for name, value in request.headers},
        body=request.body,
        id=secrets.token_hex(12),
        created=int(time.time()),
    )


def _told(record: Record) -> dict[str, Any]:
    return {**msgspec.structs.asdict(record), "body": record.body.decode("utf-8", "replace")}


async def _play(actions: Iterator[Action], reply: http1.Reply) -> None:
    """Carry out actions; those without a pause between them go out together."""
    for action in actions:
        match action:
            case Send(data):
                reply.send(data)
                if reply.full:
                    await reply.drain()
            case Pause(seconds):
                await reply.drain(seconds)
            case Head(status, headers, length, retry_at):
                date = (
                    ()
                    if retry_at is None
                    else (("retry-after", email.utils.formatdate(time.time() + retry_at, usegmt=True)),)
                )
                reply.start(status, (*headers, *date), length=length)
            case Hang():
                reply.flush()
                await asyncio.get_running_loop().create_future()
            case End():
                reply.finish()
                return
            case Close():
                reply.close()
                return
            case Reset():
                reply.reset()
                return


async def serve(host: str, port: int, token_pause: float = Config().token_pause) -> None:
    """Print the address and serve until cancelled."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each open stream takes a descriptor
    provider = SimulatedProvider(Config(token_pause=token_pause))
    port = await provider.start(host, port)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Simulated provider, OpenAI and Anthropic format: http://{shown}:{port}/v1")
    try:
        await asyncio.Event().wait()
    finally:
        await provider.stop()


def run(host: str, port: int, token_pause: float = Config().token_pause) -> None:
    """Serve until interrupted."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(host, port, token_pause))
