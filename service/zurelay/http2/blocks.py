"""Header blocks: a request's, decoded by hpack within bounds; an answer's, written without a table."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

import hpack

from zurelay.http2.frames import Code, ConnectionFault, StreamFault

LARGEST_LIST = 1 << 16  # bytes of all names and values, and 32 for each (RFC 9113, 6.5.2); Envoy's own limit is 60 KiB
_LARGEST_BLOCK = 1 << 15
_MOST_PIECES = 16  # CONTINUATION frames of one block: they could go on for ever, and carry nothing
_MOST_KNOWN, _LARGEST_KNOWN = 256, 1 << 10  # blocks that are remembered, and bytes of one
_REQUEST = frozenset({":method", ":scheme", ":path", ":authority"})
_NEEDED = frozenset({":method", ":scheme", ":path"})
# A connection's own matters have no place in a request (8.2.2).
_FORBIDDEN = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_NAME = re.compile(r":?[!#$%&'*+\-.^_`|~0-9a-z]+")  # RFC 9110, 5.1, in lower case (8.2)
_NOT_IN_VALUES = re.compile(r"[\0\r\n]")


class Block:
    """A header block whose end is still to come."""

    __slots__ = ("_pieces", "_size", "flags", "stream")

    def __init__(self, stream: int, flags: int, first: bytes) -> None:
        self.stream = stream
        self.flags = flags  # of its first frame
        self._pieces = [first]
        self._size = len(first)

    def add(self, piece: bytes) -> None:
        """Take what follows."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > _LARGEST_BLOCK or len(self._pieces) > _MOST_PIECES:
            raise ConnectionFault(Code.CALM, "a header block without an end")

    def whole(self) -> bytes:
        """Give all of it."""
        return b"".join(self._pieces)


class Blocks:
    """Reads the header blocks of one connection. Those that repeat, and change no table, are decoded once."""

    __slots__ = ("_decoder", "_known")

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(LARGEST_LIST)
        self._known: dict[bytes, Mapping[str, str]] = {}

    def request(self, block: bytes) -> Mapping[str, str]:
        """Read a request's headers, repeated ones joined by a comma. StreamFault where they make no request."""
        known = self._known.get(block)
        if known is not None:
            return known
        table = self._decoder.header_table
        entries = table.dynamic_entries
        before = table.maxsize, len(entries), entries[0] if entries else None
        headers = self.skip(block)
        # A new entry stands first. It is held above, so that no other can be taken for it.
        after = table.maxsize, len(entries), entries[0] if entries else None
        if before[:2] != after[:2] or before[2] is not after[2]:
            self._known.clear()  # the same bytes may mean something else from now on
            return _checked(headers)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        found = _checked(headers)
        if len(block) <= _LARGEST_KNOWN:
            self._known[block] = found
        return found

    def skip(self, block: bytes) -> Iterable[tuple[str, str]]:
        """Decode a block for the sake of the table."""
        try:
            return [(str(name), str(value)) for name, value in self._decoder.decode(block)]
        except hpack.OversizedHeaderListError as error:
            raise ConnectionFault(Code.CALM, f"too many headers: {error}") from error
        except hpack.HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION, f"a header block that can't be read: {error}") from error


@functools.lru_cache(1024)
def _may_be_sent(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _FORBIDDEN


def _checked(headers: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """See that a request is well formed (8.2, 8.3)."""
    found: dict[str, str] = {}
    regular = False
    for name, value in headers:
        if not _may_be_sent(name) or _NOT_IN_VALUES.search(value):
            raise StreamFault(Code.PROTOCOL, "a header that none may send")
        if not name.startswith(":"):
            regular = True
            found[name] = f"{found[name]},{value}" if name in found else value
        elif regular or name in found or name not in _REQUEST:
            raise StreamFault(Code.PROTOCOL, "a pseudo-header that has no place there")
        else:
            found[name] = value
    if not _NEEDED <= found.keys():
        raise StreamFault(Code.PROTOCOL, "a request without a method, a scheme or a path")
    return found


def literal(name: bytes, value: bytes) -> bytes:
    """Write a header field as it is, past the table (RFC 7541, 6.2.2)."""
    return b"\0" + _length(len(name)) + name + _length(len(value)) + value


def _length(size: int) -> bytes:
    """Write the length of a string (RFC 7541, 5.1 and 5.2)."""
    if size < 0x7F:  # noqa: PLR2004  # seven bits of one byte
        return bytes([size])
    found, rest = bytearray([0x7F]), size - 0x7F
    while rest > 0x7F:  # noqa: PLR2004  # seven bits a byte follow, the lowest first
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)
