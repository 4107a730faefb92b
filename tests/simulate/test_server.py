import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import httpx
import msgspec
import openai
import pytest
import trustme

from simulate.helpers import CHAT, MESSAGES, WEATHER, events_of
from zurelay.simulate.server import Config, SimulatedProvider, serve

STREAM = {**CHAT, "stream": True}
Start = Callable[..., Awaitable[tuple[SimulatedProvider, str]]]


@pytest.fixture(name="start")
async def _start() -> AsyncIterator[Start]:
    """Start providers without pauses; each is given with its address."""
    providers = []

    async def start(**config: Any) -> tuple[SimulatedProvider, str]:
        provider = SimulatedProvider(Config(**{"token_pause": 0, **config}))
        providers.append(provider)
        return provider, f"http://127.0.0.1:{await provider.start()}"

    yield start
    for provider in providers:
        await provider.stop()


@pytest.fixture(name="client")
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=20) as client:
        yield client


@pytest.fixture(name="chat")
async def _chat(start: Start) -> AsyncIterator[openai.AsyncOpenAI]:
    _, url = await start()
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as sdk:
        yield sdk


@pytest.fixture(name="claude")
async def _claude(start: Start) -> AsyncIterator[anthropic.AsyncAnthropic]:
    _, url = await start()
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as sdk:
        yield sdk


async def test_the_openai_sdk_gets_the_same_answer_streamed_and_not(chat: openai.AsyncOpenAI) -> None:
    asked: Any = {"model": "m", "messages": CHAT["messages"], "reasoning_effort": "low"}
    whole = await chat.chat.completions.create(**asked)
    streamed, used = "", None
    stream = await chat.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    async for chunk in stream:
        streamed += "".join(choice.delta.content or "" for choice in chunk.choices)
        used = chunk.usage or used
    assert (whole.choices[0].message.content, whole.usage) == (streamed, used)


async def test_the_openai_sdk_runs_a_tool(chat: openai.AsyncOpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}
    messages: Any = list(CHAT["messages"])
    first = (await chat.chat.completions.create(model="m", messages=messages, tools=[tool])).choices[0]
    assert first.message.tool_calls is not None
    call = first.message.tool_calls[0]
    messages += [first.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "12 C"}]
    second = (await chat.chat.completions.create(model="m", messages=messages, tools=[tool])).choices[0]
    found = (first.finish_reason, second.finish_reason, "12 C" in (second.message.content or ""))
    assert found == ("tool_calls", "stop", True)


async def test_the_openai_sdk_raises_what_the_status_means(chat: openai.AsyncOpenAI) -> None:
    body: Any = {"simulate": "status:429:code=insufficient_quota"}
    with pytest.raises(openai.RateLimitError) as caught:
        await chat.chat.completions.create(model="m", messages=CHAT["messages"], extra_body=body)
    assert caught.value.code == "insufficient_quota"


async def test_the_openai_sdk_lists_models(chat: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in chat.models.list()] == ["simulated-small", "simulated-large"]


