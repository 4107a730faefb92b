"""An OpenAI-format provider's complete answer, made the client's: the catalog's model, reasoning, usage (SPEC 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import surrogates, usage
from zurelay.errors import InvalidRequest
from zurelay.jsonedit import Document, elements
from zurelay.plan import Reason
from zurelay.usage import Usage

_REASONING = "reasoning"
_REASONING_CONTENT = "reasoning_content"


class BadAnswerError(Exception):
    """A 2xx answer that is none: an error in disguise, or not the format's JSON."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class _Message(msgspec.Struct):
    """Whatever the model said."""


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


_CHOICES = msgspec.json.Decoder(list[_Choice])


class Answer(msgspec.Struct, frozen=True):
    """The client's body, and what was used if the provider said so."""

    body: bytes
    usage: Usage | None
    finish_reasons: tuple[str, ...] = ()


def read(body: bytes, model: str) -> Answer:
    """Check a provider's complete answer and rewrite what must differ; all other bytes stay."""
    try:
        return _read(body, model)
    except BadAnswerError:
        hidden = surrogates.hidden(body)
        if hidden is None:
            raise
    answer = _read(hidden, model)
    return Answer(surrogates.shown(answer.body), answer.usage, answer.finish_reasons)


def _read(body: bytes, model: str) -> Answer:
    try:
        document = Document.parse(body)
        if _is_error(document):
            raise BadAnswerError(Reason.ERROR_BODY)
        choices = document.value("choices", _CHOICES)
        if choices is None:
            raise BadAnswerError(Reason.NOT_JSON)
        if not choices:
            raise BadAnswerError(Reason.NO_TOKEN)
        changes: dict[str, bytes | None] = {"model": msgspec.json.encode(model)}
        raw = document.raw("choices") or b""
        if b'"reasoning"' in raw:
            changes["choices"] = (
                b"[" + b",".join(with_reasoning_content(one, "message") for one in elements(raw)) + b"]"
            )
        used = _usage(document, changes)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    reasons = tuple(choice.finish_reason for choice in choices if isinstance(choice.finish_reason, str))
    return Answer(document.edit(changes), used, reasons)


def _is_error(document: Document) -> bool:
    """Tell an error that came as a success; some send an empty one beside their answer."""
    return document.raw("error") not in (None, b"{}", b"[]", b'""', b"false")


def with_reasoning_content(choice: bytes, member: str) -> bytes:
    """Rename `reasoning` to `reasoning_content` in a choice's message or delta."""
    try:
        document = Document.parse(choice)
        inner = document.raw(member)
        if inner is None or not inner.startswith(b"{"):
            return choice
        message = Document.parse(inner)
    except InvalidRequest:  # no object: the client sees what the provider sent
        return choice
    reasoning = message.raw(_REASONING)
    if reasoning is None or not reasoning.startswith(b'"') or message.raw(_REASONING_CONTENT) is not None:
        return choice
    return document.edit({member: message.edit({}, rename={_REASONING: _REASONING_CONTENT})})


def _usage(document: Document, changes: dict[str, bytes | None]) -> Usage | None:
    raw = document.raw("usage")
    value = usage.decoded(raw) if raw is not None else None
    if raw is None or value is None:
        return None
    used = usage.from_openai(value)
    changes["usage"] = usage.put_right(raw, value, used)
    return used
