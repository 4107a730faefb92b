"""SPEC 8, sentence by sentence, through the real Envoy."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, until
from e2e.raw import RawClient, Sse

KEEP_ALIVE = ": keep-alive"
OPEN_AFTER, KEEPALIVE = 0.6, 0.3
# Characters of one to four bytes, joined and combined ones, and all that other readers take for a line's end.
TEXT = '안녕하세요 ✅ 🏳️‍🌈 né e\u0301 \u2028 \u2029 \u0085 \x0b \x0c \x1c 日本語 \\n " <|x|> end'


@pytest.fixture(scope="module")
def quick_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose times are short."""
    settings = catalog(provider.port) | {
        "streaming": {"open_after": "600ms", "keepalive": "300ms"},
        "timeouts": {"first_token": "30s", "whole": "30s", "total": "2500ms", "idle": "1200ms"},
        "limits": {"response_body": "2MiB"},
        "workers": 2,
    }
    running = Gateway(tmp_path_factory.mktemp("quick"), settings).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def quick(quick_gateway: Gateway, provider: Provider) -> Iterator[Gateway]:
    """The quick gateway; its processes are the same ones before and after each test."""
    provider.reset()
    before = (quick_gateway.envoy, quick_gateway.workers)
    yield quick_gateway
    assert (quick_gateway.envoy, quick_gateway.workers) == before


