"""What lies between a client's format and a provider's: bodies one way, answers and streams the other (SPEC 9).

One entry a pair; the rest of the house asks here, and knows of no format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from zurelay import caps, chunk, message_event, messages_answer, messages_body, openai_answer, rewrite, usage
from zurelay.chat_stream import ChatStream
from zurelay.errors import InvalidRequest
from zurelay.formats import (
    BadAnswer,
    Stamp,
    Target,
    answer_chat_to_messages,
    answer_messages_to_chat,
    anthropic_usage,
    request_chat_to_messages,
    request_messages_to_chat,
    stream_chat_to_messages,
    stream_messages_to_chat,
)
from zurelay.jsonedit import Document
from zurelay.messages_stream import MessagesStream
from zurelay.model import Effort, Endpoint, Format
from zurelay.openai_answer import Answer, BadAnswerError
from zurelay.plan import Attempt, Reason
from zurelay.sse import Event
from zurelay.translated_stream import TranslatedStream
from zurelay.usage import Usage

_NO_ERROR = (None, b"{}", b"[]", b'""', b"false")  # beside their answer, some send an error that is none
# What a translation writes by itself: no client misses it.
_OURS = frozenset({"stream_options", "max_tokens", "thinking", "output_config", "reasoning_effort"})
# Fields of a translated body, as the client that sent them knows them.
_SENT_AS = {"stop": "stop_sequences", "stop_sequences": "stop", "user": "metadata.user_id", "metadata": "user"}


class AnswerStream(Protocol):
    """A provider's stream on its way to the client."""

    done: bool
    finish_reasons: list[str]

    @property
    def wants_usage(self) -> bool:
        """Whether `usage_chunk` goes before the end."""

    @property
    def said(self) -> int:
        """How many tokens the model has said, estimated."""

    def feed(self, event: Event) -> bytes:
        """Take one event; give the client's bytes. StreamError where it is none."""

    def end(self) -> bytes | None:
        """Give what still belongs to the answer when the provider's stream is over; None where it was cut short."""

    def estimate(self, prompt: Callable[[], int]) -> Usage:
        """Give what was used, estimated where the provider didn't say."""

    def usage_chunk(self, prompt: Callable[[], int]) -> bytes:
        """Give the last chunk before the end."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the client asked that its stream depends on; `prompt` counts the tokens of what it sent."""

    usage: bool = False
    choices: int = 1
    prompt: Callable[[], int] = int


def seen(format: Format) -> Callable[[str, bytes | None], chunk.Seen]:
    """Give how events of a provider's stream are read by one who waits for the first token."""
    return chunk.seen if format is Format.OPENAI else message_event.seen


class _Named(msgspec.Struct):
    """What an answer or an event of one calls its model; a Messages stream's head says it inside the message."""

    model: Any = None
    message: Any = None


_NAMED = msgspec.json.Decoder(_Named)
_LONGEST_NAME = 128


def named(data: bytes) -> str:
    """Give what a provider calls the model in an answer or an event; empty where it doesn't say."""
    try:
        found = _NAMED.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    name = found.message.get("model") if isinstance(found.message, dict) else found.model
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def is_cut(rest: Event) -> bool:
    """Tell whether the stream stopped in the middle of this block, and not only before its blank line."""
    data = (rest.data or b"").strip()
    return not rest.whole and data != b"[DONE]" and chunk.read(data) is None


class _Told(msgspec.Struct):
    """What an answer or an event of one may say of its usage; a Messages stream's head says it inside the message."""

    usage: Any = None
    message: Any = None


_TOLD = msgspec.json.Decoder(_Told)


def told(format: Format, pieces: Iterable[bytes]) -> Usage | None:
    """Give the usage that the pieces of an answer that failed tell of, an event or the whole each; None where none."""
    counts: dict[str, Any] = {}
    for piece in pieces:
        try:
            found = _TOLD.decode(piece)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        inner = found.message.get("usage") if isinstance(found.message, dict) else None
        for each in (inner, found.usage):
            if isinstance(each, dict):
                counts = anthropic_usage.merged(counts, each)
    if not counts:
        return None
    return usage.from_openai(counts) if format is Format.OPENAI else anthropic_usage.from_anthropic(counts)


