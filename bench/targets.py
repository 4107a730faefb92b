"""What is measured: servers that run and have answered, and how long that took them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from bench.running import BenchError, Running
from bench.servers import CHAT, PATH, Roles, Server, ask

_PATIENCE = 90.0  # seconds: LiteLLM imports for many of them on a busy machine
_ASK_EVERY = 0.02


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server under test. `roles` are the processes that do its work, by what they are; `started`: after how long.

    `whole`: it is asked for whole answers too.
    """

    name: str
    port: int
    headers: dict[str, str]
    roles: Roles
    model: str = str(CHAT["model"])
    started: float = 0.0
    whole: bool = True

    @property
    def url(self) -> str:
        """Where chat requests go."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        return [pid for pids in self.roles.values() for pid in pids]

    @property
    def chat(self) -> dict[str, object]:
        """A small request."""
        return {**CHAT, "model": self.model}


@contextlib.asynccontextmanager
async def running(servers: Sequence[Server], directory: Path) -> AsyncIterator[list[Target]]:
    """Start servers one after another, so that each is timed alone, and end them afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for server in servers:
            began = asyncio.get_running_loop().time()
            process = await Running.start(server.name, server.command, directory, server.env)
            stack.push_async_callback(process.stop)
            found.append(await _ready(server, process, began))
        yield found


async def _ready(server: Server, process: Running, began: float) -> Target:
    """Wait for its first answer."""
    loop = asyncio.get_running_loop()
    while (said := await asyncio.to_thread(ask, server)) is not None:
        process.check()
        if loop.time() > began + _PATIENCE:
            raise BenchError(f"{server.name} does not answer within {_PATIENCE:g} s: {said}")
        await asyncio.sleep(_ASK_EVERY)
    took = loop.time() - began
    process.check()
    return Target(
        name=server.name,
        port=server.port,
        headers=dict(server.headers),
        roles=server.roles(process.pid),
        started=took,
        whole=server.whole,
    )