def streamed(
    model: str, text: str | None = None, *, faults: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """A streamed request, and what the provider does about it."""
    simulate: dict[str, Any] = {"faults": faults or {}}
    if text is not None:
        simulate["text"] = text
    return ask(model, "Go on.", stream=True, simulate=simulate, **more)


def stream(gateway: Gateway, body: dict[str, Any], headers: dict[str, str] | None = None) -> Sse:
    """Send a request, and read the stream that it must give, to its proper end."""
    response = gateway.chat(body, headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    return Sse.read(response.content)


# What is said: chunks of the API's own shape, with the bytes that the provider sent.


@pytest.mark.parametrize("usage", [False, True])
@pytest.mark.parametrize("shape", ["ok", "nospace", "crlf"])
def test_the_providers_bytes_reach_the_client_but_for_the_models_name(
    gateway: Gateway, provider: Provider, shape: str, *, usage: bool
) -> None:
    asked = {"stream_options": {"include_usage": True}}
    body = streamed("solo", TEXT, faults={"m1": shape})
    url = f"http://127.0.0.1:{provider.port}/v1/chat/completions"
    theirs = httpx.post(url, content=msgspec.json.encode(body | asked | {"model": "m1"})).text
    ours = gateway.chat(body | (asked if usage else {})).text

    expected = theirs.replace('"model":"m1"', '"model":"solo"')
    *events, counted, done = re.split("(?<=\n\n)|(?<=\r\n\r\n)", expected)[:-1]
    assert '"usage":{' in counted
    kept = [*events, "data: " + re.split(": ?", counted.strip(), maxsplit=1)[1] + "\n\n"] if usage else events
    assert done.strip().endswith("[DONE]")
    assert anonymous(ours) == anonymous("".join([*kept, "data: [DONE]\n\n"]))


def anonymous(text: str) -> str:
    """A stream without what differs from one to the next."""
    return re.sub(r'"id":"[^"]*"|"created":\d+', "", text)


# Characters of several bytes are never split or lost, whatever the borders of chunks and lines.

SHAPES = [
    *("ok", "split", "crlf", "cr", "bom", "nospace", "sse-comments", "gzip", "wrong-type", "no-done"),
    *("split+crlf", "split+cr", "split+bom", "split+nospace", "split+sse-comments", "split+gzip"),
    *("sse-comments+crlf", "sse-comments+cr", "bom+crlf", "gzip+no-done", "split+no-done", "cr+no-done"),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_of_any_shape_says_what_was_said(gateway: Gateway, shape: str) -> None:
    sse = stream(gateway, streamed("solo", TEXT, faults={"m1": shape}))
    assert sse.events[-1] == "[DONE]"
    assert sse.joined() == TEXT
    assert sse.chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert {chunk["model"] for chunk in sse.chunks} == {"solo"}
    assert sse.chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("shape", ["bom", "split+bom+crlf"])
def test_a_byte_order_mark_after_a_keep_alive_hides_nothing(quick: Gateway, shape: str) -> None:
    sse = stream(quick, streamed("solo", TEXT, faults={"m1": "slow-head:0.8+" + shape}))
    assert sse.lines[0] == KEEP_ALIVE
    assert sse.chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert sse.joined() == TEXT


def test_a_chunk_goes_to_the_client_when_it_comes(quick: Gateway, provider: Provider) -> None:
    with RawClient(quick) as client:
        client.post(streamed("solo", "one two three", faults={"m1": "gap:9"})).head().read_until(b'"one"')
        assert not provider.requests[0].ended


# Nothing is sent until the first token, so that retries and fallback are invisible.

BEFORE_A_TOKEN = [
    *("reset", "status:500", "status:429", "error-200", "html", "json-for-stream", "first-error", "role-then-error"),
    *("cut:0", "abort:0", "empty-stream", "sse-comments+first-error", "gzip+first-error", "late-error:0+crlf"),
]


@pytest.mark.parametrize("fault", BEFORE_A_TOKEN)
def test_what_failed_before_the_first_token_leaves_no_trace(gateway: Gateway, fault: str) -> None:
    faults = {"m1": f"{fault}+headers", "f1": "ok"}
    response = gateway.chat(streamed("guarded", TEXT, faults=faults))
    sse = Sse.read(response.content)
    assert sse.events[-1] == "[DONE]"
    assert sse.joined() == TEXT
    assert {chunk["model"] for chunk in sse.chunks} == {"spare"}
    assert len({chunk["id"] for chunk in sse.chunks}) == 1
    assert sse.comments == []
    ours = {name: value for name, value in response.headers.items() if name.startswith("x-")}
    assert ours.pop("x-zurelay-request-id").startswith("req_")
    attempts = "2" if fault == "status:429" else "3"
    assert ours == {"x-zurelay-model": "spare", "x-zurelay-routed-from": "guarded", "x-zurelay-attempts": attempts}
    assert "set-cookie" not in response.headers


TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    ("fault", "more", "field"),
    [
        ("ok", {}, "content"),
        ("ok", {"reasoning_effort": "high"}, "reasoning_content"),
        ("reasoning-field", {"reasoning_effort": "high"}, "reasoning_content"),
        ("refusal", {}, "refusal"),
        ("ok", {"tools": [TOOL]}, "tool_calls"),
        ("tokens:0", {}, None),
    ],
)
def test_the_first_token_is_content_reasoning_refusal_a_tool_call_or_a_finish(
    gateway: Gateway, provider: Provider, fault: str, more: dict[str, Any], field: str | None
) -> None:
    """The stream opens with it, before `open_after`, and not with the role before it."""
    with RawClient(gateway) as client:
        client.post(streamed("trio", faults={"m1": f"{fault}+gap:9"}, **more)).head()
        assert client.headers["x-zurelay-attempts"] == "1"
        said = b""
        for _, piece in client.pieces():
            said += piece
            if len(chunks := Sse.read(said).chunks) == 2:
                break
    role, token = (chunk["choices"][0]["delta"] for chunk in chunks)
    assert role["role"] == "assistant"
    assert token[field] if field is not None else token == {}
    assert len(provider.requests) == 1


def test_a_role_alone_is_no_token(quick: Gateway) -> None:
    with RawClient(quick) as client:
        client.post(streamed("solo", faults={"m1": "slow-token:0.9+sse-comments"})).head()
        assert "x-zurelay-attempts" not in client.headers  # it opened by time
        lines = Sse.read(client.read()).lines
    assert lines[0] == KEEP_ALIVE
    assert lines[-1] == "[DONE]"


# Silence: the stream opens early, and is kept alive from then on.


def test_a_stream_without_a_token_opens_and_is_kept_alive(quick: Gateway) -> None:
    with RawClient(quick) as client:
        began = time.monotonic()
        client.post(streamed("solo", TEXT, faults={"m1": "slow-head:1.8"})).head()
        assert client.status == 200
        pieces = list(client.pieces())
        client.again().post(streamed("solo", faults={"m1": "ok"})).head().read()
    first, last = pieces[0], pieces[-1]
    assert first[1] == b": keep-alive\n\n"
    assert first[0] - began >= OPEN_AFTER
    assert last[1].endswith(b"data: [DONE]\n\n")
    lines = Sse.read(b"".join(piece for _, piece in pieces)).lines
    silent = [line for line in lines if line.startswith(":")]
    assert silent == [KEEP_ALIVE] * len(silent)
    assert lines[: len(silent)] == silent  # none once tokens come
    assert 2 <= len(silent) <= 1 + (last[0] - first[0]) / KEEPALIVE


def test_each_silence_between_tokens_is_kept_alive(quick: Gateway) -> None:
    sse = stream(quick, streamed("solo", "one two three", faults={"m1": "gap:0.8"}))
    kinds = ["." if line == KEEP_ALIVE else "x" for line in sse.lines]
    assert re.fullmatch(r"xx(\.+x){2}x+", "".join(kinds)), kinds  # role and token at once, two silences, finish and end
    assert sse.joined() == "one two three"
    assert sse.events[-1] == "[DONE]"


def test_a_stream_that_flows_is_not_kept_alive(gateway: Gateway) -> None:
    sse = stream(gateway, streamed("solo", "one two three four five six", faults={"m1": "gap:0.1"}))
    assert sse.comments == []


def test_attempts_go_on_behind_an_open_stream(quick: Gateway, provider: Provider) -> None:
    sse = stream(quick, streamed("guarded", TEXT, faults={"m1": "slow-head:0.4+status:500", "f1": "slow-head:0.4"}))
    assert sse.lines[0] == KEEP_ALIVE
    assert sse.joined() == TEXT
    assert sse.events[-1] == "[DONE]"
    assert {chunk["model"] for chunk in sse.chunks} == {"spare"}
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("model", "more", "headers"),
    [
        ("solo", {}, {"x-zurelay-model": "solo", "x-zurelay-reasoning-effort": "none"}),
        ("three", {}, {"x-zurelay-model": "trio", "x-zurelay-reasoning-effort": "medium"}),
        ("trio", {"reasoning_effort": "max"}, {"x-zurelay-model": "trio", "x-zurelay-reasoning-effort": "high"}),
        ("guarded", {}, {}),
        ("guarded", {"reasoning_effort": "high"}, {"x-zurelay-reasoning-effort": "high"}),
        ("guarded", {"reasoning_effort": "minimal"}, {}),  # spare has no level below low
        ("guarded", {"models": []}, {"x-zurelay-model": "guarded"}),
    ],
)
def test_a_stream_opened_early_says_only_what_is_sure(
    quick: Gateway, model: str, more: dict[str, Any], headers: dict[str, str]
) -> None:
    with RawClient(quick) as client:
        client.post(streamed(model, faults={"m1": "slow-head:9"}, **more)).head()
        ours = {name: value for name, value in client.headers.items() if name.startswith("x-")}
        assert ours.pop("x-zurelay-request-id").startswith("req_")
        assert ours == headers


# Strict clients turn both off.


@pytest.mark.parametrize("fault", ["slow-head:1", "slow-token:1", "gap:0.5"])
def test_without_keep_alives_a_stream_holds_nothing_but_events(quick: Gateway, fault: str) -> None:
    off = {"x-zurelay-keepalive": "off"}
    with RawClient(quick) as client:
        client.post(streamed("solo", "one two", faults={"m1": fault}), off).head()
        assert client.headers["x-zurelay-attempts"] == "1"
        body = client.read()
    assert all(line.startswith(b"data: ") for line in body.split(b"\n") if line)
    assert Sse.read(body).joined() == "one two"


def test_without_early_opening_a_late_failure_keeps_its_status(quick: Gateway) -> None:
    body = streamed("solo", faults={"m1": "slow-head:0.5+status:500"})
    response = quick.chat(body, {"x-zurelay-keepalive": "off"})
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (503, "2")


def test_a_switch_that_is_neither_on_nor_off_is_refused(quick: Gateway, provider: Provider) -> None:
    response = quick.chat(streamed("solo"), {"x-zurelay-keepalive": "15"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "x-zurelay-keepalive")
    assert provider.requests == []


# Failures that come too late for a status.


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("slow-head:0.4+status:500", "server_error", "model_unavailable"),
        ("slow-head:0.8+status:400", "invalid_request_error", "invalid_request"),
        ("slow-head:0.8+context-length", "invalid_request_error", "context_length_exceeded"),
        ("slow-head:0.8+cut:2", "server_error", "model_unavailable"),
        ("hang", "server_error", "model_unavailable"),  # `total` is over
    ],
)
def test_a_failure_after_opening_is_an_event(quick: Gateway, fault: str, kind: str, code: str) -> None:
    sse = stream(quick, streamed("solo", faults={"m1": fault}))
    assert sse.lines[0] == KEEP_ALIVE
    assert "[DONE]" not in sse.events
    assert sorted(sse.error) == ["code", "message", "param", "type"]
    assert (sse.error["type"], sse.error["code"]) == (kind, code)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut:2", "broke off"),
        ("abort:2", "broke off"),
        ("late-error:2", "A simulated error."),
        ("late-error:2+error-done", "A simulated error."),
        ("late-error:2+code:oops+crlf", "A simulated error."),
        ("cut:2+gzip", "broke off"),
        ("abort:2+gzip", "broke off"),
        ("cut:2+split", "broke off"),
        ("stall-after:2", "stopped in the middle"),  # `idle` is over
    ],
)
def test_a_failure_after_content_is_an_event_and_the_end(
    quick: Gateway, provider: Provider, fault: str, said: str
) -> None:
    sse = stream(quick, streamed("trio", "one two three four", faults={"m1": fault}))
    assert "[DONE]" not in sse.events
    assert said in sse.error["message"]
    assert (sse.error["type"], sse.error["code"]) == ("server_error", "model_unavailable")
    assert sse.joined() == "one two"
    assert [chunk for chunk in sse.chunks if "error" in chunk] == [sse.chunks[-1]]
    assert len(provider.requests) == 1  # nothing is tried again after content
    provider.until(lambda records: records[0].ended)


