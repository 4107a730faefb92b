"""A provider's chat stream, made the client's: the catalog's model, reasoning_content, usage once, one end (SPEC 8).

Events come in one by one; bytes for the client come out. What needs no change keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from zurelay import chunk, refusal, sse, surrogates, usage
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document, elements
from zurelay.openai_answer import with_reasoning_content
from zurelay.sse import Event
from zurelay.usage import Usage

_MODEL = re.compile(rb'("model"[ \t]*:[ \t]*)"(?:[^"\\]|\\.)*"')
_MODEL_KEY = b'"model"'
_BOM = b"\xef\xbb\xbf"
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
        "_counted",
        "_finished",
        "_last",
        "_model",
        "_named",
        "_needle",
        "_open",
        "_replacement",
        "_spoken",
        "_usage_chunk",
        "_usage_raw",
        "done",
        "finish_reasons",
        "usage",
    )

    def __init__(self, model: str, *, ask_usage: bool, choices: int) -> None:
        self._model = msgspec.json.encode(model)
        self._ask_usage = ask_usage
        self._choices = choices
        self._named: object = None  # what the provider calls the model, where `_needle` was found
        self._needle: bytes | None = None
        self._replacement = b""
        self._open: set[int] = set()
        self._finished: set[int] = set()
        self._usage_chunk: bytes | None = None
        self._usage_raw: bytes | None = None
        self._last = b"{}"
        self._spoken = 0  # bytes of text so far
        self._counted = 0  # of those, what `usage` counts
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
        if event.name == "error" or read is None or read.error:
            raise StreamError(_message(data))
        self._note(read)
        used = read.used
        if used is not None:
            self._note_usage(used)
            if not read.choices:
                self._usage_chunk = data
                return b""
        if read.choices is None:  # a ping, or whatever else is no chunk
            return b""
        self._last = data
        if used is not None:
            return sse.encode(self._edited(data, drop_usage=True))
        if b'"reasoning"' in data:
            return sse.encode(self._edited(data))
        return self._with_model(event, data, read.model)

    def end(self) -> bytes | None:
        """The provider's stream is over: what still belongs to the answer; None where it was cut short."""
        if self.done:
            return b""
        whole = self._finished and not self._open - self._finished and len(self._finished) >= self._choices
        return self._finish() if whole else None

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give the provider's usage, estimating what it doesn't cover; `prompt` counts the prompt's tokens."""
        unreported = -(-(self._spoken - self._counted) // _BYTES_PER_TOKEN)
        if self.usage is None:
            return Usage(prompt=prompt(), completion=unreported, estimated=True)
        known = self.usage
        if not unreported and not known.estimated:
            return known
        completion = known.completion + unreported
        return msgspec.structs.replace(known, prompt=known.prompt or prompt(), completion=completion, estimated=True)

    @property
    def said(self) -> int:
        """How many tokens the model has said, estimated."""
        return -(-self._spoken // _BYTES_PER_TOKEN)

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:
        """The last chunk before [DONE] for a client that asked for usage: no choices, only what was used."""
        used = self.estimate(prompt)
        if self._usage_raw is not None and not used.estimated:
            shown = usage.normal(self._usage_raw)
        else:
            shown = msgspec.json.encode(usage.as_openai(used))
        fields: dict[str, bytes | None] = {"choices": b"[]", "usage": shown, "model": self._model}
        base = self._usage_chunk or self._last
        return sse.encode(surrogates.edited(base, lambda found: Document.parse(found).edit(fields)))

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
            if choice.finish_reason and choice.index not in self._finished:
                self._finished.add(choice.index)
                self.finish_reasons.append(choice.finish_reason)
            if choice.delta is not None:
                self._spoken += _length(choice.delta)

    def _note_usage(self, raw: bytes) -> None:
        value = usage.decoded(raw)
        found = usage.from_openai(value) if value is not None else None
        if found is not None and usage.says_more(found, self.usage):
            self.usage = found
            self._usage_raw = raw
            if self.usage.completion:
                self._counted = self._spoken

    def _with_model(self, event: Event, data: bytes, named: object) -> bytes:
        """Replace the model's name where it stood in the chunk before; learn the place when it isn't there.

        The needle holds unescaped quotes, so it can't be found inside a JSON string; more than one means that the
        name stands in an inner object too.
        """
        needle = self._needle
        if (
            needle is not None
            and named == self._named
            and event.whole
            and event.raw.count(_MODEL_KEY) == 1
            and needle in event.raw
        ):
            return event.raw.replace(needle, self._replacement)
        return self._learn(event, data, named)

    def _learn(self, event: Event, data: bytes, named: object) -> bytes:
        edited = self._edited(data)
        raw = event.raw.removeprefix(_BOM)  # something of ours may stand before it by now
        found = _MODEL.search(raw)
        if found is None or not event.whole:
            return sse.encode(edited)
        replacement = found[1] + self._model
        tried = raw.replace(found[0], replacement, 1)
        if [one.data for one in _events(tried)] != [edited]:
            return sse.encode(edited)
        self._needle, self._replacement, self._named = found[0], replacement, named
        return tried

    def _edited(self, data: bytes, *, drop_usage: bool = False) -> bytes:
        try:
            return surrogates.edited(data, lambda found: self._edit(found, drop_usage=drop_usage))
        except InvalidRequest as error:
            raise StreamError(_message(data)) from error

    def _edit(self, data: bytes, *, drop_usage: bool) -> bytes:
        document = Document.parse(data)
        changes: dict[str, bytes | None] = {"model": self._model}
        if drop_usage:
            changes["usage"] = None
        choices = document.raw("choices")
        if choices is not None and b'"reasoning"' in choices:
            changes["choices"] = b"[" + b",".join(with_reasoning_content(c, "delta") for c in elements(choices)) + b"]"
        return document.edit(changes)


def _events(raw: bytes) -> list[Event]:
    decoder = sse.Decoder(len(raw) + 1)
    events = decoder.feed(raw)
    last = decoder.flush()
    return events if last is None else [*events, last]


def _length(delta: chunk.Delta) -> int:
    spoken = 0
    for text in (delta.content, delta.reasoning_content or delta.reasoning, delta.refusal):
        if isinstance(text, str):
            spoken += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if delta.tool_calls:
        spoken += len(msgspec.json.encode(delta.tool_calls)) // 2
    return spoken


def _message(data: bytes) -> str:
    return refusal.read(data).message
