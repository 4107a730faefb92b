"""A provider's stream in the other format, translated on its way to the client (SPEC 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from zurelay.chat_stream import StreamError
from zurelay.formats import BadAnswer, Failure
from zurelay.sse import Event
from zurelay.usage import Usage

_BYTES_PER_TOKEN = 4  # of generated text, for the estimate where a provider reports no usage


class Translator(Protocol):
    """What writes one format's events in the other's words."""

    usage: Usage | None
    finish_reason: str | None
    done: bool
    failure: Failure | None

    @property
    def spoken(self) -> int:
        """How many bytes the model has said so far, its reasoning and calls included."""

    @property
    def wants_usage(self) -> bool:
        """Whether the client waits for a usage chunk of its own, which hasn't been written."""

    def feed(self, event_name: str, data: bytes) -> list[bytes]:
        """Take one event; give the client's for it. BadAnswer for what is none."""

    def finish(self) -> list[bytes]:
        """The provider's stream is over: give what still belongs to the answer; `failure` says why it isn't whole."""

    def usage_chunk(self, used: Usage) -> bytes:
        """Give the usage chunk."""


class TranslatedStream:
    """One answer's events, on their way to a client that speaks the other format."""

    __slots__ = ("_translator", "done", "finish_reasons")

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self.finish_reasons: list[str] = []
        self.done = False

    @property
    def wants_usage(self) -> bool:
        """Whether the client waits for a usage chunk that the translator could not write: the provider gave none."""
        return self._translator.wants_usage

    def feed(self, event: Event) -> bytes:
        """Take one event; give what the client gets for it, maybe nothing."""
        data = event.data
        if self.done or data is None or not data.strip():
            return b""
        return self._sent(lambda: self._translator.feed(event.name, data))

    def end(self) -> bytes | None:
        """The provider's stream is over: what still belongs to the answer; None where it was cut short."""
        if self.done:
            return b""
        try:
            return self._sent(self._translator.finish)
        except StreamError:
            return None

    def _sent(self, translate: Callable[[], list[bytes]]) -> bytes:
        try:
            out = translate()
        except BadAnswer as error:
            raise StreamError("") from error
        failure = self._translator.failure
        if failure is not None:
            raise StreamError(failure.message)
        self.done = self._translator.done
        if self._translator.finish_reason is not None:
            self.finish_reasons = [self._translator.finish_reason]
        return b"".join(out)

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give the provider's usage; where the answer broke off, or the provider didn't say, an estimate."""
        used = self._translator.usage
        if used is not None and self.done and not used.estimated:
            return used
        known = used or Usage()
        return msgspec.structs.replace(
            known, prompt=known.prompt or prompt(), completion=max(known.completion, self.said), estimated=True
        )

    @property
    def said(self) -> int:
        """How many tokens the model has said, estimated."""
        return -(-self._translator.spoken // _BYTES_PER_TOKEN)

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:
        """Give the last chunk before the end, for a client that asked for usage."""
        return self._translator.usage_chunk(self.estimate(prompt))
