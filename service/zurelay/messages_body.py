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


class _Thinking(msgspec.Struct):
    type: str | None = None


_THINKING = msgspec.json.Decoder(_Thinking)


def for_attempt(document: Document, attempt: Attempt) -> bytes:
    """The body for one route of an Anthropic-format provider."""
    changes: dict[str, bytes | None] = {"model": msgspec.json.encode(attempt.upstream), **_effort(document, attempt)}
    rename, fields = rewrite.refused(document, attempt)
    return thinking.strip_unsigned(document.edit(changes | fields, rename=rename))


def is_lossless(document: Document, attempt: Attempt) -> bool:
    """Tell whether a later attempt can still make its own body from this attempt's one.

    Reasoning under a signature of ours goes out of this one, and its own model would want it back.
    """
    if not rewrite.is_lossless(document, attempt) or not set(_effort(document, attempt)) <= {"output_config"}:
        return False
    return thinking.strip_unsigned(document.data) == document.data


def _effort(document: Document, attempt: Attempt) -> dict[str, bytes | None]:
    """What asks for the attempt's level (SPEC 4); nothing where the client's own words already do."""
    config, off = document.raw("output_config"), _is_off(document)
    changes: dict[str, bytes | None] = {}
    if attempt.effort == Effort.none.name:
        if off:
            return {}
        changes["thinking"] = _OFF
    elif attempt.effort is not None and off:
        changes["thinking"] = None
    wanted = attempt.effort if attempt.effort != Effort.none.name else None
    changed = _without_effort(config) if wanted is None else _with_effort(config, wanted)
    if changed != config:
        changes["output_config"] = changed
    return {field: value for field, value in changes.items() if field not in attempt.drop}


def _is_off(document: Document) -> bool:
    thinks = document.value("thinking", _THINKING)
    return thinks is not None and thinks.type == "disabled"


def _with_effort(config: bytes | None, level: str) -> bytes:
    if config is None:
        return msgspec.json.encode({"effort": level})
    return _object(config).edit({"effort": msgspec.json.encode(level)})


def _without_effort(config: bytes | None) -> bytes | None:
    """Take the effort out, and with it a config that held nothing else."""
    if config is None or not config.startswith(b"{"):
        return config
    document = Document.parse(config)
    if "effort" not in document.names:
        return config
    left = document.edit({"effort": None})
    return left if Document.parse(left).names else None


def _object(config: bytes) -> Document:
    if not config.startswith(b"{"):
        raise InvalidRequest("`output_config`: expected an object.", param="output_config")
    return Document.parse(config)
