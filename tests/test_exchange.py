"""Between a client's format and a provider's: every pair, bodies one way, answers and streams the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from formats.answers import STAMP
from making import attempt
from zurelay import chunk, exchange, message_event
from zurelay.chat_stream import ChatStream
from zurelay.errors import InvalidRequest
from zurelay.exchange import Asked
from zurelay.jsonedit import Document
from zurelay.messages_stream import MessagesStream
from zurelay.model import Endpoint, Format
from zurelay.openai_answer import BadAnswerError
from zurelay.plan import Attempt, Reason
from zurelay.sse import Event
from zurelay.translated_stream import TranslatedStream
from zurelay.usage import Usage

CHAT, MESSAGES, COUNT = Endpoint.CHAT, Endpoint.MESSAGES, Endpoint.COUNT_TOKENS
OPENAI, ANTHROPIC = Format.OPENAI, Format.ANTHROPIC
TALK = [{"role": "user", "content": "hi"}]


def at(format: Format, **facts: Any) -> Attempt:
    return attempt("first/one", format=format, **{"upstream": "up", **facts})


def body(endpoint: Endpoint, one: Attempt, **fields: Any) -> dict[str, Any]:
    data = json.dumps({"model": "first", "messages": TALK, **fields}).encode()
    found: dict[str, Any] = json.loads(exchange.request_body(Document.parse(data), one, endpoint))
    return found


BODIES: dict[str, tuple[Endpoint, Attempt, dict[str, Any], dict[str, Any]]] = {
    "chat to chat": (CHAT, at(OPENAI, effort="low"), {"x": 1}, {"x": 1, "messages": TALK, "reasoning_effort": "low"}),
    "chat to messages": (
        CHAT,
        at(ANTHROPIC, effort="low", max_output=7),
        {"stop": "a"},
        {"max_tokens": 7, "stop_sequences": ["a"], "output_config": {"effort": "low"}},
    ),
    "messages to messages": (MESSAGES, at(ANTHROPIC), {"x": 1}, {"x": 1, "messages": TALK}),
    "messages to chat": (
        MESSAGES,
        at(OPENAI, effort="low"),
        {"max_tokens": 5, "stop_sequences": ["a"]},
        {"max_tokens": 5, "stop": ["a"], "reasoning_effort": "low"},
    ),
    "a count": (COUNT, at(ANTHROPIC), {"x": 1}, {"x": 1, "messages": TALK}),
    "translated, then renamed": (
        MESSAGES,
        at(OPENAI, rename={"max_tokens": "max_completion_tokens"}),
        {"max_tokens": 5},
        {"max_completion_tokens": 5},
    ),
    "translated, and dropped for another model": (
        MESSAGES,
        at(OPENAI, drop=("stop",), named=False),
        {"max_tokens": 5, "stop_sequences": ["a"]},
        {"max_tokens": 5},
    ),
    "what the translation itself wrote is dropped for any": (
        MESSAGES,
        at(OPENAI, drop=("stream_options",)),
        {"max_tokens": 5, "stream": True},
        {"max_tokens": 5, "stream": True},
    ),
}


@pytest.mark.parametrize(("endpoint", "one", "sent", "expected"), BODIES.values(), ids=BODIES)
def test_the_body_of_an_attempt(
    endpoint: Endpoint, one: Attempt, sent: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = body(endpoint, one, **sent)
    assert {"model": "up", **expected} == {name: found.get(name) for name in ("model", *expected)}
    assert not {*one.drop, *one.rename} & found.keys()


LOST = {
    "stop sequences": (MESSAGES, OPENAI, "stop", {"max_tokens": 5, "stop_sequences": ["a"]}, "stop_sequences"),
    "the user": (MESSAGES, OPENAI, "user", {"max_tokens": 5, "metadata": {"user_id": "u"}}, "metadata.user_id"),
    "stop": (CHAT, ANTHROPIC, "stop_sequences", {"stop": ["a"]}, "stop"),
    "tools": (CHAT, ANTHROPIC, "tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
}


@pytest.mark.parametrize(("endpoint", "format", "drop", "sent", "param"), LOST.values(), ids=LOST)
def test_a_named_model_loses_no_field_in_translation(
    endpoint: Endpoint, format: Format, drop: str, sent: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest, match=param) as caught:
        body(endpoint, at(format, drop=(drop,)), **sent)
    assert param == caught.value.param


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.MESSAGES])
@pytest.mark.parametrize("format", list(Format))
def test_a_cap_holds_for_a_budget_of_thinking_in_every_pair_of_formats(endpoint: Endpoint, format: Format) -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": 60_000}, "max_tokens": 64_000}
    for facts in ({"effort": "low"}, {}):  # with levels, and without
        sent = body(endpoint, at(format, cap="low", **facts), **asked)
        assert sent.get("thinking", {}).get("budget_tokens", 0) <= 1024
        free = body(endpoint, at(format, **facts), **asked)
        assert free.get("thinking") in (None, asked["thinking"])


def test_only_a_body_of_the_clients_own_format_is_made_beforehand() -> None:
    document = Document.parse(json.dumps({"model": "first", "messages": TALK}).encode())
    found = {
        (endpoint, format): exchange.can_prepare(document, at(format), endpoint)
        for endpoint in Endpoint
        for format in Format
    }
    assert found == {
        (endpoint, format): (format is OPENAI) is (endpoint is CHAT) for endpoint in Endpoint for format in Format
    }


SAID = {"role": "assistant", "content": "Hi"}
COMPLETION = {"choices": [{"message": SAID, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
MESSAGE = {
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}
ANSWERS: dict[str, tuple[Endpoint, Format, dict[str, Any], str]] = {
    "chat from chat": (CHAT, OPENAI, COMPLETION, "stop"),
    "chat from messages": (CHAT, ANTHROPIC, MESSAGE, "stop"),
    "messages from messages": (MESSAGES, ANTHROPIC, MESSAGE, "end_turn"),
    "messages from chat": (MESSAGES, OPENAI, COMPLETION, "end_turn"),
    "an error that is none": (MESSAGES, OPENAI, {**COMPLETION, "error": {}}, "end_turn"),
}


@pytest.mark.parametrize(("endpoint", "format", "value", "reason"), ANSWERS.values(), ids=ANSWERS)
def test_a_whole_answer(endpoint: Endpoint, format: Format, value: dict[str, Any], reason: str) -> None:
    found = exchange.whole_answer(json.dumps(value).encode(), at(format, model="opus"), endpoint, STAMP)
    made = json.loads(found.body)
    text = made["choices"][0]["message"]["content"] if endpoint is CHAT else made["content"][0]["text"]
    used = Usage(prompt=3, completion=1)
    assert ("opus", "Hi", used, (reason,)) == (made["model"], text, found.usage, found.finish_reasons)


def test_a_count_is_answered_as_it_came() -> None:
    assert exchange.whole_answer(b'{"input_tokens": 3}', at(ANTHROPIC), COUNT, STAMP).body == b'{"input_tokens": 3}'


BAD = {
    "an error": (b'{"error":{"message":"m"}}', Reason.ERROR_BODY),
    "no JSON": (b"<html>", Reason.NOT_JSON),
    "nothing": (b"", Reason.NOT_JSON),
    "another object": (b'{"a":1}', Reason.NOT_JSON),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize("endpoint", [CHAT, MESSAGES])
def test_what_is_no_answer(endpoint: Endpoint, format: Format, data: bytes, reason: Reason) -> None:
    with pytest.raises(BadAnswerError) as caught:
        exchange.whole_answer(data, at(format), endpoint, STAMP)
    assert reason is caught.value.reason


STREAMS = {
    (CHAT, OPENAI): ChatStream,
    (CHAT, ANTHROPIC): TranslatedStream,
    (MESSAGES, ANTHROPIC): MessagesStream,
    (MESSAGES, OPENAI): TranslatedStream,
}


@pytest.mark.parametrize(("pair", "kind"), STREAMS.items(), ids=str)
def test_what_carries_a_stream(pair: tuple[Endpoint, Format], kind: type) -> None:
    endpoint, format = pair
    assert kind is type(exchange.stream(at(format), endpoint, Asked(), STAMP))


def test_the_translated_stream_carries_the_stamp_and_what_was_asked() -> None:
    made = exchange.stream(at(ANTHROPIC), CHAT, Asked(usage=True), STAMP)
    head = b'{"type":"message_start","message":{"usage":{"input_tokens":3}}}'
    made.feed(Event("message_start", head, b""))
    out = made.feed(Event("message_delta", b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}', b""))
    out += made.feed(Event("message_stop", b'{"type":"message_stop"}', b""))
    assert b'"model":"opus"' in out
    assert b'"usage":{"prompt_tokens":3' in out


def test_events_are_read_by_the_providers_format() -> None:
    assert (chunk.seen, message_event.seen) == (exchange.seen(OPENAI), exchange.seen(ANTHROPIC))


NAMES = {
    "an answer": (b'{"id": "x", "model": "gpt-x-2026"}', "gpt-x-2026"),
    "a stream's head": (b'{"type": "message_start", "message": {"model": "claude-x"}}', "claude-x"),
    "no name": (b"{}", ""),
    "a name that is none": (b'{"model": 5}', ""),
    "a name without end": (b'{"model": "' + b"x" * 1_000 + b'"}', "x" * 128),
    "no JSON": (b"[DONE]", ""),
    "half a character": (b'{"model": "\xff"}', ""),
}


@pytest.mark.parametrize(("data", "name"), NAMES.values(), ids=NAMES)
def test_a_providers_name_of_the_model_is_read(data: bytes, name: str) -> None:
    assert name == exchange.named(data)
