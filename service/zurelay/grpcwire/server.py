"""Our own gRPC server, for Envoy's streams on a Unix socket: a task a call, one write for all that is ready.

grpcio's asyncio server does it for any client, at several times the processor time (docs/decisions/0008).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from zurelay.grpcwire.calls import Method
from zurelay.grpcwire.connection import Connection

_BACKLOG = 1024
_CLOSING = 3.0  # seconds: longer than a connection lingers


class Server:
    """Serves methods until it is stopped. `limit` bounds a message, in bytes; it may change at any time."""

    def __init__(self, methods: Iterable[Method[Any]], limit: int) -> None:
        self.methods = {method.path: method for method in methods}
        self.limit = limit
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, path: str) -> None:
        """Listen on a Unix socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Connection(self), path, backlog=_BACKLOG)

    async def stop(self, grace: float = 0) -> None:
        """Stop listening and say goodbye; calls under way have `grace` seconds, then they are cancelled."""
        if self._server is None:
            return
        self._server.close()
        await asyncio.sleep(0)  # what was accepted just now becomes a connection
        for connection in self.connections:
            connection.leave()
        tasks = [task for connection in self.connections for task in connection.tasks]
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = list(self.connections)
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=_CLOSING)