# Where all is there but the terminator, it is added.


@pytest.mark.parametrize("choices", [1, 3])
def test_a_missing_terminator_is_added_to_a_whole_stream(gateway: Gateway, choices: int) -> None:
    usage = {"stream_options": {"include_usage": True}}
    sse = stream(gateway, streamed("solo", "one two", faults={"m1": "no-done"}, n=choices, **usage))
    assert sse.events[-1] == "[DONE]"
    assert [sse.joined(choice=number) for number in range(choices)] == ["one two"] * choices
    assert sse.chunks[-1]["choices"] == []
    assert sse.chunks[-1]["usage"]["completion_tokens"] > 0


# Usage is always asked for, and shown to those who asked.


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
def test_usage_is_asked_for_and_kept_from_who_didnt_ask(
    gateway: Gateway, provider: Provider, options: dict[str, Any] | None
) -> None:
    sse = stream(gateway, streamed("solo", TEXT, stream_options=options))
    assert not [chunk for chunk in sse.chunks if chunk["choices"] == [] or chunk.get("usage")]
    sent = msgspec.json.decode(provider.requests[0].body)
    assert sent["stream_options"]["include_usage"] is True


@pytest.mark.parametrize("fault", ["input:1000+output:50+cached:600+written:100", "no-done+input:1000+output:50", "ok"])
def test_who_asked_gets_the_usage_in_a_chunk_of_its_own(gateway: Gateway, fault: str) -> None:
    usage = {"stream_options": {"include_usage": True, "include_obfuscation": False}}
    sse = stream(gateway, streamed("solo", TEXT, faults={"m1": fault}, **usage))
    *chunks, last = sse.chunks
    assert last["choices"] == []
    assert last["model"] == "solo"
    assert last["object"] == "chat.completion.chunk"
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]
    if "input" in fault:
        assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (1000, 50)
        assert last["usage"]["prompt_tokens_details"]["cached_tokens"] == (600 if "cached" in fault else 0)
    assert not [chunk for chunk in chunks if chunk.get("usage") or not chunk["choices"]]
    assert sse.events[-1] == "[DONE]"


