"""What a peer does on an HTTP/2 connection. Streams are its numbers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A request begins. Whoever hears it ends the stream with `close`, whatever else happens to it."""

    stream: int
    headers: Mapping[str, str]


class Received(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a request's body."""

    stream: int
    data: bytes


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A request's body is over."""

    stream: int


class Reset(msgspec.Struct, frozen=True, gc=False):
    """The stream is cut: the peer wants no answer any more, or broke the protocol in it."""

    stream: int


class Writable(msgspec.Struct, frozen=True, gc=False):
    """There is room again for what `send` did not take, in one stream or, where it is 0, in all."""

    stream: int


Event = Opened | Received | Ended | Reset | Writable
