"""A provider that says exactly the bytes that a test gives it, whatever it is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import msgspec

_APART = 0.05  # seconds between two pieces: so that Envoy reads one at a time


class ScriptedProvider:
    """Answers by the model's name, once a connection, on a thread of its own. `asked` are the models, in order."""

    def __init__(self) -> None:
        self.answers: Mapping[str, bytes | list[bytes]] = {}  # pieces of a list come one by one
        self.asked: list[str] = []
        self.at_the_head: bytes | None = None  # said before the body is read
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if self.at_the_head is not None:
                writer.write(self.at_the_head)
                await writer.drain()
            model = msgspec.json.decode(await reader.readexactly(length))["model"]
            self.asked.append(model)
            found = self.answers[model]
            for piece in [found] if isinstance(found, bytes) else found:
                writer.write(piece)
                await writer.drain()
                if not isinstance(found, bytes):
                    await asyncio.sleep(_APART)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # Envoy has left
        finally:
            writer.close()

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def answer(body: bytes, *, status: int = 200, kind: str = "application/json", more: bytes = b"") -> bytes:
    """A response that ends with its connection; `more` are further header lines."""
    head = f"HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\nconnection: close\r\n".encode()
    return head + more + b"\r\n" + body


def whole(content: str = '"a"', more: str = "") -> bytes:
    """A complete answer's body; `content` and `more` are JSON."""
    choice = f'{{"index":0,"message":{{"role":"assistant","content":{content}}},"finish_reason":"stop"}}'
    return f'{{"id":"c","object":"chat.completion","model":"x","choices":[{choice}]{more}}}'.encode()


def chunk(content: str, finish: str = "null") -> bytes:
    """One event of a stream; both are JSON."""
    choice = f'{{"index":0,"delta":{{"content":{content}}},"finish_reason":{finish}}}'
    return f'data: {{"id":"c","object":"chat.completion.chunk","model":"x","choices":[{choice}]}}\n\n'.encode()


ROLE = b'data: {"id":"c","model":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
END = chunk('""', '"stop"')
DONE = b"data: [DONE]\n\n"


def stream(*events: bytes, more: bytes = b"") -> bytes:
    """A streamed response."""
    return answer(b"".join(events), kind="text/event-stream", more=more)