def test_a_provider_that_counts_nothing_is_estimated(gateway: Gateway) -> None:
    usage = {"stream_options": {"include_usage": True}}
    sse = stream(gateway, streamed("solo", "word " * 100, faults={"m1": "no-usage"}, **usage))
    last = sse.chunks[-1]
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] > 0
    assert 50 <= last["usage"]["completion_tokens"] <= 250
    assert sse.events[-1] == "[DONE]"


# A client that leaves.


@pytest.mark.parametrize(
    ("fault", "wait_for", "streams"),
    [
        ("hang", None, True),
        ("hang", None, False),
        ("stall", None, True),
        ("stall", None, False),
        ("stall-after:2", b'"content"', True),
        ("stall-after:2", None, False),
        ("gap:0.2+tokens:1000", b'"content"', True),
        ("hang", b"keep-alive", True),
        ("big:100000000+size:10000", None, True),
        ("big:60000000+size:10000", None, False),
    ],
)
def test_when_the_client_leaves_the_providers_request_ends(
    gateway: Gateway, provider: Provider, fault: str, wait_for: bytes | None, *, streams: bool
) -> None:
    with RawClient(gateway) as client:
        client.post(streamed("trio", faults={"m1": fault}) | {"stream": streams})
        provider.until(bool)
        if wait_for is not None:
            client.head().read_until(wait_for)
        left = client.leave()
    (record,) = provider.until(lambda records: records[0].left is not None)
    assert record.left is not None
    assert record.left - left < 1
    assert len(provider.requests) == 1


