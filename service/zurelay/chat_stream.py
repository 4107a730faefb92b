"""A provider's chat stream, made the client's: the catalog's model, reasoning_content, one usage chunk, one end (SPEC 8).

Events come in one by one; bytes for the client come out. What needs no change keeps its bytes.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from zurelay import chunk, refusal, sse, usage
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document, elements
from zurelay.openai_answer import with_reasoning_content
from zurelay.sse import Event
from zurelay.usage import Usage

_MODEL = re.compile(rb'"model"[ \t]*:[ \t]*"(?:[^"\\]|\\.)*"')
_BYTES_PER_TOKEN = 4  # of generated text, for the estimate where a provider reports no usage


class StreamError(Exception):
    """The provider's stream went wrong after it had begun; `message` is the provider's own, if it gave one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ChatStream:
    """One answer's events, on their way to the client."""

    __slots__ = (
        "_ask_usage",
        "_choices",
        "_edited",
        "_finished",
        "_last",
        "_model",
        "_needle",
        "_open",
        "_replacement",
        "_spoken",
        "_usage_chunk",
        "done",
        "finish_reasons",
        "usage",
    )

    def __init__(self, model: str, *, ask_usage: bool, choices: int) -> None:
        self._model = msgspec.json.encode(model)
        self._ask_usage = ask_usage
        self._choices = choices
        self._needle: bytes | None = None
        self._replacement = b'"model":' + self._model
        self._open: set[int] = set()
        self._finished: set[int] = set()
        self._usage_chunk: bytes | None = None
        self._last = b""
        self._spoken = 0
        self.usage: Usage | None = None
        self.finish_reasons: list[str] = []
        self.done = False

    def feed(self, event: Event) -> bytes:
        """Take one event; give what the client gets for it, maybe nothing."""
        if self.done:
            return b""
        data = event.data
        if data is None or not data.strip():
            return b""
        if data.strip() == b"[DONE]":
            return self._finish()
        read = chunk.read(data)
        if event.name == "error" or read is None or read.error is not None:
            raise StreamError(_message(data))
        self._note(read)
        self._last = data
        if read.usage is not None:
            self.usage = usage.from_openai(read.usage)
            if not read.choices:
                self._usage_chunk = data
                return b""
            return self._edit(data, drop_usage=True)
        if b'"reasoning"' in data:
            return self._edit(data)
        return self._with_model(event.raw, data)

    def end(self) -> bytes | None:
        """The provider's stream is over: what still belongs to the answer; None where it was cut short."""
        if self.done:
            return b""
        whole = self._finished and not self._open - self._finished and len(self._finished) >= self._choices
        return self._finish() if whole else None

    def estimate(self, prompt: int) -> Usage:
        """Give the provider's usage, or an estimate of what was generated so far."""
        if self.usage is not None:
            return self.usage
        completion = -(-self._spoken // _BYTES_PER_TOKEN)
        return Usage(prompt=prompt, completion=completion, estimated=True)

    def usage_chunk(self, used: Usage) -> bytes:
        """The last chunk before [DONE] for a client that asked for usage: no choices, only what was used."""
        base = self._usage_chunk or self._last
        value: dict[str, Any] = {}
        if self._usage_chunk is not None:
            value = msgspec.json.decode(self._usage_chunk)["usage"]
        merged = usage.normal(value) or value if value else usage.as_openai(used)
        fields: dict[str, bytes | None] = {"choices": b"[]", "usage": msgspec.json.encode(merged), "model": self._model}
        return sse.encode(Document.parse(base).edit(fields))

    @property
    def wants_usage(self) -> bool:
        """Whether the client asked for the usage chunk."""
        return self._ask_usage

    def _finish(self) -> bytes:
        self.done = True
        return sse.DONE

    def _note(self, read: chunk.Chunk) -> None:
        for choice in read.choices or ():
            self._open.add(choice.index)
            if choice.finish_reason is not None:
                self._finished.add(choice.index)
                self.finish_reasons.append(choice.finish_reason)
            if choice.delta is not None:
                self._spoken += _length(choice.delta)

    def _with_model(self, raw: bytes, data: bytes) -> bytes:
        """Replace the model's name where it stood in the chunk before; learn the place when it isn't there.

        The needle holds unescaped quotes, so it can't be found inside a JSON string.
        """
        needle = self._needle
        if needle is not None and needle in raw:
            return raw.replace(needle, self._replacement, 1)
        return self._learn(raw, data)

    def _learn(self, raw: bytes, data: bytes) -> bytes:
        edited = self._edit(data)
        found = _MODEL.search(raw)
        if found is not None:
            tried = raw.replace(found[0], self._replacement, 1)
            events = sse.Decoder(len(tried) + 1).feed(tried)
            if len(events) == 1 and events[0].data is not None and _same(events[0].data, edited):
                self._needle = found[0]
                return tried
        return edited

    def _edit(self, data: bytes, *, drop_usage: bool = False) -> bytes:
        try:
            document = Document.parse(data)
            changes: dict[str, bytes | None] = {"model": self._model}
            if drop_usage:
                changes["usage"] = None
            choices = document.raw("choices")
            if choices is not None and b'"reasoning"' in choices:
                changes["choices"] = (
                    b"[" + b",".join(with_reasoning_content(c, "delta") for c in elements(choices)) + b"]"
                )
            return sse.encode(document.edit(changes))
        except InvalidRequest as error:
            raise StreamError(_message(data)) from error


def _same(one: bytes, other: bytes) -> bool:
    decoded: bool = msgspec.json.decode(one) == msgspec.json.decode(other.removeprefix(b"data: ").strip())
    return decoded


def _length(delta: chunk.Delta) -> int:
    spoken = 0
    for text in (delta.content, delta.reasoning_content, delta.reasoning, delta.refusal):
        if isinstance(text, str):
            spoken += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if delta.tool_calls:
        spoken += len(msgspec.json.encode(delta.tool_calls)) // 2
    return spoken


def _message(data: bytes) -> str:
    return refusal.read(data).message
