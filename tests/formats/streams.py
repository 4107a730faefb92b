"""Streams through a translator: from bytes, cut anywhere, or from events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from zurelay.sse import Decoder


class Translator(Protocol):
    """What both translators are."""

    def feed(self, event_name: str, data: bytes) -> list[bytes]: ...
    def finish(self) -> list[bytes]: ...


def through(translator: Translator, chunks: list[bytes]) -> list[bytes]:
    """Decode chunks of a provider's stream and give the client's events."""
    decoder = Decoder(1 << 20)
    found: list[bytes] = []
    for chunk in chunks:
        for event in decoder.feed(chunk):
            if event.data is not None:
                found += translator.feed(event.name, event.data)
    return found + translator.finish()


def events(translator: Translator, values: Sequence[Any], *, names: bool) -> list[bytes]:
    """Feed events given as values; Messages' have names."""
    found: list[bytes] = []
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found += translator.feed(value["type"] if names else "", text.encode())
    return found + translator.finish()


def data(found: list[bytes]) -> list[Any]:
    """Give the values of the events that came out; each must be one event, and whole."""
    decoder = Decoder(1 << 20)
    values: list[Any] = []
    for raw in found:
        (event,) = decoder.feed(raw)
        assert event.data is not None
        value: Any = event.data.decode() if event.data == b"[DONE]" else json.loads(event.data)
        assert not event.name or event.name == value["type"]
        values.append(value)
    return values


def cuts(stream: bytes) -> list[list[bytes]]:
    """Cut a stream whole, byte by byte, and in odd places."""
    return [
        [stream],
        [stream[i : i + 1] for i in range(len(stream))],
        *([stream[i : i + size] for i in range(0, len(stream), size)] for size in (3, 7, 64, 1000)),
    ]