def request_body(document: Document, attempt: Attempt, endpoint: Endpoint) -> bytes:
    """Make an attempt's body from the one that all attempts start from."""
    body = _body(document, attempt, endpoint)
    return body if attempt.cap is None else caps.bounded(body, Effort[attempt.cap])


def _body(document: Document, attempt: Attempt, endpoint: Endpoint) -> bytes:
    if _is_chat(endpoint):
        if attempt.format is Format.OPENAI:
            return rewrite.for_attempt(document, attempt)
        return _fitted(request_chat_to_messages.request(document, _target(attempt)), attempt)
    if attempt.format is Format.ANTHROPIC:
        return messages_body.for_attempt(document, attempt)
    return _fitted(request_messages_to_chat.request(document, _target(attempt)), attempt)


def can_prepare(document: Document, attempt: Attempt, endpoint: Endpoint) -> bool:
    """Tell whether later attempts can still make their bodies from this attempt's one."""
    if _is_chat(endpoint):
        return attempt.format is Format.OPENAI and rewrite.is_lossless(document, attempt)
    return attempt.format is Format.ANTHROPIC and messages_body.is_lossless(document, attempt)


def whole_answer(body: bytes, attempt: Attempt, endpoint: Endpoint, stamp: Stamp) -> Answer:
    """Make a complete answer the client's. BadAnswerError where it is none."""
    if endpoint is Endpoint.COUNT_TOKENS:
        return messages_answer.read_count(body)
    if _is_chat(endpoint) and attempt.format is Format.OPENAI:
        return openai_answer.read(body, attempt.model)
    if not _is_chat(endpoint) and attempt.format is Format.ANTHROPIC:
        return messages_answer.read(body, attempt.model)
    return _translated(body, endpoint, stamp)


def stream(attempt: Attempt, endpoint: Endpoint, asked: Asked, stamp: Stamp) -> AnswerStream:
    """Make what carries a provider's stream to the client."""
    if _is_chat(endpoint):
        if attempt.format is Format.OPENAI:
            return ChatStream(attempt.model, ask_usage=asked.usage, choices=asked.choices)
        return TranslatedStream(stream_messages_to_chat.Stream(stamp, include_usage=asked.usage))
    if attempt.format is Format.ANTHROPIC:
        return MessagesStream(attempt.model)
    return TranslatedStream(stream_chat_to_messages.Stream(stamp, asked.prompt))


def _is_chat(endpoint: Endpoint) -> bool:
    return endpoint is Endpoint.CHAT


def _target(attempt: Attempt) -> Target:
    return Target(
        model=attempt.upstream,
        max_output=attempt.max_output,
        effort=Effort[attempt.effort] if attempt.effort is not None else None,
        named=attempt.named,
    )


def _fitted(body: bytes, attempt: Attempt) -> bytes:
    """Rename and drop what the route refuses in a translated body; a named model loses nothing that the client sent."""
    if not attempt.rename and not attempt.drop:
        return body
    document = Document.parse(body)
    rename, changes = rewrite.refused(document, attempt)
    lost = [field for field in changes if field not in attempt.rename and field not in _OURS]
    if attempt.named and lost:
        sent_as = _SENT_AS.get(lost[0], lost[0])
        raise InvalidRequest(f"{attempt.model} does not take {sent_as}: leave it out.", param=sent_as)
    return document.edit(changes, rename=rename)


def _translated(body: bytes, endpoint: Endpoint, stamp: Stamp) -> Answer:
    translate = answer_messages_to_chat.answer if _is_chat(endpoint) else answer_chat_to_messages.answer
    _refuse_error(body)
    try:
        made = translate(body, stamp)
    except BadAnswer as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    return Answer(made.body, made.usage, (made.finish_reason,))


def _refuse_error(body: bytes) -> None:
    try:
        document = Document.parse(body)
    except InvalidRequest as error:
        raise BadAnswerError(Reason.NOT_JSON) from error
    if document.raw("error") not in _NO_ERROR:
        raise BadAnswerError(Reason.ERROR_BODY)
