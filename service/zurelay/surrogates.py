r"""Halves of surrogate pairs in JSON: legal by its grammar (RFC 8259, 8.2), but msgspec refuses them.

Servers that count in UTF-16 send half an emoji (`\ud83d`) in one piece and the other half in the next, or cut a text
between them. Hidden among private characters they can be read, and edited around; nothing moves, and all comes back.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from zurelay.errors import InvalidRequest

_SURROGATE = re.compile(rb"\\u([dD])(?=[89a-fA-F][0-9a-fA-F]{2})")
_PRIVATE = re.compile(rb"\\u([eE])(?=[89a-fA-F][0-9a-fA-F]{2})")


def hidden(data: bytes) -> bytes | None:
    """Write every surrogate as a private character; None if there is none, or one of those stands there already."""
    if b"\\u" not in data or _PRIVATE.search(data):
        return None
    found, count = _SURROGATE.subn(lambda match: b"\\u" + (b"e" if match[1] == b"d" else b"E"), data)
    return found if count else None


def shown(data: bytes) -> bytes:
    """Undo `hidden`."""
    return _PRIVATE.sub(lambda match: b"\\u" + (b"d" if match[1] == b"e" else b"D"), data)


def edited(data: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """Edit JSON that may hold such halves."""
    try:
        return edit(data)
    except InvalidRequest:
        found = hidden(data)
        if found is None:
            raise
    return shown(edit(found))
