"""A client on a socket of its own, for tests that look at single bytes, at when they come, or that don't read them."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

import h11
import msgspec

from e2e.harness import Gateway

_LINE_END = re.compile("\r\n|\n|\r")
_CHAT = "/v1/chat/completions"


class RawClient:
    """One connection. What is not asked for is not read."""

    def __init__(self, gateway: Gateway, receive_buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(30)
        self._socket.connect(("127.0.0.1", gateway.port))
        self._protocol = h11.Connection(h11.CLIENT)
        self.status = 0
        self.headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, body: Mapping[str, Any], headers: Mapping[str, str] | None = None, path: str = _CHAT) -> Self:
        """Send a request; nothing is read yet."""
        data = msgspec.json.encode(body)
        named = {"host": "zurelay", "content-length": str(len(data)), **(headers or {})}
        request = h11.Request(method="POST", target=path, headers=list(named.items()))
        for event in (request, h11.Data(data=data), h11.EndOfMessage()):
            self._socket.sendall(self._protocol.send(event) or b"")
        return self

    def head(self) -> Self:
        """Read as far as the response's head."""
        event = self._next(65536)
        assert isinstance(event, h11.Response)
        self.status = event.status_code
        self.headers = {name.decode(): value.decode() for name, value in event.headers}
        return self

    def pieces(self, at_once: int = 65536) -> Iterator[tuple[float, bytes]]:
        """Read the body to its end, with the time when each piece came; a broken one is h11.RemoteProtocolError."""
        while isinstance(event := self._next(at_once), h11.Data):
            yield time.monotonic(), bytes(event.data)
        assert isinstance(event, h11.EndOfMessage)

    def read(self) -> bytes:
        """Read the whole body."""
        return b"".join(piece for _, piece in self.pieces())

    def read_until(self, wanted: bytes) -> bytes:
        """Read the body until it holds these bytes."""
        found = b""
        for _, piece in self.pieces():
            found += piece
            if wanted in found:
                return found
        raise AssertionError(f"ended without {wanted!r}: {found!r}")

    def again(self) -> Self:
        """Make ready for the next request on this connection, on which nothing may have come meanwhile."""
        assert self._protocol.trailing_data == (b"", False)
        self._protocol.start_next_cycle()
        return self

    def leave(self) -> float:
        """Go away at once, as a process that is killed does; says when."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        return time.monotonic()

    def _next(self, at_once: int) -> h11.Event:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(self._socket.recv(at_once))
        assert isinstance(event, h11.Event)
        return event


class Sse(msgspec.Struct, frozen=True):
    """A stream as a client sees it: each event's data, and the comments in their places, which begin with a colon."""

    lines: list[str]

    @classmethod
    def read(cls, stream: bytes | str) -> Self:
        """Parse by the standard (WHATWG HTML, 9.2.6); what stands after the last blank line is lost, as it says."""
        text = stream if isinstance(stream, str) else stream.decode()
        found: list[str] = []
        data: list[str] = []
        for line in _LINE_END.split(text.removeprefix("\ufeff")):
            field, _, value = line.partition(":")
            if line.startswith(":"):
                found.append(line)
            elif field == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                found.append("\n".join(data))
                data = []
        return cls(found)

    @property
    def events(self) -> list[str]:
        """The events' data."""
        return [line for line in self.lines if not line.startswith(":")]

    @property
    def comments(self) -> list[str]:
        """The comments."""
        return [line for line in self.lines if line.startswith(":")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The events that are JSON."""
        return [msgspec.json.decode(event) for event in self.events if event != "[DONE]"]

    @property
    def error(self) -> dict[str, Any]:
        """The error in the last event, which must be one."""
        error: dict[str, Any] = msgspec.json.decode(self.events[-1])["error"]
        return error

    def joined(self, field: str = "content", choice: int = 0) -> str:
        """The text of a choice's deltas."""
        choices = [one for chunk in self.chunks for one in chunk.get("choices", ()) if one["index"] == choice]
        return "".join(one["delta"].get(field) or "" for one in choices)
