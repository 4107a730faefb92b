"""A provider's messages stream, made the client's: the catalog's model in its head, all else as it came (SPEC 8)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zurelay import message_event, refusal, sse
from zurelay.chat_stream import StreamError
from zurelay.errors import InvalidRequest
from zurelay.formats import anthropic_usage
from zurelay.jsonedit import Document
from zurelay.sse import Event
from zurelay.usage import Usage

_BYTES_PER_TOKEN = 4  # of generated text, for the estimate of an answer that broke off


class MessagesStream:
    """One answer's events, on their way to a client that speaks the same format."""

    __slots__ = ("_counts", "_model", "_reported", "_spoken", "done", "finish_reasons")

    wants_usage = False

    def __init__(self, model: str) -> None:
        self._model = msgspec.json.encode(model)
        self._counts: dict[str, object] = {}
        self._reported = False  # the provider has said what the whole answer used
        self._spoken = 0
        self.finish_reasons: list[str] = []
        self.done = False

    def feed(self, event: Event) -> bytes:
        """Take one event; give what the client gets for it."""
        data = event.data
        if self.done or data is None or not data.strip():
            return b""
        read = message_event.read(data)
        if read is None or event.name == "error" or read.type == "error" or read.error:
            raise StreamError(refusal.read(data).message)
        self._note(read, len(data))
        if read.message is not None:
            return sse.encode(self._with_model(data), event.name or None)
        return event.raw if event.whole else sse.encode(data, event.name or None)

    def end(self) -> bytes | None:
        """The provider's stream is over: nothing more, or None where it was cut short."""
        return b"" if self.done else None

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give the provider's usage; where the answer broke off, an estimate of what was said."""
        known = anthropic_usage.from_anthropic(self._counts)
        if self._reported:
            return known
        said = -(-self._spoken // _BYTES_PER_TOKEN)
        return msgspec.structs.replace(
            known, prompt=known.prompt or prompt(), completion=max(known.completion, said), estimated=True
        )

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:  # noqa: ARG002  # the seam's signature
        """Give nothing: message_delta has the usage."""
        return b""

    def _note(self, read: message_event.MessageEvent, size: int) -> None:
        if read.message is not None and read.message.usage is not None:
            self._counts = anthropic_usage.merged(self._counts, read.message.usage)
        if read.type == "message_delta":
            self._counts = anthropic_usage.merged(self._counts, read.usage or {})
            self._reported = self._reported or read.usage is not None
            if read.delta is not None and isinstance(read.delta.stop_reason, str):
                self.finish_reasons = [read.delta.stop_reason]
        elif read.type == "content_block_delta" and read.delta is not None:
            text = read.delta.text or read.delta.thinking or read.delta.partial_json
            self._spoken += len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else size
        elif read.type == "message_stop":
            self.done = True

    def _with_model(self, data: bytes) -> bytes:
        try:
            document = Document.parse(data)
            message = document.raw("message")
            if message is None:
                return data
            return document.edit({"message": Document.parse(message).edit({"model": self._model})})
        except InvalidRequest as error:
            raise StreamError(refusal.read(data).message) from error
