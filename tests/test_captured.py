"""Content as the conventions' schemas want it, from both formats, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zurelay import captured
from zurelay.model import Endpoint
from zurelay.semconv import INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def asked(endpoint: Endpoint, **body: Any) -> dict[str, Any]:
    found = captured.asked(endpoint, json.dumps(body).encode())
    return {name: json.loads(value) for name, value in found.items()}


def answered(endpoint: Endpoint, **body: Any) -> Any:
    return json.loads(captured.answered(endpoint, json.dumps(body).encode())[OUTPUT_MESSAGES])


def streamed(endpoint: Endpoint, *events: Any, end: str = "") -> Any:
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end
    return json.loads(captured.streamed(endpoint, data.encode())[OUTPUT_MESSAGES])


def test_chat_messages_of_every_role() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    found = asked(
        Endpoint.CHAT,
        messages=[
            {"role": "system", "content": "Be short."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        ],
    )
    assert {
        INPUT_MESSAGES: [
            {"role": "system", "parts": [text("Be short.")]},
            {
                "role": "user",
                "parts": [text("What?"), {"type": "blob", "modality": "image", "content": ""}],
            },
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": '{"at": 1}'}],
            },
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a cat"}]},
        ]
    } == found


def test_messages_have_their_system_apart() -> None:
    found = asked(
        Endpoint.MESSAGES,
        system=[{"type": "text", "text": "Be short."}],
        messages=[
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a cat"}]},
        ],
    )
    assert {
        INPUT_MESSAGES: [
            {"role": "user", "parts": [text("Hi")]},
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "hm"},
                    {"type": "tool_call", "id": "t1", "name": "look", "arguments": {"at": 1}},
                ],
            },
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "t1", "response": "a cat"}]},
        ],
        SYSTEM_INSTRUCTIONS: [text("Be short.")],
    } == found


CHAT_ANSWER = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            text("Hello"),
            {"type": "tool_call", "id": "c1", "name": "look", "arguments": "{}"},
        ],
        "finish_reason": "tool_call",
    },
    {"role": "assistant", "parts": [text("No.")], "finish_reason": "stop"},
]


def test_a_whole_chat_answer() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "reasoning_content": "hm", "content": "Hello", "tool_calls": [call]}
    choices = [
        {"index": 0, "message": message, "finish_reason": "tool_calls"},
        {"index": 1, "message": {"refusal": "No."}, "finish_reason": "stop"},
    ]
    assert CHAT_ANSWER == answered(Endpoint.CHAT, choices=choices)


def test_a_streamed_chat_answer_is_the_same() -> None:
    def choice(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}

    found = streamed(
        Endpoint.CHAT,
        choice(0, {"role": "assistant", "reasoning_content": "h"}),
        choice(1, {"refusal": "No."}),
        choice(0, {"reasoning_content": "m", "content": "Hel"}),
        choice(0, {"content": "lo"}),
        choice(0, {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{"}}]}),
        choice(0, {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
        choice(0, {}, "tool_calls"),
        choice(1, {}, "stop"),
        {"choices": [], "usage": {}},
        end="data: [DONE]\n\n",
    )
    assert CHAT_ANSWER == found


MESSAGES_ANSWER = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            text("Hello"),
            {"type": "tool_call", "id": "t1", "name": "look", "arguments": {"at": 1}},
        ],
        "finish_reason": "tool_call",
    }
]


def test_a_whole_messages_answer() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
    ]
    assert MESSAGES_ANSWER == answered(Endpoint.MESSAGES, content=content, stop_reason="tool_use")


def test_a_streamed_messages_answer_is_the_same() -> None:
    def start(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index: int, **change: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": change}

    found = streamed(
        Endpoint.MESSAGES,
        {"type": "message_start", "message": {"model": "m"}},
        start(0, type="thinking", thinking=""),
        delta(0, thinking="hm"),
        start(1, type="text", text=""),
        delta(1, text="Hel"),
        {"type": "ping"},
        delta(1, text="lo"),
        start(2, type="tool_use", id="t1", name="look", input={}),
        delta(2, partial_json='{"at"'),
        delta(2, partial_json=": 1}"),
        delta(7, text="of no block"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    assert MESSAGES_ANSWER == found


def test_a_stream_that_broke_off_says_what_it_said() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}
    assert [{"role": "assistant", "parts": [text("Hel")], "finish_reason": "error"}] == streamed(
        Endpoint.CHAT, chunk, end='data: {"choices": [{"ind'
    )


def test_a_count_of_tokens_is_no_message() -> None:
    assert {} == captured.answered(Endpoint.COUNT_TOKENS, b'{"input_tokens": 3}')


def test_what_is_too_long_is_named_and_left_out() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * captured.MOST}]}).encode()
    assert {"zurelay.content_too_long": INPUT_MESSAGES} == captured.asked(Endpoint.CHAT, body)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"messages": 5}', b'{"messages": [5, null]}', b"{", b"[" * 5_000]
)
def test_what_is_no_request_has_no_messages(body: bytes) -> None:
    assert [] == json.loads(captured.asked(Endpoint.CHAT, body)[INPUT_MESSAGES])
