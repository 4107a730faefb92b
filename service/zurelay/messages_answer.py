"""An Anthropic-format provider's complete answer, made the client's: the catalog's model, all else as sent (SPEC 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import surrogates
from zurelay.errors import InvalidRequest
from zurelay.formats import anthropic_usage
from zurelay.jsonedit import Document
from zurelay.openai_answer import Answer, BadAnswerError
from zurelay.plan import Reason

_BLOCKS = msgspec.json.Decoder(list[msgspec.Raw])
_USAGE = msgspec.json.Decoder(dict[str, Any])
_REASON = msgspec.json.Decoder(str)


def read(body: bytes, model: str) -> Answer:
    """Check a provider's complete message and give it the catalog's model."""
    try:
        return _read(body, model)
    except BadAnswerError:
        hidden = surrogates.hidden(body)
        if hidden is None:
            raise
    answer = _read(hidden, model)
    return Answer(surrogates.shown(answer.body), answer.usage, answer.finish_reasons)


def read_count(body: bytes) -> Answer:
    """Check the answer to a count of tokens; it passes as it is."""
    if _document(body).raw("input_tokens") is None:
        raise BadAnswerError(Reason.NOT_JSON)
    return Answer(body, None)


def _read(body: bytes, model: str) -> Answer:
    document = _document(body)
    try:
        if document.value("content", _BLOCKS) is None:
            raise BadAnswerError(Reason.NOT_JSON)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    counts = _known(document, "usage", _USAGE)
    reason = _known(document, "stop_reason", _REASON)
    return Answer(
        document.edit({"model": msgspec.json.encode(model)}),
        anthropic_usage.from_anthropic(counts) if counts is not None else None,
        (reason,) if reason is not None else (),
    )


def _known(document: Document, name: str, kind: msgspec.json.Decoder[Any]) -> Any:
    """Decode a member that the answer is whole without; None for one of another type."""
    try:
        return document.value(name, kind)
    except InvalidRequest:
        return None


def _document(body: bytes) -> Document:
    try:
        document = Document.parse(body)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    if document.raw("type") == b'"error"' or document.raw("error") is not None:
        raise BadAnswerError(Reason.ERROR_BODY)
    return document
