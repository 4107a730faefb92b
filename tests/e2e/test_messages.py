"""Claude both ways: Anthropic's SDK on /v1/messages, and Claude behind chat completions (SPEC 2, 4, 8, 9)."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from e2e.claudes import HELLO, WEATHER
from e2e.harness import Gateway, Provider, simulate


def sent(provider: Provider) -> dict[str, Any]:
    """The last body that a provider got."""
    found: dict[str, Any] = json.loads(provider.requests[-1].body)
    return found


# Messages in, messages out.


@pytest.mark.parametrize("model", ["claude", "opus", "dual"])
def test_a_message(claude: anthropic.Anthropic, model: str) -> None:
    raw = claude.messages.with_raw_response.create(model=model, max_tokens=200, messages=HELLO)
    answer = raw.parse()
    assert answer.type == "message"
    assert answer.role == "assistant"
    assert answer.model == raw.headers["x-zurelay-model"] == ("dual" if model == "dual" else "claude")
    assert raw.headers["request-id"] == raw.headers["x-zurelay-request-id"]
    assert answer.content[0].type == "text"
    assert answer.content[0].text
    assert answer.stop_reason == "end_turn"
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0


@pytest.mark.parametrize("model", ["claude", "dual"])
def test_a_streamed_message(claude: anthropic.Anthropic, model: str) -> None:
    with claude.messages.stream(model=model, max_tokens=200, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.model == model
    assert final.content[0].type == "text"
    assert final.content[0].text == text != ""
    assert final.usage.output_tokens > 0


@pytest.mark.parametrize("model", ["claude", "dual"])
@pytest.mark.parametrize("stream", [False, True])
def test_tools_go_round(claude: anthropic.Anthropic, model: str, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "What's the weather in Lisbon?"}]

    def answer() -> anthropic.types.Message:
        common: dict[str, Any] = {"model": model, "max_tokens": 400, "messages": messages, "tools": [WEATHER]}
        if not stream:
            made: anthropic.types.Message = claude.messages.create(**common)
            return made
        with claude.messages.stream(**common) as streamed:
            return streamed.get_final_message()

    first = answer()
    assert first.stop_reason == "tool_use"
    call = next(block for block in first.content if block.type == "tool_use")
    assert "city" in call.input
    messages.append({"role": "assistant", "content": [block.model_dump() for block in first.content]})
    messages.append(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "22 degrees"}]}
    )
    second = answer()
    assert any(block.type == "text" and "22 degrees" in block.text for block in second.content)


@pytest.mark.parametrize(
    ("model", "asked", "effort", "thinking", "shown"),
    [
        ("claude", {}, None, None, "high"),
        ("claude", {"output_config": {"effort": "low"}}, "low", None, "low"),
        ("claude", {"output_config": {"effort": "minimal"}}, "low", None, "low"),
        ("claude", {"thinking": {"type": "disabled"}}, "low", None, "low"),
        ("claude", {"thinking": {"type": "adaptive"}}, None, {"type": "adaptive"}, "high"),
        (
            "claude",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000},
            None,
            {"type": "enabled", "budget_tokens": 1024},
            "high",
        ),
        ("spare", {"thinking": {"type": "disabled"}}, None, {"type": "disabled"}, "none"),
        ("spare", {"output_config": {"effort": "max"}}, "low", None, "low"),
        ("guarded", {"output_config": {"effort": "max"}}, None, None, "none"),
    ],
)
def test_the_nearest_level_runs(
    claude: anthropic.Anthropic,
    provider: Provider,
    model: str,
    asked: dict[str, Any],
    effort: str | None,
    thinking: dict[str, Any] | None,
    shown: str,
) -> None:
    raw = claude.messages.with_raw_response.create(**{"model": model, "max_tokens": 200, "messages": HELLO, **asked})
    assert raw.headers["x-zurelay-reasoning-effort"] == shown
    body = sent(provider)
    assert (body.get("output_config") or {}).get("effort") == effort
    assert body.get("thinking") == thinking


def test_what_is_not_ours_passes_as_sent_with_the_headers_of_the_format(mixed: Gateway, provider: Provider) -> None:
    body = b'{"model":"claude" , "max_tokens":50,"messages":[{"role":"user","content":"hi"}], "x":1e400}'
    headers = {"anthropic-beta": "a-2025", "x-api-key": "zk_client"}
    assert httpx.post(mixed.url + "/v1/messages", content=body, headers=headers, timeout=30).status_code == 200
    record = provider.requests[-1]
    assert record.body == body.replace(b'"claude"', b'"c1"')
    assert record.path == "/a1/v1/messages"
    assert record.header("anthropic-version") == "2023-06-01"
    assert record.header("anthropic-beta") == "a-2025"
    assert record.header("x-api-key") is None


def test_tokens_are_counted_by_the_first_route_of_the_format(claude: anthropic.Anthropic, provider: Provider) -> None:
    assert claude.messages.count_tokens(model="opus", messages=HELLO).input_tokens > 0
    assert provider.requests[-1].path == "/a1/v1/messages/count_tokens"
    assert sent(provider)["model"] == "c1"
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.count_tokens(model="dual", messages=HELLO)


def test_a_model_without_the_format_is_refused(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="chatty"):
        claude.messages.create(model="chatty", max_tokens=10, messages=HELLO)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("faults", "attempts"),
    [
        ({"c1": "status:529"}, "3"),
        ({"c1": "first-error"}, "3"),
        ({"c1": "role-then-error"}, "3"),
        ({"c1": "status:429"}, "2"),
        ({"c1": "reset"}, "3"),
        ({"c1": "empty-stream"}, "3"),
        ({"c1": "not-json"}, "3"),
    ],
)
def test_failures_before_the_first_token_are_invisible(
    claude: anthropic.Anthropic, stream: bool, faults: dict[str, str | list[str]], attempts: str
) -> None:
    made = claude.messages.with_raw_response.create(
        model="claude", max_tokens=100, messages=HELLO, stream=stream, extra_body=simulate(**faults)
    )
    assert made.headers["x-zurelay-attempts"] == attempts
    text = made.http_response.read().decode()
    assert text.count("event: message_start") == int(stream)
    assert ("event: message_stop" in text) is stream
    assert '"error"' not in text


@pytest.mark.parametrize("stream", [False, True])
def test_another_model_answers_in_its_place(claude: anthropic.Anthropic, stream: bool) -> None:
    made = claude.messages.with_raw_response.create(
        model="guarded", max_tokens=100, messages=HELLO, stream=stream, extra_body=simulate(g1="status:500")
    )
    assert made.headers["x-zurelay-model"] == "spare"
    assert made.headers["x-zurelay-routed-from"] == "guarded"
    assert b'"spare"' in made.http_response.read()


@pytest.mark.parametrize("stream", [False, True])
def test_all_failed_is_overloaded_in_the_formats_shape(claude: anthropic.Anthropic, stream: bool) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude.messages.create(
            model="claude",
            max_tokens=100,
            messages=HELLO,
            stream=stream,
            extra_body=simulate(c1="status:529", c2="status:529"),
        )
    assert caught.value.status_code == 503
    body = caught.value.response.json()
    assert body["type"] == "error"
    assert body["error"]["type"] == "overloaded_error"
    assert body["request_id"] == caught.value.response.headers["request-id"]


def test_a_late_failure_is_an_error_event(claude: anthropic.Anthropic) -> None:
    stream = claude.messages.create(
        model="claude", max_tokens=100, messages=HELLO, stream=True, extra_body=simulate(c1="late-error:2")
    )
    with pytest.raises(anthropic.APIStatusError, match="broke off"):
        list(stream)


@pytest.mark.parametrize("model", ["claude", "dual"])
def test_an_early_opened_stream_pings_and_stays_legal(mixed: Gateway, claude: anthropic.Anthropic, model: str) -> None:
    slow = simulate(c1="slow-token:2.5", d1="slow-token:2.5")
    with claude.messages.stream(model=model, max_tokens=100, messages=HELLO, extra_body=slow) as stream:
        assert stream.get_final_message().content
    body = {"model": model, "max_tokens": 100, "messages": HELLO, "stream": True, **slow}
    text = httpx.post(mixed.url + "/v1/messages", json=body, timeout=30).text
    assert text.startswith('event: ping\ndata: {"type": "ping"}\n\nevent: ping\n')
    assert text.count("event: message_start") == 1
    assert text.rstrip().endswith('{"type":"message_stop"}')


# Chat completions in, a Claude behind.

CHAT_WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.mark.parametrize("stream", [False, True])
def test_claude_answers_chat_completions(chat: openai.OpenAI, provider: Provider, stream: bool) -> None:
    common: dict[str, Any] = {
        "model": "claude",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Say hello"}],
        "reasoning_effort": "high",
    }
    if stream:
        common |= {"stream": True, "stream_options": {"include_usage": True}}
    made = chat.chat.completions.create(**common)
    if isinstance(made, openai.Stream):
        chunks = list(made)
        assert {chunk.model for chunk in chunks} == {"claude"}
        assert chunks[0].id.startswith("chatcmpl-")
        assert chunks[-1].choices == []
        usage = chunks[-1].usage
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
        thoughts = [(chunk.choices[0].delta.model_extra or {}).get("reasoning_content") for chunk in chunks[:-1]]
        reasoning = "".join(filter(None, thoughts))
    else:
        assert made.model == "claude"
        assert made.id.startswith("chatcmpl-")
        usage = made.usage
        text = made.choices[0].message.content or ""
        reasoning = (made.choices[0].message.model_extra or {})["reasoning_content"]
    assert text
    assert reasoning
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0
    body = sent(provider)
    assert body["system"] == [{"type": "text", "text": "Be kind."}] or body["system"] == "Be kind."
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"]["effort"] == "high"
    assert body["max_tokens"] == 64_000


@pytest.mark.parametrize("stream", [False, True])
def test_claude_calls_tools_through_chat_completions(chat: openai.OpenAI, stream: bool) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What's the weather in Lisbon?"}]

    def answer() -> Any:
        if not stream:
            return chat.chat.completions.create(
                model="claude", messages=messages, tools=[CHAT_WEATHER], reasoning_effort="low"
            )
        with chat.chat.completions.stream(
            model="claude", messages=messages, tools=[CHAT_WEATHER], reasoning_effort="low"
        ) as streamed:
            return streamed.get_final_completion()

    first = answer().choices[0]
    assert first.finish_reason == "tool_calls"
    (call,) = first.message.tool_calls
    assert "city" in json.loads(call.function.arguments)
    messages.append(first.message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "22 degrees"})
    assert "22 degrees" in answer().choices[0].message.content


def test_a_field_that_claude_cannot_take_is_refused_by_name(chat: openai.OpenAI, provider: Provider) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat.chat.completions.create(model="claude", messages=[{"role": "user", "content": "hi"}], n=2)
    assert caught.value.param == "n"
    assert provider.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_falls_back_over_formats(chat: openai.OpenAI, stream: bool) -> None:
    made = chat.chat.completions.with_raw_response.create(
        model="claude",
        messages=[{"role": "user", "content": "hi"}],
        stream=stream,
        extra_body={"models": ["chatty"], **simulate(c1="status:500", c2="status:500")},
    )
    assert made.headers["x-zurelay-model"] == "chatty"
    assert made.headers["x-zurelay-attempts"] == "4"


@pytest.mark.parametrize("fault", ["late-error:2", "cut:2", "abort:2"])
def test_a_late_failure_of_claude_is_an_error_of_the_chat_stream(chat: openai.OpenAI, fault: str) -> None:
    stream = chat.chat.completions.create(
        model="claude", messages=[{"role": "user", "content": "hi"}], stream=True, extra_body=simulate(c1=fault)
    )
    with pytest.raises(openai.APIError, match="broke off"):
        list(stream)
