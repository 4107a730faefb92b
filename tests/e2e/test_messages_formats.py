"""A client of one format and a model of the other: what is said, what is refused, and fallback across (SPEC 5, 9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from e2e.claudes import HELLO, LEVELS, WEATHER
from e2e.harness import Gateway, Provider, simulate

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}


def chat_body(**more: Any) -> dict[str, Any]:
    return {"model": "claude", "messages": HI, **more}


def messages_body(**more: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, "messages": HELLO, **more}


def post(gateway: Gateway, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    return httpx.post(gateway.url + path, json=body, headers=headers, timeout=30)


def sent(provider: Provider) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(provider.requests[-1].body)
    return found


# What a named model can't take is a 400 that names it, streamed or not, before any provider is asked.

NAMED_REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "several answers": ({"n": 2}, "n"),
    "audio": ({"modalities": ["text", "audio"], "audio": {"voice": "v", "format": "wav"}}, "audio"),
    "a custom tool": ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools[0].type"),
    "functions": ({"functions": [{"name": "f"}]}, "functions"),
    "a web search": ({"web_search_options": {}}, "web_search_options"),
    "a seed": ({"seed": 1}, "seed"),
    "logprobs": ({"logprobs": True}, "logprobs"),
    "a temperature beside reasoning": ({"temperature": 0.5, "reasoning_effort": "high"}, "temperature"),
    "a temperature out of range": ({"temperature": 2.5}, "temperature"),
    "a result without its call": (
        {"messages": [*HI, {"role": "tool", "tool_call_id": "x", "content": "a"}]},
        "messages[1].tool_call_id",
    ),
    "a call without its result": (
        {
            "messages": [
                *HI,
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "user", "content": "well?"},
            ]
        },
        "messages[1].tool_calls",
    ),
    "an empty last message": ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
    "a role that is none": ({"messages": [{"role": "boss", "content": "a"}]}, "messages[0].role"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "param"), NAMED_REFUSALS.values(), ids=NAMED_REFUSALS)
def test_what_claude_cannot_take_of_a_chat_is_named(
    mixed: Gateway, provider: Provider, fields: dict[str, Any], param: str, stream: bool
) -> None:
    provider.reset()
    answer = post(mixed, "/v1/chat/completions", chat_body(stream=stream, **fields))
    error = answer.json()["error"]
    assert (400, param, "invalid_request_error") == (answer.status_code, error["param"], error["type"])
    assert param.removesuffix(".type") in error["message"]
    assert provider.requests == []


DUAL_REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "top_k": ({"top_k": 4}, "top_k"),
    "a container": ({"container": "c"}, "container"),
    "a server's tool": ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
    "a file by its id": (
        {
            "messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]},
            ]
        },
        "messages[0].content[0].source",
    ),
    "no max_tokens": ({"max_tokens": None}, "max_tokens"),
    "a result without its call": (
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "a"}]}]},
        "messages[0].content[0]",
    ),
    "five stop sequences": ({"stop_sequences": list("abcde")}, "stop_sequences"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "named"), DUAL_REFUSALS.values(), ids=DUAL_REFUSALS)
def test_what_another_format_cannot_take_of_a_message_is_named(
    mixed: Gateway, provider: Provider, fields: dict[str, Any], named: str, stream: bool
) -> None:
    provider.reset()
    answer = post(mixed, "/v1/messages", messages_body(model="dual", stream=stream, **fields))
    body = answer.json()
    assert (400, "error", "invalid_request_error") == (answer.status_code, body["type"], body["error"]["type"])
    assert f"`{named}`" in body["error"]["message"]
    assert answer.headers["request-id"] == body["request_id"]
    assert provider.requests == []


# A model that nobody named and that can't take the request doesn't end it.


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_cannot_be_told_is_left_out(mixed: Gateway, provider: Provider, stream: bool) -> None:
    provider.reset()
    body = chat_body(
        model="chatty", n=2, stream=stream, models=["claude", "dual"], **simulate(m1="status:500", d1="ok")
    )
    answer = post(mixed, "/v1/chat/completions", body)
    assert (200, "dual", "3") == (
        answer.status_code,
        answer.headers["x-zurelay-model"],
        answer.headers["x-zurelay-attempts"],
    )


@pytest.mark.parametrize("stream", [False, True])
def test_where_none_is_left_the_named_ones_failure_is_told(mixed: Gateway, provider: Provider, stream: bool) -> None:
    provider.reset()
    body = chat_body(model="chatty", n=2, stream=stream, models=["claude"], **simulate(m1="status:500"))
    answer = post(mixed, "/v1/chat/completions", body)
    assert (503, "2") == (answer.status_code, answer.headers["x-zurelay-attempts"])


@pytest.mark.parametrize("stream", [False, True])
def test_what_another_model_has_no_place_for_is_dropped(mixed: Gateway, provider: Provider, stream: bool) -> None:
    provider.reset()
    fields = {"seed": 1, "logit_bias": {"1": 2}, "temperature": 0.2, "reasoning_effort": "high"}
    body = chat_body(model="chatty", models=["claude"], stream=stream, **fields, **simulate(m1="status:500"))
    answer = post(mixed, "/v1/chat/completions", body)
    assert (200, "claude") == (answer.status_code, answer.headers["x-zurelay-model"])
    assert not {"seed", "logit_bias", "temperature", "models"} & sent(provider).keys()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["status:500", "first-error", "role-then-error", "reset", "empty-stream", "not-json"])
def test_a_chat_goes_from_one_format_to_the_other_and_back(
    mixed: Gateway, provider: Provider, fault: str, stream: bool
) -> None:
    for model, other, upstreams in (("claude", "chatty", ("c1", "c2")), ("chatty", "claude", ("m1",))):
        provider.reset()
        body = chat_body(
            model=model, models=[other], stream=stream, tools=[TOOL], **simulate(**dict.fromkeys(upstreams, fault))
        )
        answer = post(mixed, "/v1/chat/completions", body)
        assert (200, other) == (answer.status_code, answer.headers["x-zurelay-model"])
        assert answer.headers["x-zurelay-routed-from"] == model
        assert "get_weather" in answer.text
        assert '"error"' not in answer.text
        if stream:
            assert answer.text.count('"role":"assistant"') == 1
            assert answer.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["status:529", "first-error", "role-then-error", "reset", "empty-stream", "not-json"])
def test_a_message_goes_to_a_model_of_the_other_format(
    mixed: Gateway, provider: Provider, fault: str, stream: bool
) -> None:
    provider.reset()
    body = messages_body(models=["dual"], stream=stream, tools=[WEATHER], **simulate(c1=fault, c2=fault))
    answer = post(mixed, "/v1/messages", body)
    assert (200, "dual", "claude") == (
        answer.status_code,
        answer.headers["x-zurelay-model"],
        answer.headers["x-zurelay-routed-from"],
    )
    assert answer.text.count("message_start") == 2 * int(stream)
    assert '"tool_use"' in answer.text
    assert '"error"' not in answer.text


# Parameters that routes refuse.


@pytest.fixture(scope="module")
def picky(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    base = f"http://127.0.0.1:{provider.port}"
    old = {"rename": {"max_tokens": "max_completion_tokens"}, "drop": ["stop", "temperature"]}
    claude = {"base_url": f"{base}/a1/v1", "format": "anthropic"}
    catalog = {
        "providers": {
            "a1": {**claude, "params": {"drop": ["top_k", "stop_sequences"], "rename": {"metadata": "labels"}}},
            "a2": claude,
            "p1": {"base_url": f"{base}/p1/v1", "format": "openai", "params": old},
        },
        "models": {
            "claude": {"routes": [{"provider": "a1", "model": "c1"}], "context_window": 100_000},
            "open": {"routes": [{"provider": "a2", "model": "c2"}], "context_window": 100_000, "fallbacks": ["claude"]},
            "dual": {
                "routes": [{"provider": "p1", "model": "d1"}],
                "context_window": 100_000,
                "messages": True,
            },
            "twin": {
                "routes": [{"provider": "a2", "model": "t1"}, {"provider": "p1", "model": "t2"}],
                "context_window": 100_000,
                "messages": True,
                "reasoning": {"levels": LEVELS},
            },
        },
    }
    running = Gateway(tmp_path_factory.mktemp("picky"), catalog).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.mark.parametrize("stream", [False, True])
def test_params_of_a_claude_are_renamed_dropped_or_refused(picky: Gateway, provider: Provider, stream: bool) -> None:
    provider.reset()
    more = {"stream": stream, "metadata": {"user_id": "u"}}
    assert post(picky, "/v1/messages", messages_body(**more)).status_code == 200
    assert sent(provider)["labels"] == {"user_id": "u"}
    refused = post(picky, "/v1/messages", messages_body(top_k=4, **more))
    assert (400, True) == (refused.status_code, "top_k" in refused.json()["error"]["message"])
    body = messages_body(model="open", top_k=4, **more, **simulate(c2="status:500"))
    assert post(picky, "/v1/messages", body).status_code == 200
    assert not {"top_k", "metadata"} & sent(provider).keys()
    assert sent(provider)["labels"] == {"user_id": "u"}


@pytest.mark.parametrize("stream", [False, True])
def test_params_hold_for_what_a_translation_writes(picky: Gateway, provider: Provider, stream: bool) -> None:
    provider.reset()
    assert post(picky, "/v1/messages", messages_body(model="dual", stream=stream)).status_code == 200
    assert (100, False) == (sent(provider)["max_completion_tokens"], "max_tokens" in sent(provider))
    provider.reset()
    refused = post(picky, "/v1/messages", messages_body(model="dual", stream=stream, stop_sequences=["a"]))
    assert (400, True) == (refused.status_code, "stop_sequences" in refused.json()["error"]["message"])
    refused = post(picky, "/v1/chat/completions", chat_body(stream=stream, stop=["a"]))
    assert (400, "stop") == (refused.status_code, refused.json()["error"]["param"])
    assert provider.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_route_that_cannot_be_told_is_left_out_of_a_named_model(
    picky: Gateway, provider: Provider, stream: bool
) -> None:
    provider.reset()
    body = messages_body(model="twin", top_k=4, stream=stream, **simulate(t1="status:500"))
    assert (503, ["t1", "t1"]) == (
        post(picky, "/v1/messages", body).status_code,
        [json.loads(one.body)["model"] for one in provider.requests],
    )
    provider.reset()
    body = messages_body(model="twin", stream=stream, **simulate(t1="status:500"))
    assert post(picky, "/v1/messages", body).status_code == 200
    assert [json.loads(one.body)["model"] for one in provider.requests] == ["t1", "t1", "t2"]
    provider.reset()
    assert post(picky, "/v1/chat/completions", chat_body(model="twin", n=2, stream=stream)).status_code == 200
    assert [json.loads(one.body)["model"] for one in provider.requests] == ["t2"]


# Reasoning: who asked for it, and how it gets back to the model that made it.


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("thinking", "kinds"),
    [
        ({}, ["text"]),
        ({"thinking": {"type": "adaptive"}}, ["thinking", "text"]),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, ["thinking", "text"]),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, ["text"]),
        ({"thinking": {"type": "disabled"}}, ["text"]),
    ],
)
def test_a_messages_client_gets_the_reasoning_that_it_asked_for(
    claude: anthropic.Anthropic, thinking: dict[str, Any], kinds: list[str], stream: bool
) -> None:
    common: dict[str, Any] = {"model": "dual", "max_tokens": 4000, "messages": HELLO, **thinking}
    common["extra_body"] = {"output_config": {"effort": "high"}}
    if stream:
        with claude.messages.stream(**common) as streamed:
            final = streamed.get_final_message()
    else:
        final = claude.messages.create(**common)
    assert kinds == [block.type for block in final.content]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_survives_a_chat_client(chat: openai.OpenAI, provider: Provider, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "What's the weather in Lisbon?"}]
    common: dict[str, Any] = {"model": "claude", "messages": messages, "tools": [TOOL], "reasoning_effort": "high"}
    if stream:
        with chat.chat.completions.stream(**common) as streamed:
            said = streamed.get_final_completion().choices[0].message
    else:
        said = chat.chat.completions.create(**common).choices[0].message
    assert said.tool_calls
    messages += [
        said.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "22 degrees"},
    ]
    # The simulator refuses thinking that was changed on its way.
    assert "22 degrees" in (chat.chat.completions.create(**common).choices[0].message.content or "")
    thinking, call = sent(provider)["messages"][1]["content"]
    assert ("thinking", "tool_use") == (thinking["type"], call["type"])
    assert thinking["signature"]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_of_another_model_is_kept_from_claude_and_given_back_to_its_own(
    claude: anthropic.Anthropic, provider: Provider, stream: bool
) -> None:
    messages: list[Any] = [{"role": "user", "content": "What's the weather in Lisbon?"}]
    common: dict[str, Any] = {"max_tokens": 4000, "messages": messages, "tools": [WEATHER]}
    common |= {"thinking": {"type": "adaptive"}, "extra_body": {"output_config": {"effort": "high"}}}
    first = claude.messages.create(model="dual", **common)
    assert [block.type for block in first.content] == ["thinking", "tool_use"]
    call = first.content[1]
    assert call.type == "tool_use"
    messages += [
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "22 degrees"}]},
    ]
    claude.messages.create(model="dual", **common)
    assert sent(provider)["messages"][1]["reasoning_content"]
    # Claude fails after its own body was made: the other model still gets the reasoning back.
    common["extra_body"] |= {"models": ["dual"], **simulate(c1="status:500", c2="status:500")}
    made = claude.messages.with_raw_response.create(model="claude", stream=stream, **common)
    assert made.headers["x-zurelay-model"] == "dual"
    made.http_response.read()
    assert sent(provider)["messages"][1]["reasoning_content"]
    assert b"zurelay:" not in provider.requests[0 if stream else -2].body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", [3_000_000, 30_000_000])
@pytest.mark.parametrize(
    ("path", "model"), [("/v1/messages", "claude"), ("/v1/messages", "dual"), ("/v1/chat/completions", "claude")]
)
def test_large_answers_arrive_whole(mixed: Gateway, path: str, model: str, size: int, stream: bool) -> None:
    fault = f"big:{size}"
    body = messages_body(model=model, stream=stream, **simulate(c1=fault, d1=fault)) | {"max_tokens": 60_000}
    answer = post(mixed, path, body)
    assert (200, True) == (answer.status_code, len(answer.content) > size)
    ends = {False: "}", True: "data: [DONE]\n\n" if path.endswith("completions") else '{"type":"message_stop"}\n\n'}
    assert answer.text.endswith(ends[stream])


# The SDKs' own helpers, blocking and not, with several tools at once.


def test_the_sdks_gather_parallel_calls(mixed: Gateway, provider: Provider) -> None:
    provider.reset()

    async def chat() -> list[tuple[str, Any]]:
        tools: Any = [TOOL, TIME]
        async with (
            openai.AsyncOpenAI(base_url=mixed.url + "/v1", api_key="any", max_retries=0, timeout=30) as client,
            client.chat.completions.stream(
                model="claude",
                messages=[{"role": "user", "content": "Call get_weather and get_time for Lisbon"}],
                tools=tools,
                reasoning_effort="low",
            ) as stream,
        ):
            final = await stream.get_final_completion()
        calls = final.choices[0].message.tool_calls or []
        return [(call.function.name, json.loads(call.function.arguments)) for call in calls]

    async def messages() -> list[tuple[str, Any]]:
        tools: Any = [WEATHER, {"name": "get_time", "input_schema": {"type": "object", "properties": {}}}]
        async with (
            anthropic.AsyncAnthropic(base_url=mixed.url, api_key="any", max_retries=0, timeout=30) as client,
            client.messages.stream(
                model="dual",
                max_tokens=500,
                messages=[{"role": "user", "content": "Call get_weather and get_time for Lisbon"}],
                tools=tools,
            ) as stream,
        ):
            final = await stream.get_final_message()
        return [(block.name, block.input) for block in final.content if block.type == "tool_use"]

    for calls in (asyncio.run(chat()), asyncio.run(messages())):
        assert [name for name, _ in calls] == ["get_weather", "get_time"]
        assert "city" in calls[0][1]


@pytest.mark.parametrize("stream", [False, True])
def test_structured_output_works_with_reasoning(chat: openai.OpenAI, provider: Provider, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    made = chat.chat.completions.with_raw_response.create(
        model="claude",
        messages=[{"role": "user", "content": "a number"}],
        reasoning_effort="high",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}},
        stream=stream,
    )
    assert made.http_response.read()
    assert sent(provider)["output_config"]["format"]["type"] == "json_schema"
    assert "tool_choice" not in sent(provider)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "model", "upstream"),
    [("/v1/messages", "dual", "d1"), ("/v1/messages", "claude", "c1"), ("/v1/chat/completions", "claude", "c1")],
)
def test_cached_and_written_tokens_are_counted_once(
    mixed: Gateway, provider: Provider, path: str, model: str, upstream: str, stream: bool
) -> None:
    provider.reset()
    counts = simulate(**{upstream: "input:500+cached:300+written:100+output:20"})
    body = messages_body(model=model, stream=stream, **counts)
    if path.endswith("completions"):
        body = chat_body(model=model, stream=stream, stream_options={"include_usage": True}, **counts)
    text = post(mixed, path, body).text
    lines = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")] if stream else []
    usage = next(one["usage"] for one in reversed(lines) if one.get("usage")) if stream else json.loads(text)["usage"]
    if path.endswith("completions"):
        details = usage["prompt_tokens_details"]
        found = (usage["prompt_tokens"], details["cached_tokens"], details["cache_write_tokens"], usage["total_tokens"])
        assert found == (500, 300, 100, 520)
    else:
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        assert tuple(usage[name] for name in names) == (100, 300, 100, 20)
