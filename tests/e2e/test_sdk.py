"""The official OpenAI SDK can't tell the gateway from the real API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from e2e.harness import Gateway, Provider, simulate

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello"}]
WEATHER: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather for a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
PEOPLE: dict[str, Any] = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}, "count": {"type": "integer"}},
    "required": ["names", "count"],
    "additionalProperties": False,
}


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.url + "/v1", api_key="any", max_retries=0, timeout=30) as made:
        yield made


def test_a_completion(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="trio", messages=HELLO)
    answer = raw.parse()
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == raw.headers["x-zurelay-model"] == "trio"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_with_usage(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="trio", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    assert {chunk.model for chunk in chunks} == {"trio"}
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_a_stream_without_usage_has_none(client: openai.OpenAI, provider: Provider) -> None:
    chunks = list(client.chat.completions.create(model="trio", messages=HELLO, stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    assert json.loads(provider.requests[-1].body)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_comes_as_reasoning_content(client: openai.OpenAI, field: str) -> None:
    fault = simulate(m1="reasoning-field" if field == "reasoning" else "ok")
    answer = client.chat.completions.create(model="trio", messages=HELLO, reasoning_effort="high", extra_body=fault)
    extra = answer.choices[0].message.model_extra or {}
    assert extra["reasoning_content"]
    assert "reasoning" not in extra
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens
    deltas = [
        (chunk.choices[0].delta.model_extra or {}).get("reasoning_content")
        for chunk in client.chat.completions.create(
            model="trio", messages=HELLO, reasoning_effort="high", stream=True, extra_body=fault
        )
    ]
    assert "".join(filter(None, deltas))


def test_a_tool_is_called_and_its_result_read(client: openai.OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What's the weather in Lisbon?"}]
    first = client.chat.completions.create(model="trio", messages=messages, tools=WEATHER)
    assert first.choices[0].finish_reason == "tool_calls"
    (call,) = first.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert "city" in json.loads(call.function.arguments)
    messages.append(first.choices[0].message.model_dump(exclude_none=True))  # type: ignore[arg-type]  # as users do
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "22 degrees"})
    second = client.chat.completions.create(model="trio", messages=messages, tools=WEATHER)
    assert "22 degrees" in (second.choices[0].message.content or "")


def test_a_streamed_tool_call_is_whole(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="trio", messages=HELLO, tools=WEATHER, tool_choice="required") as stream:
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or []
    assert call.function.name == "get_weather"
    assert "city" in json.loads(call.function.arguments)


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_filled(client: openai.OpenAI, stream: bool) -> None:
    made = client.chat.completions.create(
        model="trio",
        messages=HELLO,
        stream=stream,
        response_format={"type": "json_schema", "json_schema": {"name": "people", "schema": PEOPLE, "strict": True}},
    )
    if isinstance(made, openai.Stream):
        text = "".join(chunk.choices[0].delta.content or "" for chunk in made)
    else:
        text = made.choices[0].message.content or ""
    value = json.loads(text)
    assert sorted(value) == ["count", "names"]
    assert isinstance(value["count"], int)


@pytest.mark.parametrize(
    ("extra", "raised"),
    [
        ({"model": "nope"}, openai.NotFoundError),
        ({"reasoning_effort": "huge"}, openai.BadRequestError),
        (simulate(m1="status:500", m2="status:500", m3="status:500"), openai.InternalServerError),
        (simulate(m1="status:422"), openai.UnprocessableEntityError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_sdks_own(
    client: openai.OpenAI, stream: bool, extra: dict[str, Any], raised: type[openai.APIStatusError]
) -> None:
    with pytest.raises(raised) as caught:
        client.chat.completions.create(model="trio", messages=HELLO, stream=stream, extra_body=extra)
    assert caught.value.code
    assert caught.value.response.headers["x-zurelay-request-id"].startswith("req_")


def test_a_late_failure_is_an_error_of_the_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="solo", messages=HELLO, stream=True, extra_body=simulate(m1="late-error:2")
    )
    with pytest.raises(openai.APIError, match="broke off"):
        list(stream)


def test_models_are_listed(client: openai.OpenAI) -> None:
    listed = client.models.list().data
    assert [model.id for model in listed] == ["solo", "trio", "guarded", "spare"]
    assert client.models.retrieve("three").id == "trio"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nope")


async def test_the_async_client_works_too(gateway: Gateway) -> None:
    async with openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="any", max_retries=0) as client:
        answer = await client.chat.completions.create(model="solo", messages=HELLO)
        assert answer.choices[0].message.content
        stream = await client.chat.completions.create(model="solo", messages=HELLO, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