async def test_the_anthropic_sdk_gets_the_same_answer_streamed_and_not(claude: anthropic.AsyncAnthropic) -> None:
    asked: Any = {**MESSAGES, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
    whole = await claude.messages.create(**asked)
    async with claude.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    blocks = [[block.model_dump() for block in message.content] for message in (whole, streamed)]
    assert (blocks[0], whole.usage.output_tokens) == (blocks[1], streamed.usage.output_tokens)


async def test_the_anthropic_sdk_runs_a_tool_with_its_thinking_kept(claude: anthropic.AsyncAnthropic) -> None:
    asked: Any = {
        **MESSAGES,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "get_weather", "input_schema": WEATHER}],
    }
    async with claude.messages.stream(**asked) as stream:
        first = await stream.get_final_message()
    use = first.content[-1]
    assert use.type == "tool_use"
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "12 C"}
    said = [
        *MESSAGES["messages"],
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    second = await claude.messages.create(**{**asked, "messages": said})
    assert (first.stop_reason, use.input, second.stop_reason) == ("tool_use", {"city": "Paris"}, "end_turn")


async def test_the_anthropic_sdk_raises_what_the_status_means(claude: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.RateLimitError, match="A simulated error of status 429"):
        await claude.messages.create(**MESSAGES, extra_body={"simulate": "status:429"})


async def test_the_anthropic_sdk_counts_and_lists(claude: anthropic.AsyncAnthropic) -> None:
    counted = await claude.messages.count_tokens(model="m", messages=MESSAGES["messages"])
    listed = [model.id async for model in claude.models.list()]
    assert (counted.input_tokens > 0, len(listed)) == (True, 2)


BROKEN = {
    "reset": httpx.ReadError,
    "close": httpx.RemoteProtocolError,
    "reset-after-head": httpx.ReadError,
    "short-body": httpx.RemoteProtocolError,
    "abort:2": httpx.ReadError,
    "hang": httpx.ReadTimeout,
    "stall": httpx.ReadTimeout,
    "stall-after:2": httpx.ReadTimeout,
}


@pytest.mark.parametrize("spec", BROKEN)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_broken_answer_is_broken_on_the_wire(
    start: Start, client: httpx.AsyncClient, spec: str, stream: bool
) -> None:
    _, url = await start()
    with pytest.raises(BROKEN[spec]):
        await client.post(f"{url}/fault/{spec}/v1/chat/completions", json={**CHAT, "stream": stream}, timeout=0.2)


async def test_what_came_before_a_reset_is_read_first(start: Start, client: httpx.AsyncClient) -> None:
    _, url = await start()
    came: list[bytes] = []

    async def read() -> None:
        async with client.stream("POST", f"{url}/fault/abort:2/v1/chat/completions", json=STREAM) as response:
            async for data in response.aiter_bytes():
                came.append(data)  # noqa: PERF401  what came before the failure must not be lost

    with pytest.raises(httpx.ReadError):
        await read()
    assert len(events_of(b"".join(came))) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_a_zipped_and_split_answer_is_the_same(start: Start, client: httpx.AsyncClient, stream: bool) -> None:
    _, url = await start()
    answers = []
    for spec in ("ok", "gzip", "split", "gzip+split"):
        body = {**CHAT, "stream": stream, "simulate": {"fault": spec, "text": "one two"}}
        response = await client.post(f"{url}/v1/chat/completions", json=body)
        answers.append((response.text.count("one"), response.text.count("two"), response.text.count("finish_reason")))
    assert [answers[0]] * 4 == answers


@pytest.mark.parametrize("stream", [False, True])
async def test_a_big_answer_comes_whole(start: Start, client: httpx.AsyncClient, stream: bool) -> None:
    _, url = await start()
    body = {**CHAT, "stream": stream, "simulate": "big:3000000"}
    response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert response.text.count("x") >= 3_000_000 - 3_000_000 // 1024 - 1


async def test_a_date_to_come_back_at_is_a_date(start: Start, client: httpx.AsyncClient) -> None:
    _, url = await start()
    response = await client.post(
        f"{url}/v1/chat/completions", json={**CHAT, "simulate": "status:503:retry-after-date=5"}
    )
    assert response.headers["retry-after"].endswith(" GMT")


async def test_an_attempt_takes_the_next_of_a_sequence_until_a_reset(start: Start, client: httpx.AsyncClient) -> None:
    _, url = await start()
    body = {**CHAT, "simulate": {"key": "k", "faults": {"m": ["status:500", "ok"]}}}
    found = [(await client.post(f"{url}/v1/chat/completions", json=body)).status_code for _ in range(3)]
    await client.post(f"{url}/_reset")
    found.append((await client.post(f"{url}/v1/chat/completions", json=body)).status_code)
    assert found == [500, 200, 200, 500]


async def test_requests_are_remembered_as_they_came(start: Start, client: httpx.AsyncClient) -> None:
    provider, url = await start(keep_body=10)
    body = gzip.compress(b"{}")
    await client.post(f"{url}/v1/chat/completions?a=b", content=body, headers={"x-simulate": "status:503"})
    record = provider.requests[0]
    expected = (1, "POST", "/v1/chat/completions?a=b", body[:10], len(body), "status:503", 503, True, None)
    assert expected == (
        record.number,
        record.method,
        record.path,
        record.body,
        record.length,
        record.spec,
        record.status,
        record.ended,
        record.left,
    )
    assert record.header("x-simulate") == "status:503"


async def test_requests_are_told_over_http(start: Start, client: httpx.AsyncClient) -> None:
    _, url = await start()
    await client.post(f"{url}/v1/chat/completions", json=CHAT)
    told = (await client.get(f"{url}/_requests")).json()["requests"]
    assert ([msgspec.json.decode(one["body"]) for one in told], told[0]["status"]) == ([CHAT], 200)
    assert (await client.post(f"{url}/_reset")).json() == {"requests": []}
    assert (await client.get(f"{url}/_reset")).status_code == 405


async def test_only_the_last_requests_are_remembered(start: Start, client: httpx.AsyncClient) -> None:
    provider, url = await start(keep_requests=2)
    for _ in range(4):
        await client.get(f"{url}/v1/models")
    assert [record.number for record in provider.requests] == [3, 4]


async def test_a_client_that_leaves_is_seen(start: Start, client: httpx.AsyncClient) -> None:
    provider, url = await start()
    async with client.stream("POST", f"{url}/fault/stall-after:2/v1/chat/completions", json=STREAM) as response:
        await anext(response.aiter_bytes())
    await provider.until(lambda requests: requests[0].left is not None)
    record = provider.requests[0]
    assert (record.ended, record.left is not None and record.left >= record.at) == (True, True)


async def test_waiting_for_what_doesnt_come_ends(start: Start) -> None:
    provider, _ = await start()
    with pytest.raises(TimeoutError):
        await provider.until(lambda requests: len(requests) > 0, seconds=0.01)


async def test_it_holds_many_streams_at_once(start: Start, client: httpx.AsyncClient) -> None:
    provider, url = await start()
    body = msgspec.json.encode({**STREAM, "simulate": "stall-after:1"})
    host, port = url.removeprefix("http://").split(":")
    writers = []
    for _ in range(300):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writers.append(writer)
    await provider.until(lambda requests: len(requests) == 300)
    assert (await client.get(f"{url}/v1/models")).status_code == 200
    for writer in writers:
        writer.close()
    await provider.until(lambda requests: sum(record.left is not None for record in requests) == 300)


async def test_it_speaks_tls_and_can_reset_it(start: Start) -> None:
    authority = trustme.CA()
    theirs, ours = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(theirs)
    authority.issue_cert("localhost").configure_cert(ours)
    provider, _ = await start()
    port = await provider.start(ssl_context=ours)
    async with httpx.AsyncClient(verify=theirs) as client:
        good = await client.get(f"https://localhost:{port}/v1/models")
        with pytest.raises(httpx.ReadError):
            await client.get(f"https://localhost:{port}/fault/reset/v1/models")
    assert good.status_code == 200


async def test_serving_says_where(capsys: pytest.CaptureFixture[str], client: httpx.AsyncClient) -> None:
    serving = asyncio.create_task(serve("127.0.0.1", 0, 0))
    said = ""
    while not said:
        await asyncio.sleep(0)
        said = capsys.readouterr().out
    response = await client.get(said.split()[-1] + "/models")
    serving.cancel()
    await asyncio.wait([serving])
    assert response.status_code == 200