# A client that doesn't keep up.


def test_a_stream_over_the_bound_ends_with_an_error(quick: Gateway, provider: Provider) -> None:
    with RawClient(quick, receive_buffer=4096) as client:
        client.post(streamed("solo", faults={"m1": "big:20000000+size:10000"}))
        provider.until(lambda records: bool(records) and records[0].ended)
        sse = Sse.read(client.head().read())
    assert "[DONE]" not in sse.events
    assert sse.error["code"] == "model_unavailable"
    assert len(sse.joined()) <= 2 << 20


# Many at once.


async def test_200_streams_at_once_are_never_mixed_up(gateway: Gateway) -> None:
    """Every other one has its first attempt fail in some way, and all say something else, in several pieces."""
    faults = [f"{fault},ok" if fault else "gap:0.02" for fault in ("", *BEFORE_A_TOKEN)]
    texts = [f"{number} " + f"{number * number} " * 20 + TEXT for number in range(200)]

    async def one(client: httpx.AsyncClient, number: int) -> httpx.Response:
        body = streamed("trio", texts[number], faults={"m1": faults[number % len(faults)]})
        body["simulate"]["key"] = str(number)
        return await client.post("/v1/chat/completions", content=msgspec.json.encode(body))

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=gateway.url, limits=limits, timeout=60) as client:
        responses = await asyncio.gather(*(one(client, number) for number in range(200)))
    streams = [Sse.read(response.content) for response in responses]
    assert [sse.joined() for sse in streams] == texts
    assert {sse.events[-1] for sse in streams} == {"[DONE]"}
    assert [len({chunk["id"] for chunk in sse.chunks}) for sse in streams] == [1] * 200
    assert len({sse.chunks[0]["id"] for sse in streams}) == 200
    assert len({response.headers["x-zurelay-request-id"] for response in responses}) == 200


def test_nothing_is_left_open_when_all_are_gone(gateway: Gateway, provider: Provider) -> None:
    """Connections to the provider are kept for the next request, requests are not."""
    for fault in ("ok", "cut:2", "status:500", "first-error"):
        gateway.chat(streamed("trio", faults={"m1": fault}))
    until(lambda: len(provider.requests) >= 4 and all(record.ended for record in provider.requests))
