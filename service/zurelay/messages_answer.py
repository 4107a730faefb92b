"""An Anthropic-format provider's complete answer, made the client's: the catalog's model, all else as sent (SPEC 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.formats import anthropic_usage
from zurelay.jsonedit import Document
from zurelay.openai_answer import Answer, BadAnswerError
from zurelay.plan import Reason


class _Answer(msgspec.Struct):
    content: list[msgspec.Raw]
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(_Answer)


def read(body: bytes, model: str) -> Answer:
    """Check a provider's complete message and give it the catalog's model."""
    document = _document(body)
    try:
        answer = _DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    used = anthropic_usage.from_anthropic(answer.usage) if answer.usage is not None else None
    reasons = (answer.stop_reason,) if answer.stop_reason is not None else ()
    return Answer(document.edit({"model": msgspec.json.encode(model)}), used, reasons)


def read_count(body: bytes) -> Answer:
    """Check the answer to a count of tokens; it passes as it is."""
    if _document(body).raw("input_tokens") is None:
        raise BadAnswerError(Reason.NOT_JSON)
    return Answer(body, None)


def _document(body: bytes) -> Document:
    try:
        document = Document.parse(body)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    if document.raw("type") == b'"error"' or document.raw("error") is not None:
        raise BadAnswerError(Reason.ERROR_BODY)
    return document
