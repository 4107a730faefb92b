"""A client's messages body, made an Anthropic-format provider's: what an attempt changes in it, all else as sent."""

from __future__ import annotations

import msgspec

from zurelay import rewrite
from zurelay.errors import InvalidRequest
from zurelay.formats import thinking
from zurelay.jsonedit import Document
from zurelay.model import Effort
from zurelay.plan import Attempt

_OFF = b'{"type":"disabled"}'


def for_attempt(document: Document, attempt: Attempt) -> bytes:
    """The body for one route of an Anthropic-format provider."""
    changes: dict[str, bytes | None] = {"model": msgspec.json.encode(attempt.upstream), **_effort(document, attempt)}
    rename, fields = rewrite.refused(document, attempt)
    return thinking.strip_unsigned(document.edit(changes | fields, rename=rename))


def is_lossless(document: Document, attempt: Attempt) -> bool:
    """Tell whether a later attempt can still make its own body from this attempt's one."""
    return rewrite.is_lossless(document, attempt) and set(_effort(document, attempt)) <= {"output_config"}


def _effort(document: Document, attempt: Attempt) -> dict[str, bytes | None]:
    """What asks for the attempt's level (SPEC 4); nothing where the client's own words already do."""
    config, thinks = document.raw("output_config"), document.raw("thinking")
    level = attempt.effort
    if level == Effort.none.name:
        return {"output_config": _without_effort(config), "thinking": _OFF} if not _is_off(thinks) else {}
    if level is None:
        return {"output_config": _without_effort(config)} if config is not None and b'"effort"' in config else {}
    changes: dict[str, bytes | None] = {"output_config": _with_effort(config, level)}
    if changes["output_config"] == config:
        changes = {}
    return changes | {"thinking": None} if _is_off(thinks) else changes


def _is_off(thinks: bytes | None) -> bool:
    return thinks is not None and thinks.startswith(b"{") and Document.parse(thinks).raw("type") == b'"disabled"'


def _with_effort(config: bytes | None, level: str) -> bytes:
    if config is None:
        return msgspec.json.encode({"effort": level})
    return _object(config).edit({"effort": msgspec.json.encode(level)})


def _without_effort(config: bytes | None) -> bytes | None:
    if config is None:
        return None
    left = _object(config).edit({"effort": None})
    return left if Document.parse(left).names else None


def _object(config: bytes) -> Document:
    if not config.startswith(b"{"):
        raise InvalidRequest("`output_config`: expected an object.", param="output_config")
    return Document.parse(config)
