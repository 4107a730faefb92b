"""A Messages provider's stream, written as chat completion chunks (SPEC 8). Events in, bytes for the client out.

Nothing comes out before the model's first token; then a chunk with the role goes first. Pings, and events and blocks of
kinds that we don't know, give nothing. A call that took no arguments has `{}`; arguments that came whole at a block's
start go out at its end. After a failure nothing comes out: whoever feeds renders `failure`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay import sse, usage
from zurelay.formats import messages_answers
from zurelay.formats.anthropic_usage import from_anthropic, merged, tells_output
from zurelay.formats.contract import BadAnswer, Failure, FailureKind, Stamp
from zurelay.formats.failures import failure
from zurelay.formats.messages_answers import Content
from zurelay.formats.messages_events import Delta, Event, read
from zurelay.formats.thinking import for_chat
from zurelay.usage import Usage

_encode = msgspec.json.Encoder().encode


class _Open:
    """A block under way. `call` is a tool call's place among the calls, `heard` whether arguments came bit by bit."""

    __slots__ = ("at", "block", "call", "heard", "pieces")

    def __init__(self, block: Content, at: tuple[int, int], call: int) -> None:
        self.block = block
        self.at = at
        self.call = call
        self.heard = False
        self.pieces: list[str] = []


class Stream:
    """One answer on its way to a chat client.

    `first_token` turns true with the first content, reasoning, refusal, tool call or finish; `usage` is what the
    provider said last, `spoken` the bytes that the model has said; `finish_reason` chat's word for the end; `done` that
    all was said; `failure` why it won't be.
    """

    __slots__ = (
        *("_calls", "_counts", "_head", "_held", "_open", "_said", "_tail", "_thoughts", "_usage_head"),
        *("done", "failure", "finish_reason", "first_token", "spoken", "usage", "wants_usage"),
    )

    def __init__(self, stamp: Stamp, *, include_usage: bool = False) -> None:
        fixed = {
            "id": f"chatcmpl-{stamp.id}",
            "object": "chat.completion.chunk",
            "created": stamp.created,
            "model": stamp.model,
        }
        start = b"data: " + _encode(fixed)[:-1] + b',"choices":['
        self._head = start + b'{"index":0,"delta":'
        self._tail = b"}]" + (b',"usage":null' if include_usage else b"") + b"}\n\n"
        self._usage_head = start + b'],"usage":'
        self.wants_usage = include_usage
        self._held: list[bytes] = []  # thinking without words: not yet a first token
        self._open: dict[int, _Open | None] = {}
        self._counts: dict[str, Any] = {}
        self._calls = self._thoughts = self._said = 0
        self.spoken = 0
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.first_token = False
        self.done = False
        self.failure: Failure | None = None

    def feed(self, event_name: str, data: bytes) -> list[bytes]:
        """Take one event; give the client's events for it. BadAnswer for data that isn't the format's."""
        if self.done or self.failure is not None or not data:
            return []
        event = read(event_name, data)
        if event is None:
            return []
        match event.type:
            case "content_block_delta":
                return self._delta(event.index, event.delta)
            case "content_block_start":
                return self._start(event)
            case "content_block_stop":
                return self._stop(event.index)
            case "message_delta":
                return self._end(event)
            case "message_stop":
                return self._close()
            case "message_start":
                head = event.message.usage if event.message is not None else None
                self._count(head and {**head, "output_tokens": None})  # how much it wrote is known at the end
            case _:
                self.failure = failure(data)
        return []

    def finish(self) -> list[bytes]:
        """The provider's stream is over: what still belongs to the answer, if it was whole; else `failure` says so."""
        if self.done or self.failure is not None:
            return []
        if self.finish_reason is not None:
            return self._close()
        self.failure = Failure(kind=FailureKind.CUT)
        return []

    def usage_chunk(self, used: Usage) -> bytes:
        """Give the chunk that tells a client who asked for it what was used."""
        return self._usage_head + _encode(usage.as_openai(used)) + b"}\n\n"

    def _delta(self, index: int, delta: Delta | None) -> list[bytes]:
        if delta is None:
            raise BadAnswer("a content_block_delta without a delta")
        opened = self._open.get(index)
        if delta.text and delta.type == "text_delta":
            self._said += len(delta.text)
            return self._chunk(b'{"content":' + self._spoken(delta.text) + b"}")
        if delta.thinking and delta.type == "thinking_delta":
            if opened is not None:
                opened.pieces.append(delta.thinking)
            return self._chunk(b'{"reasoning_content":' + self._spoken(delta.thinking) + b"}")
        if delta.partial_json and delta.type == "input_json_delta":
            if index not in self._open:
                raise BadAnswer("arguments for a block that never started")
            if opened is None:
                return []
            opened.heard = True
            return self._arguments(opened.call, delta.partial_json)
        if delta.signature and opened is not None:
            opened.block.signature = delta.signature
        return []

    def _start(self, event: Event) -> list[bytes]:
        block = messages_answers.content(event.content_block)
        if block is None:
            self._open[event.index] = None
            return []
        self._open[event.index] = opened = _Open(block, (self._said, self._calls), self._calls)
        if block.type == "tool_use":
            if not block.id or not block.name:
                raise BadAnswer("a tool call without an id or a name")
            self._calls += 1
            function = {"name": block.name, "arguments": ""}
            call = {"index": opened.call, "id": block.id, "type": "function", "function": function}
            return self._chunk(_encode({"tool_calls": [call]}))
        if block.text:
            self._said += len(block.text)
            return self._chunk(b'{"content":' + self._spoken(block.text) + b"}")
        if block.thinking:
            opened.pieces.append(block.thinking)
            return self._chunk(b'{"reasoning_content":' + self._spoken(block.thinking) + b"}")
        return []

    def _stop(self, index: int) -> list[bytes]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        block = opened.block
        if block.type == "tool_use":
            return [] if opened.heard else self._arguments(opened.call, messages_answers.arguments(block))
        block.thinking = "".join(opened.pieces)
        thought = block.thought() if block.type != "text" else None
        if thought is None:
            return []
        self._thoughts += 1
        delta = _encode({"thinking_blocks": [for_chat(thought, opened.at, self._thoughts - 1)]})
        if self.first_token:
            return self._chunk(delta)
        self._held.append(delta)
        return []

    def _end(self, event: Event) -> list[bytes]:
        self._count(event.usage)
        delta = event.delta
        if delta is None or delta.stop_reason is None or self.finish_reason is not None:
            return []
        self.finish_reason = messages_answers.finish_reason(delta.stop_reason, calls=self._calls > 0)
        refused = []
        if delta.stop_reason == "refusal":
            refused = self._chunk(_encode({"refusal": messages_answers.refusal(delta.stop_details)}))
        return refused + self._chunk(b"{}", self.finish_reason)

    def _close(self) -> list[bytes]:
        found: list[bytes] = []
        if self.finish_reason is None:
            if not self.first_token:
                self.failure = Failure(kind=FailureKind.EMPTY)
                return []
            self.finish_reason = messages_answers.finish_reason(None, calls=self._calls > 0)
            found = self._chunk(b"{}", self.finish_reason)
        self.done = True
        if self.wants_usage and self.usage is not None and tells_output(self._counts):
            found.append(self.usage_chunk(self.usage))
            self.wants_usage = False
        return [*found, sse.DONE]

    def _arguments(self, call: int, text: str) -> list[bytes]:
        function = b'{"arguments":' + self._spoken(text) + b"}"
        return self._chunk(b'{"tool_calls":[{"index":%d,"function":%b}]}' % (call, function))

    def _spoken(self, text: str) -> bytes:
        """Write what the model said, and count it."""
        written = _encode(text)
        self.spoken += len(written) - len('""')
        return written

    def _chunk(self, delta: bytes, finish: str | None = None) -> list[bytes]:
        reason = b"null" if finish is None else _encode(finish)
        found = self._head + delta + b',"logprobs":null,"finish_reason":' + reason + self._tail
        if self.first_token:
            return [found]
        self.first_token = True
        before = (b'{"role":"assistant","content":"","refusal":null}', *self._held)
        return [*(chunk for delta in before for chunk in self._chunk(delta)), found]

    def _count(self, counts: dict[str, Any] | None) -> None:
        if counts:
            self._counts = merged(self._counts, counts)
            self.usage = from_anthropic(self._counts)
