"""Undo content codings of a request body, in pieces and within a limit (SPEC 3; RFC 9110, 8.4.1)."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # ships no types
import zstandard

from zurelay.errors import InvalidRequest, TooLarge, UnsupportedEncoding

CODINGS = ("gzip", "deflate", "br", "zstd")
"""What may stand in content-encoding, besides identity; x-gzip is gzip (RFC 9110, 8.4.1.3)."""

_PIECE = 1 << 16
"""About what one step may give, where the library lets us say so."""
_INPUT = 1 << 12
"""What one step is given; zlib copies what it didn't use, so a whole body would be copied again and again."""
_ZSTD_INPUT = 64
"""zstandard can't bound a step's output, so its input is: 4 bytes make a block, at most 128 KiB (RFC 8878, 3.1.1.2)."""
_ZSTD_WINDOW = 8 << 20
"""The largest window that a zstd content coding may ask for (RFC 9659)."""


class _Coding(Protocol):
    """One coding being undone."""

    @property
    def done(self) -> bool:
        """Say whether the data may end here."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give the decoded data in pieces; raises its library's error for bad data."""


class ContentDecoder:
    """Decodes a body as it comes in. After an error it can't be used any more."""

    __slots__ = ("_coding", "_left", "_limit", "_name")

    def __init__(self, coding: str, limit: int) -> None:
        """Take a content-encoding header's value, "" for none; others and several at once are UnsupportedEncoding."""
        self._name = coding.strip().lower()
        make = _MAKERS.get(self._name)
        if make is None:
            raise UnsupportedEncoding(
                f"The content-encoding `{coding.strip()}` isn't supported; send one of {', '.join(CODINGS)}, or none."
            )
        self._coding = make()
        self._limit = self._left = limit

    def feed(self, data: bytes) -> bytes:
        """Decode a chunk. Raises TooLarge over the limit of decoded bytes, InvalidRequest for bad data."""
        found = io.BytesIO()  # grows in place: joined pieces would stand twice in memory
        try:
            for piece in self._coding.feed(data):
                self._left -= len(piece)
                if self._left < 0:
                    raise TooLarge(f"The decoded body is over the limit of {self._limit} bytes; send a smaller one.")
                found.write(piece)
        except (zlib.error, brotli.error, zstandard.ZstdError, _TrailingDataError) as error:
            raise InvalidRequest(f"The body isn't valid {self._name} data ({error}).") from error
        return found.getvalue()

    def finish(self) -> None:
        """End the body. Raises InvalidRequest where it is cut short."""
        if not self._coding.done:
            raise InvalidRequest(f"The {self._name} data of the body is cut short; send all of it.")


def decode(data: bytes, coding: str, limit: int) -> bytes:
    """Decode a whole body; the errors are those of ContentDecoder."""
    decoder = ContentDecoder(coding, limit)
    found = decoder.feed(data)
    decoder.finish()
    return found


class _TrailingDataError(Exception):
    """Something stands behind the end of the data."""


def _slices(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


class _Identity:
    """No coding."""

    done = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Zlib:
    """Deflate in one of zlib's wrappings. Gzip data may have several members (RFC 1952, 2.2)."""

    def __init__(self, wbits: int) -> None:
        self.done = False
        self._wbits = wbits
        self._zlib = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        for chunk in _slices(data, _INPUT):
            rest = chunk
            while rest:
                if self.done:
                    self._next_member()
                yield from self._inflate(rest)
                self.done = self._zlib.eof
                rest = self._zlib.unused_data

    def _next_member(self) -> None:
        if self._wbits != _GZIP:
            raise _TrailingDataError("more data behind its end")
        self._zlib = zlib.decompressobj(self._wbits)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._zlib.decompress(data, _PIECE)
            yield piece
            data = self._zlib.unconsumed_tail
            if self._zlib.eof or (not data and len(piece) < _PIECE):
                return


class _Deflate:
    """Deflate wrapped by zlib as the standard has it, or bare as some send it and browsers take it."""

    def __init__(self) -> None:
        self._head = b""
        self._zlib: _Zlib | None = None

    @property
    def done(self) -> bool:
        return self._zlib is not None and self._zlib.done

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._zlib is None:
            self._head += data
            if len(self._head) < len(b"\x78\x9c"):
                return
            data = self._head
            # Zlib's header (RFC 1950, 2.2). Bare data looks like it only if a stored block's padding isn't zeros.
            wrapped = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
            self._zlib = _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        yield from self._zlib.feed(data)


class _Brotli:
    """Brotli; a step's output is bounded softly."""

    def __init__(self) -> None:
        self.done = False
        self._brotli = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for chunk in _slices(data, _INPUT):
            if self.done:
                raise _TrailingDataError("more data behind its end")
            piece: bytes = self._brotli.process(chunk, output_buffer_limit=_PIECE)
            yield piece
            while not (self._brotli.is_finished() or (self._brotli.can_accept_more_data() and not piece)):
                piece = self._brotli.process(b"", output_buffer_limit=_PIECE)
                yield piece
            self.done = self._brotli.is_finished()


class _Zstd:
    """Zstandard; the data may have several frames (RFC 8878, 3.1)."""

    def __init__(self) -> None:
        self.done = False
        self._zstd = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._zstd.decompressobj(write_size=_PIECE)

    def feed(self, data: bytes) -> Iterator[bytes]:
        for chunk in _slices(data, _ZSTD_INPUT):
            rest = chunk
            while rest:
                if self.done:
                    self._frame = self._zstd.decompressobj(write_size=_PIECE)
                yield self._frame.decompress(rest)
                self.done = self._frame.eof
                rest = self._frame.unused_data


_GZIP = 16 + zlib.MAX_WBITS
_MAKERS: dict[str, Callable[[], _Coding]] = {
    "": _Identity,
    "identity": _Identity,
    "gzip": lambda: _Zlib(_GZIP),
    "x-gzip": lambda: _Zlib(_GZIP),
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
