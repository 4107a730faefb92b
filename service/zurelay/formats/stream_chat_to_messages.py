"""An OpenAI-format provider's stream, written as Messages events (SPEC 8). Events in, bytes for the client out.

Nothing comes out before the model's first token; then message_start goes first. Blocks follow one another: each is
closed before the next starts. Calls that a provider mixes are taken apart: one waits until the one before it is whole.
Arguments pass as they come, JSON or not.
Counts are known at the end only: message_delta has them, our estimate where the provider gives none, message_start
zeros. After a failure nothing comes out: the
feeder renders `failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from zurelay.formats import chat_answers
from zurelay.formats.anthropic_usage import as_anthropic
from zurelay.formats.chat_answers import Said
from zurelay.formats.contract import BadAnswer, Failure, FailureKind, Stamp
from zurelay.formats.failures import failure
from zurelay.formats.thinking import signature
from zurelay.formats.tool_calls import ToolCall, ToolCalls
from zurelay.usage import Usage, filled, from_openai, says_more


class _Choice(msgspec.Struct):
    index: int = 0
    delta: Said | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk)
_encode = msgspec.json.Encoder().encode
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_BYTES_PER_TOKEN = 4  # of generated text, for the estimate where a provider reports no usage
_NO_COUNTS = {"input_tokens": 0, "output_tokens": 0}


class Stream:
    """One answer on its way to a Messages client.

    `first_token` turns true with the first content, reasoning, refusal, tool call or finish; `usage` is what the
    provider said last, `spoken` the bytes that the model has said; `finish_reason` Messages' word for the end; `done`
    that all was said; `failure` why it won't be.
    """

    __slots__ = (
        *("_calls", "_current", "_finish", "_index", "_kind", "_late", "_prompt", "_refused", "_stamp"),
        *("done", "failure", "finish_reason", "first_token", "spoken", "usage"),
    )

    def __init__(self, stamp: Stamp, prompt: Callable[[], int] = int) -> None:
        self._stamp = stamp
        self._prompt = prompt  # counts the prompt's tokens
        self._index = -1  # of the last block that was started
        self._kind: str | None = None  # of the block that is open
        self._calls = ToolCalls()
        self._late: list[tuple[str, str]] = []  # what was said in the midst of a call
        self._current: ToolCall | None = None
        self._finish: str | None = None
        self._refused: list[str] = []
        self.spoken = 0
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.first_token = False
        self.done = False
        self.failure: Failure | None = None

    def feed(self, event_name: str, data: bytes) -> list[bytes]:
        """Take one event; give the client's events for it. BadAnswer for data that isn't the format's."""
        data = data.strip()
        if self.done or self.failure is not None or not data:
            return []
        if data == b"[DONE]":
            return self._end()
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadAnswer(f"a chunk: {error}") from error
        if event_name == "error" or chunk.error is not None:
            self.failure = failure(data)
            return []
        if chunk.usage:
            found = from_openai(chunk.usage)
            self.usage = found if says_more(found, self.usage) else self.usage
        out: list[bytes] = []
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._choice(choice, out)
        return out

    def finish(self) -> list[bytes]:
        """The provider's stream is over: what still belongs to the answer, if it was whole; else `failure` says so."""
        if self.done or self.failure is not None:
            return []
        if self._finish is not None:
            return self._end()
        self.failure = Failure(kind=FailureKind.CUT)
        return []

    @property
    def wants_usage(self) -> bool:
        """Never: message_delta has the usage."""
        return False

    def usage_chunk(self, used: Usage) -> bytes:  # noqa: ARG002  # the seam's signature
        """Give nothing."""
        return b""

    def _choice(self, choice: _Choice, out: list[bytes]) -> None:
        delta = choice.delta
        if delta is not None:
            if delta.refusal:
                self._refused.append(delta.refusal)
            words = (("thinking", delta.thought), ("text", delta.text), ("text", delta.refusal or ""))
            for kind, text in words:
                if text:
                    self.spoken += _size(text)
                    self._say(kind, text, out)
            for call in delta.tool_calls or ():
                self._calls.add(call)
            if delta.tool_calls:
                self._advance(out)
        if choice.finish_reason is not None and self._finish is None:
            self._finish = choice.finish_reason
            self._begin(out)
            self._close_all(out)

    def _begin(self, out: list[bytes]) -> None:
        if self.first_token:
            return
        self.first_token = True
        message: dict[str, Any] = {
            "id": f"msg_{self._stamp.id}",
            "type": "message",
            "role": "assistant",
            "model": self._stamp.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _NO_COUNTS,
        }
        out.append(_event("message_start", {"message": message}))

    def _open(self, kind: str, block: dict[str, Any], out: list[bytes]) -> None:
        self._begin(out)
        self._close(out)
        self._kind = kind
        self._index += 1
        out.append(_event("content_block_start", {"index": self._index, "content_block": block}))

    def _close(self, out: list[bytes]) -> None:
        if self._kind is None:
            return
        if self._kind == "thinking":
            out.append(self._delta(b'"signature_delta","signature":', signature(self._stamp.upstream)))
        if self._current is not None:
            self._current.shut = True
            self._current = None
        self._kind = None
        out.append(_event("content_block_stop", {"index": self._index}))

    def _delta(self, head: bytes, value: str) -> bytes:
        return (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":%b%b}}\n\n'
            % (
                self._index,
                head,
                _encode(value),
            )
        )

    def _say(self, kind: str, text: str, out: list[bytes]) -> None:
        if self._current is not None and not self._current.whole:
            self._late.append((kind, text))
        elif kind == "text":
            if self._kind != "text":
                self._open("text", {"type": "text", "text": ""}, out)
            out.append(self._delta(b'"text_delta","text":', text))
        elif self._stamp.thinking:
            if self._kind != "thinking":
                self._open("thinking", {"type": "thinking", "thinking": "", "signature": ""}, out)
            out.append(self._delta(b'"thinking_delta","thinking":', text))
        else:
            self._begin(out)

    def _advance(self, out: list[bytes], *, last: bool = False) -> None:
        """Send what may be sent of the calls, in order; `last`: no more pieces come."""
        for call in self._calls.waiting():
            if call is not self._current:
                if not call.name:
                    if last:
                        raise BadAnswer("a tool call without a function's name")
                    return
                call.id = call.id or f"toolu_{self._stamp.id}_{call.key}"
                self._open("tool_use", {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, out)
                self._current = call
            for piece in call.unsent():
                self.spoken += _size(piece)
                out.append(self._delta(b'"input_json_delta","partial_json":', piece))
            if not (last or (not self._calls.is_last(call) and call.whole)):
                return

    def _close_all(self, out: list[bytes]) -> None:
        self._advance(out, last=True)
        self._close(out)
        for kind, text in self._late:
            self._say(kind, text, out)
        self._late.clear()
        self._close(out)

    def _end(self) -> list[bytes]:
        out: list[bytes] = []
        if not self.first_token:
            self.failure = Failure(kind=FailureKind.EMPTY)
            return out
        self._close_all(out)
        refused = "".join(self._refused)
        self.finish_reason = chat_answers.stop_reason(self._finish, calls=bool(self._calls), refused=bool(refused))
        delta: dict[str, Any] = {"stop_reason": self.finish_reason, "stop_sequence": None}
        if refused:
            delta["stop_details"] = chat_answers.stop_details(refused)
        out.append(_event("message_delta", {"delta": delta, "usage": as_anthropic(self._used())}))
        self.done = True
        return [*out, _STOP]

    def _used(self) -> Usage:
        if self.usage is not None and not self.usage.estimated:
            return self.usage
        own = Usage(prompt=self._prompt(), completion=-(-self.spoken // _BYTES_PER_TOKEN))
        return filled(self.usage or Usage(estimated=True), own)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _event(name: str, members: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode({"type": name, **members}))
