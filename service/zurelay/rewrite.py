"""A client's chat body, made a provider's: what an attempt changes in it, all else as sent (SPEC 3)."""

from __future__ import annotations

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document
from zurelay.plan import Attempt

_STREAM_OPTIONS = "stream_options"
_EFFORT = "reasoning_effort"
_ASK_USAGE = b'{"include_usage":true}'


def common(document: Document, *, ask_usage: bool) -> bytes:
    """The body that all attempts start from: ours taken out, usage asked for where the format wants it asked."""
    changes: dict[str, bytes | None] = {}
    if "models" in document.names:
        changes["models"] = None
    if ask_usage:
        options = document.raw(_STREAM_OPTIONS)
        asked = _ASK_USAGE if options is None else _with_usage(options)
        if asked != options:
            changes[_STREAM_OPTIONS] = asked
    return document.edit(changes) if changes else document.data


def _with_usage(options: bytes) -> bytes:
    if not options.startswith(b"{"):
        raise InvalidRequest("`stream_options`: expected an object; leave it out or send {...}.", param=_STREAM_OPTIONS)
    return Document.parse(options).edit({"include_usage": b"true"})


def for_attempt(document: Document, attempt: Attempt) -> bytes:
    """The body for one route of an OpenAI-format provider."""
    changes: dict[str, bytes | None] = {"model": msgspec.json.encode(attempt.upstream)}
    asks = attempt.effort is not None and _EFFORT not in attempt.drop
    effort = msgspec.json.encode(attempt.effort) if asks else None
    if effort is not None or _EFFORT in document.names:
        changes[_EFFORT] = effort
    rename, fields = refused(document, attempt)
    return document.edit(changes | fields, rename=rename)


def refused(document: Document, attempt: Attempt) -> tuple[dict[str, str], dict[str, bytes | None]]:
    """Give what becomes of the fields that the route refuses: those renamed, and those that go."""
    rename = {old: new for old, new in attempt.rename.items() if old in document.names}
    changes: dict[str, bytes | None] = {}
    for old, new in list(rename.items()):
        if document.raw(new) is not None:  # both were sent: the one that the provider knows counts
            changes[old] = None
            del rename[old]
    changes.update((field, None) for field in attempt.drop if field in document.names and field not in rename)
    return rename, changes


def is_lossless(document: Document, attempt: Attempt) -> bool:
    """Tell whether a later attempt can still make its own body from this attempt's one."""
    return not any(field in document.names for field in (*attempt.rename, *attempt.drop))
