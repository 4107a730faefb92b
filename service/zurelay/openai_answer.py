"""An OpenAI-format provider's complete answer, made the client's: the catalog's model, reasoning_content, usage (SPEC 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import usage
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


class Answer(msgspec.Struct, frozen=True):
    """The client's body, and what was used if the provider said so."""

    body: bytes
    usage: Usage | None
    finish_reasons: tuple[str, ...] = ()


def read(body: bytes, model: str) -> Answer:
    """Check a provider's complete answer and rewrite what must differ; all other bytes stay."""
    try:
        document = Document.parse(body)
        choices = document.raw("choices")
        if choices is None or not choices.startswith(b"["):
            raise BadAnswerError(Reason.ERROR_BODY if document.raw("error") is not None else Reason.NOT_JSON)
        items = elements(choices)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    if not items:
        raise BadAnswerError(Reason.ERROR_BODY if document.raw("error") is not None else Reason.NO_TOKEN)
    changes: dict[str, bytes | None] = {"model": msgspec.json.encode(model)}
    if b'"reasoning"' in choices:
        changes["choices"] = b"[" + b",".join(with_reasoning_content(item, "message") for item in items) + b"]"
    used = _usage(document, changes)
    return Answer(document.edit(changes), used, _finish_reasons(items))


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
    changes: dict[str, bytes | None] = {_REASONING_CONTENT: None} if _REASONING_CONTENT in message.names else {}
    return document.edit({member: message.edit(changes, rename={_REASONING: _REASONING_CONTENT})})


def _usage(document: Document, changes: dict[str, bytes | None]) -> Usage | None:
    raw = document.raw("usage")
    if raw is None or not raw.startswith(b"{"):
        return None
    value: dict[str, Any] = msgspec.json.decode(raw)
    better = usage.normal(value)
    if better is not None:
        changes["usage"] = msgspec.json.encode(better)
    return usage.from_openai(value)


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


def _finish_reasons(items: list[bytes]) -> tuple[str, ...]:
    try:
        found = [msgspec.json.decode(item, type=_Choice).finish_reason for item in items]
    except msgspec.ValidationError:
        return ()
    return tuple(reason for reason in found if reason)
