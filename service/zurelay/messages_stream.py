"""A provider's messages stream, made the client's: the catalog's model in its head, all else as it came (SPEC 8)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zurelay import message_event, refusal, sse, surrogates
from zurelay.chat_stream import StreamError
from zurelay.errors import InvalidRequest
from zurelay.formats import anthropic_usage
from zurelay.jsonedit import Document
from zurelay.sse import Event
from zurelay.usage import Usage

_BYTES_PER_TOKEN = 4  # of generated text, for the estimate of an answer that broke off
_BOM = b"\xef\xbb\xbf"
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_INSIDE = frozenset(
    {"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
)


class MessagesStream:
    """One answer's events, on their way to a client that speaks the same format."""

    __slots__ = ("_begun", "_counts", "_model", "_reported", "_said", "_spoken", "done", "finish_reasons")

    wants_usage = False

    def __init__(self, model: str) -> None:
        self._model = msgspec.json.encode(model)
        self._begun = False  # the client has its message_start
        self._said = False  # and something behind it
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
        read = message_event.read(data, event.name)
        if read is None or event.name == "error" or read.is_error:
            raise StreamError(refusal.read(data).message)
        if read.type == "message_start":
            return self._begin(event, data, read)
        if read.type in _INSIDE:
            if not self._begun:
                raise StreamError("")  # no client can read what has no head
            self._said = True
            self._note(read)
        return _as_sent(event, data, read.type)

    def end(self) -> bytes | None:
        """The provider's stream is over: what still belongs to the answer; None where it was cut short."""
        if self.done:
            return b""
        if not self.finish_reasons:
            return None
        self.done = True  # the model had ended: only the last event was missing
        return _STOP

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give the provider's usage; where the answer broke off, an estimate of what was said."""
        known = anthropic_usage.from_anthropic(self._counts)
        if self._reported and not known.estimated:
            return known
        return msgspec.structs.replace(
            known, prompt=known.prompt or prompt(), completion=max(known.completion, self.said), estimated=True
        )

    @property
    def said(self) -> int:
        """How many tokens the model has said, estimated."""
        return -(-self._spoken // _BYTES_PER_TOKEN)

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:  # noqa: ARG002  # the seam's signature
        """Give nothing: message_delta has the usage."""
        return b""

    def _begin(self, event: Event, data: bytes, read: message_event.MessageEvent) -> bytes:
        """Pass the head, once; a second answer in the midst of one is none that a client could read."""
        if self._said:
            raise StreamError("")
        if read.message is not None:
            self._count(read.message.usage)
        if self._begun:
            return b""
        self._begun = True
        return sse.encode(self._with_model(data), event.name or "message_start")

    def _note(self, read: message_event.MessageEvent) -> None:
        delta = read.delta
        if read.type == "content_block_delta":
            self._spoken += delta.spoken if delta is not None else 0
        elif read.type == "message_delta":
            self._count(read.usage)
            self._reported = self._reported or anthropic_usage.tells_output(read.usage)
            if delta is not None and isinstance(delta.stop_reason, str):
                self.finish_reasons = [delta.stop_reason]
        elif read.type == "message_stop":
            self.done = True

    def _count(self, counts: object) -> None:
        if isinstance(counts, dict):
            self._counts = anthropic_usage.merged(self._counts, counts)

    def _with_model(self, data: bytes) -> bytes:
        try:
            return surrogates.edited(data, self._edit)
        except InvalidRequest as error:
            raise StreamError("") from error

    def _edit(self, data: bytes) -> bytes:
        document = Document.parse(data)
        message = document.raw("message")
        if message is None or not message.startswith(b"{"):
            return data
        return document.edit({"message": Document.parse(message).edit({"model": self._model})})


def _as_sent(event: Event, data: bytes, kind: object) -> bytes:
    """Give an event's own bytes; the SDKs pass over one without a name, so it gets its type for one."""
    named = event.name or not (isinstance(kind, str) and kind.isidentifier())
    name = event.name if named else str(kind)
    if not event.whole:
        return sse.encode(data, name or None)
    raw = event.raw.removeprefix(_BOM)  # something of ours may stand before it by now
    return raw if named else b"event: %b\n%b" % (name.encode(), raw)
