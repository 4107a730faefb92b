"""Asks Envoy over its admin interface, a Unix socket in the run directory (Envoy docs, operations/admin)."""

from __future__ import annotations

import asyncio
import http.client
import socket
import urllib.parse

_SECONDS = 5.0


class AdminError(Exception):
    """Envoy can't be asked, or answers that it can't say."""


class EnvoyAwayError(AdminError):
    """No Envoy runs here, or none yet."""


class Admin:
    """The admin interface of one Envoy."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def ask(self, path: str, method: str = "GET") -> str:
        """Send one request and give the answer's body."""
        return await asyncio.to_thread(self._ask, method, path)

    async def stats(self, pattern: str) -> dict[str, str]:
        """Give the counters, gauges and texts whose names match a regular expression (RE2)."""
        text = await self.ask("/stats?filter=" + urllib.parse.quote(pattern))
        found = {}
        for line in text.splitlines():
            name, _, value = line.partition(": ")
            found[name] = value.strip('"')
        return found

    async def metrics(self) -> str:
        """Give what has been counted so far, in Prometheus' text format."""
        return await self.ask("/stats/prometheus?usedonly")

    async def drain(self) -> None:
        """Let the public listener's clients go elsewhere: each answer from now on ends its connection."""
        await self.ask("/drain_listeners?graceful&inboundonly", "POST")

    def _ask(self, method: str, path: str) -> str:
        connection = _UnixConnection(self._path)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", "replace")
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise EnvoyAwayError(f"Envoy's admin socket {self._path}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise AdminError(f"Envoy's admin socket {self._path}: {error}") from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise AdminError(f"Envoy answers {answer.status} to {method} {path}: {body.strip()[:200]}")
        return body


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("envoy", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)
