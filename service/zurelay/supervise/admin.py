"""Asks Envoy over its admin interface, mostly a Unix socket in the run directory (Envoy docs, operations/admin)."""

from __future__ import annotations

import asyncio
import http.client
import socket
import urllib.parse
from collections.abc import Callable

_SECONDS = 5.0
_PATIENT = 30.0  # for a dump of thousands of clusters


class AdminError(Exception):
    """Envoy can't be asked, or answers that it can't say."""


class EnvoyAwayError(AdminError):
    """No Envoy runs here, or none yet."""


class WrongUrlError(Exception):
    """No admin interface can be reached by this."""


class Admin:
    """The admin interface of one Envoy, on the Unix socket of this path."""

    def __init__(self, path: str) -> None:
        self._where = f"Envoy's admin socket {path}"
        self._connection: Callable[[float], http.client.HTTPConnection] = lambda seconds: _UnixConnection(path, seconds)

    @classmethod
    def at(cls, url: str) -> Admin:
        """Reach it by `unix:PATH` or `http://HOST:PORT`."""
        scheme, _, path = url.partition(":")
        if scheme == "unix" and path:
            return cls(path)
        host, port = _place(url)
        admin = cls("")
        admin._where = f"Envoy's admin interface {url}"
        admin._connection = lambda seconds: http.client.HTTPConnection(host, port, timeout=seconds)
        return admin

    async def ask(self, path: str, method: str = "GET") -> str:
        """Send one request and give the answer's body."""
        return await asyncio.to_thread(self._ask, method, path, _SECONDS)

    async def about(self) -> list[str]:
        """Give what it tells of itself: /server_info, /runtime and /config_dump."""
        paths = ("/server_info", "/runtime", "/config_dump")
        return [await asyncio.to_thread(self._ask, "GET", path, _PATIENT) for path in paths]

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

    def _ask(self, method: str, path: str, seconds: float) -> str:
        connection = self._connection(seconds)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", "replace")
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise EnvoyAwayError(f"{self._where}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise AdminError(f"{self._where}: {error}") from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise AdminError(f"Envoy answers {answer.status} to {method} {path}: {body.strip()[:200]}")
        return body


def _place(url: str) -> tuple[str, int]:
    try:
        found = urllib.parse.urlsplit(url)
        host, port = found.hostname, found.port or http.client.HTTP_PORT
    except ValueError:
        host = None
    if host is None or found.scheme != "http" or found.path.strip("/") or found.query:
        raise WrongUrlError(f"{url!r} is neither http://HOST:PORT nor unix:PATH")
    return host, port


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("envoy", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
