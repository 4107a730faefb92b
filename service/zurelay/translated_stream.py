"""A provider's stream in the other format, translated on its way to the client (SPEC 9)."""

from __future__ import annotations

from collections.abc import Callable

from zurelay.chat_stream import StreamError
from zurelay.formats import BadAnswer, stream_chat_to_messages, stream_messages_to_chat
from zurelay.sse import Event
from zurelay.usage import Usage

Translator = stream_chat_to_messages.Stream | stream_messages_to_chat.Stream


class TranslatedStream:
    """One answer's events, on their way to a client that speaks the other format."""

    __slots__ = ("_pieces", "_translator", "done", "finish_reasons")

    wants_usage = False  # the translator writes it where it was asked for

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._pieces = 0
        self.finish_reasons: list[str] = []
        self.done = False

    def feed(self, event: Event) -> bytes:
        """Take one event; give what the client gets for it, maybe nothing."""
        data = event.data
        if self.done or data is None or not data.strip():
            return b""
        try:
            out = self._translator.feed(event.name, data)
        except BadAnswer as error:
            raise StreamError("") from error
        return self._sent(out)

    def end(self) -> bytes | None:
        """The provider's stream is over: what still belongs to the answer; None where it was cut short."""
        if self.done:
            return b""
        try:
            return self._sent(self._translator.finish())
        except StreamError:
            return None

    def _sent(self, out: list[bytes]) -> bytes:
        failure = self._translator.failure
        if failure is not None:
            raise StreamError(failure.message)
        self._pieces += len(out)
        self.done = self._translator.done
        if self._translator.finish_reason is not None:
            self.finish_reasons = [self._translator.finish_reason]
        return b"".join(out)

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give the provider's usage; where the answer broke off, an estimate: a piece is a token or more."""
        used = self._translator.usage
        if used is not None and self.done:
            return used
        known = used or Usage(prompt=prompt())
        return Usage(
            prompt=known.prompt,
            completion=max(known.completion, self._pieces),
            cached=known.cached,
            cache_written=known.cache_written,
            estimated=True,
        )

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:  # noqa: ARG002  # the seam's signature
        """Give nothing: the translator has sent it."""
        return b""
