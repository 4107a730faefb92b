"""Streams of messages, byte by byte: what a provider may send, what the client gets, and when (SPEC 5, 8)."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from e2e import scripted
from e2e.claudes import HELLO, LEVELS
from e2e.harness import Gateway, Provider, simulate, until
from e2e.raw import RawClient, Sse
from e2e.scripted import ScriptedProvider

PATH = "/v1/messages"
PING = 'event: ping\ndata: {"type": "ping"}\n\n'
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"up","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
)
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


def event(kind: str, **members: Any) -> bytes:
    data = json.dumps({"type": kind, **members}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def block(index: int = 0, **content: Any) -> bytes:
    return event("content_block_start", index=index, content_block=content)


def delta(kind: str, index: int = 0, **members: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **members})


def text(said: str) -> bytes:
    return delta("text_delta", text=said)


BEGIN = block(type="text", text="")
CLOSE = event("content_block_stop", index=0)
FINISH = event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 5})
END = CLOSE + FINISH + STOP
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedProvider]:
    running = ScriptedProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def odd(script: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway to a provider that says what the test wants: `odd`, with `even` in its place."""
    base = f"http://127.0.0.1:{script.port}"
    catalog = {
        "providers": {
            "a": {"base_url": f"{base}/v1", "format": "anthropic"},
            "o": {"base_url": f"{base}/v1", "format": "openai"},
        },
        "models": {
            "odd": {
                "routes": [{"provider": "a", "model": "bad"}],
                "context_window": 100_000,
                "reasoning": {"levels": LEVELS},
                "fallbacks": ["even"],
            },
            "even": {"routes": [{"provider": "a", "model": "good"}], "context_window": 100_000},
            "chat": {"routes": [{"provider": "o", "model": "gpt"}], "context_window": 100_000, "messages": True},
        },
    }
    running = Gateway(tmp_path_factory.mktemp("odd"), catalog).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


def streamed(model: str = "odd", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 50, "messages": HELLO, "stream": True, **more}


def read(gateway: Gateway, body: dict[str, Any], path: str = PATH) -> tuple[int, dict[str, str], bytes]:
    with RawClient(gateway) as client:
        client.post(body, path=path).head()
        return client.status, client.headers, client.read()


GOOD = scripted.stream(START, BEGIN, text("Hello"), END)

PASS: dict[str, bytes] = {
    "an ordinary answer": BEGIN + text("안녕하세요 ✅") + END,
    "empty content": FINISH + STOP,
    "kinds of events to come": event("progress", message={"model": "up"}, n=1)
    + BEGIN
    + text("a")
    + event("later", error={"message": "m"}, delta=3)
    + END,
    "kinds of blocks to come": block(type="hologram", light=[1]) + delta("shine_delta", watts=2.5) + END,
    "a stop with no block": BEGIN + text("a") + event("content_block_stop", index=7) + END,
    "arguments that are no JSON": block(type="tool_use", id="t", name="f", input={})
    + delta("input_json_delta", partial_json='{"a": ')
    + delta("input_json_delta", partial_json="oops")
    + END,
    "a search and its citations": block(type="server_tool_use", id="s", name="web_search", input={})
    + CLOSE
    + BEGIN
    + delta("citations_delta", citation={"url": "https://e.test"})
    + text("a")
    + END,
    "pings and comments' neighbours": PING.encode() + BEGIN + PING.encode() + text("a") + PING.encode() + END,
    "half an emoji": BEGIN + text("a").replace(b'"a"', b'"\\ud83d"') + END,
    "digits and escapes": BEGIN + event("x", a="b").replace(b'"b"', b'[0.10,1e400,"\\u00e9\\/"]') + text("a") + END,
}


@pytest.mark.parametrize("rest", PASS.values(), ids=PASS)
def test_all_that_a_claude_says_passes_byte_for_byte(odd: Gateway, script: ScriptedProvider, rest: bytes) -> None:
    script.answers = {"bad": scripted.stream(START, rest)}
    status, headers, found = read(odd, streamed())
    assert (200, "odd") == (status, headers["x-zurelay-model"])
    assert headers["request-id"] == headers["x-zurelay-request-id"]
    assert START.replace(b'"up"', b'"odd"') + rest == found


FRAMED: dict[str, bytes] = {
    "CR LF": (START + BEGIN + text("안녕 ✅") + END).replace(b"\n", b"\r\n"),
    "CR": (START + BEGIN + text("안녕 ✅") + END).replace(b"\n", b"\r"),
    "comments": b": hello\n\n" + START + BEGIN + b": hm\n\n" + text("안녕 ✅") + END,
    "a byte order mark": b"\xef\xbb\xbf" + START + BEGIN + text("안녕 ✅") + END,
    "no names": b"\n\n".join(
        one
        for part in (START + BEGIN + text("안녕 ✅") + END).split(b"\n")
        for one in [part]
        if part.startswith(b"data")
    )
    + b"\n\n",
    "only the last event missing": START + BEGIN + text("안녕 ✅") + CLOSE + FINISH,
    "the last blank line missing": (START + BEGIN + text("안녕 ✅") + END).removesuffix(b"\n\n"),
    "chat's end behind": START + BEGIN + text("안녕 ✅") + END + b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("raw", FRAMED.values(), ids=FRAMED)
def test_the_sdk_reads_an_answer_however_it_is_framed(odd: Gateway, script: ScriptedProvider, raw: bytes) -> None:
    script.answers = {"bad": scripted.stream(raw)}
    with (
        anthropic.Anthropic(base_url=odd.url, api_key="any", max_retries=0, timeout=30) as client,
        client.messages.stream(model="odd", max_tokens=50, messages=HELLO) as stream,
    ):
        final = stream.get_final_message()
    assert ("odd", "안녕 ✅", "end_turn") == (final.model, getattr(final.content[0], "text", None), final.stop_reason)


BEFORE: dict[str, bytes] = {
    "an error at once": scripted.stream(OVERLOADED),
    "an error behind the head": scripted.stream(START, event("ping"), OVERLOADED),
    "an error behind an empty block": scripted.stream(START, BEGIN, OVERLOADED),
    "an error of another API": scripted.stream(b'data: {"error":{"message":"image","code":400}}\n\ndata: [DONE]\n\n'),
    "a head, then nothing": scripted.stream(START),
    "a head and its end": scripted.stream(START, STOP),
    "an empty block, then nothing": scripted.stream(START, BEGIN),
    "no events": scripted.stream(),
    "chunks of chat's end only": scripted.stream(b"data: [DONE]\n\n"),
    "overloaded": scripted.answer(OVERLOADED.partition(b"data: ")[2], status=529),
    "a web page": scripted.answer(b"<html>", kind="text/html"),
}


@pytest.mark.parametrize("bad", BEFORE.values(), ids=BEFORE)
def test_nothing_of_a_failure_before_content_is_seen(odd: Gateway, script: ScriptedProvider, bad: bytes) -> None:
    script.answers = {"bad": bad, "good": GOOD}
    script.asked.clear()
    status, headers, found = read(odd, streamed())
    assert (200, "even", "odd") == (status, headers["x-zurelay-model"], headers["x-zurelay-routed-from"])
    assert GOOD.partition(b"\r\n\r\n")[2].replace(b'"up"', b'"even"') == found
    assert script.asked == ["bad", "bad", "good"]


@pytest.mark.parametrize("bad", BEFORE.values(), ids=BEFORE)
def test_where_all_fail_before_content_the_status_is_real(odd: Gateway, script: ScriptedProvider, bad: bytes) -> None:
    script.answers = {"good": bad}
    status, headers, found = read(odd, streamed("even"))
    assert (503, "false") == (status, headers["x-should-retry"])
    body = json.loads(found)
    assert ("error", "overloaded_error") == (body["type"], body["error"]["type"])
    assert headers["request-id"] == body["request_id"]


AFTER: dict[str, bytes] = {
    "an error": OVERLOADED,
    "an error in prose": b"event: error\ndata: Overloaded\n\n",
    "nothing more": b"",
    "half an event": text("more")[:40],
    "no JSON": b"event: content_block_delta\ndata: {oops\n\n",
    "another head": START,
}


@pytest.mark.parametrize("bad", AFTER.values(), ids=AFTER)
def test_a_failure_after_content_is_one_error_event(odd: Gateway, script: ScriptedProvider, bad: bytes) -> None:
    script.answers = {"bad": scripted.stream(START, BEGIN, text("Hello"), bad)}
    script.asked.clear()
    status, headers, found = read(odd, streamed())
    assert (200, "odd") == (status, headers["x-zurelay-model"])
    before = START.replace(b'"up"', b'"odd"') + BEGIN + text("Hello")
    assert found.startswith(before + b"event: error\ndata: {")
    body = Sse.read(found[len(before) :]).chunks
    assert [("error", "overloaded_error")] == [(one["type"], one["error"]["type"]) for one in body]
    assert headers["request-id"] == body[0]["request_id"]
    assert ("Overloaded" in body[0]["error"]["message"]) is (bad == OVERLOADED)
    assert script.asked == ["bad"]


CHAT_BAD = {
    **{name: raw for name, raw in AFTER.items() if name != "another head"},
    "arguments for no block": delta("input_json_delta", index=5, partial_json="{}"),
}


@pytest.mark.parametrize("bad", CHAT_BAD.values(), ids=CHAT_BAD)
def test_a_chat_client_sees_a_claude_break_off(odd: Gateway, script: ScriptedProvider, bad: bytes) -> None:
    script.answers = {"bad": scripted.stream(START, BEGIN, text("Hello"), bad)}
    with openai.OpenAI(base_url=odd.url + "/v1", api_key="any", max_retries=0, timeout=30) as client:
        stream = client.chat.completions.create(model="odd", messages=[{"role": "user", "content": "hi"}], stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            list(stream)


def test_a_chat_client_that_asked_for_usage_gets_an_estimate_of_it(odd: Gateway, script: ScriptedProvider) -> None:
    bare = [START.replace(b',"usage":{"input_tokens":9,"output_tokens":1}', b""), BEGIN, text("a" * 40)]
    script.answers = {"bad": scripted.stream(*bare, CLOSE, FINISH.replace(b',"usage":{"output_tokens":5}', b""), STOP)}
    with openai.OpenAI(base_url=odd.url + "/v1", api_key="any", max_retries=0, timeout=30) as client:
        chunks = list(
            client.chat.completions.create(
                model="odd",
                messages=[{"role": "user", "content": "hi"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 10


@pytest.mark.parametrize("shape", ["split", "crlf", "cr", "bom", "nospace", "sse-comments", "gzip", "split+gzip"])
@pytest.mark.parametrize("model", ["claude", "dual"])
def test_the_same_answer_in_any_shape(mixed: Gateway, model: str, shape: str) -> None:
    said = "Olá, 안녕하세요 ✅ 🎉\u2028\u0085 fim"

    def answer(fault: str) -> anthropic.types.Message:
        with (
            anthropic.Anthropic(base_url=mixed.url, api_key="any", max_retries=0, timeout=30) as client,
            client.messages.stream(
                model=model,
                max_tokens=500,
                messages=HELLO,
                thinking={"type": "adaptive"},
                extra_body={"simulate": {"faults": {"c1": fault, "d1": fault}, "text": said}},
            ) as stream,
        ):
            return stream.get_final_message()

    plain, shaped = answer("ok"), answer(shape)
    assert getattr(plain.content[-1], "text", None) == said
    assert plain.model_dump(exclude={"id"}) == shaped.model_dump(exclude={"id"})


def test_pings_come_first_at_the_keep_alive_and_then_each(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    with RawClient(mixed) as client:
        began = time.monotonic()
        client.post(streamed("claude", **simulate(c1="slow-token:3.5")), path=PATH).head()
        assert client.headers["content-type"].startswith("text/event-stream")
        assert client.headers["request-id"] == client.headers["x-zurelay-request-id"]
        assert "x-zurelay-attempts" not in client.headers
        pieces = [(when - began, piece) for when, piece in client.pieces()]
    pings = [when for when, piece in pieces if piece == PING.encode()]
    assert [1, 2, 3] == [int(when) for when in pings]
    stream = b"".join(piece for _, piece in pieces).decode()
    assert stream.startswith(PING * 3)
    assert stream.count("event: message_start") == 1
    assert stream.endswith(STOP.decode())


def test_silence_in_the_midst_is_filled_and_nothing_follows_the_end(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    with RawClient(mixed) as client:
        body = streamed("claude", **simulate(c1="gap:1.4+tokens:3"))
        found = client.post(body, path=PATH).head().read().decode()
    behind = found.partition("event: content_block_delta")[2]
    assert behind.count(PING) >= 1
    assert found.endswith(STOP.decode())
    assert ": keep-alive" not in found


def test_keepalive_off_opens_with_the_first_token_and_never_pings(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    with RawClient(mixed) as client:
        began = time.monotonic()
        body = streamed("claude", **simulate(c1="slow-token:2.2"))
        client.post(body, {"x-zurelay-keepalive": "off"}, PATH).head()
        assert time.monotonic() - began > 2
        assert client.headers["x-zurelay-attempts"] == "1"
        assert client.read().decode().count("event: ping") == 1  # the provider's own


def test_a_failure_behind_an_early_opening_is_an_error_event(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    slow = "slow-head:0.8+status:529"
    with anthropic.Anthropic(base_url=mixed.url, api_key="any", max_retries=0, timeout=30) as client:
        stream = client.messages.create(
            model="spare", max_tokens=50, messages=HELLO, stream=True, extra_body=simulate(s1=slow)
        )
        with pytest.raises(anthropic.APIStatusError) as caught:
            list(stream)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "overloaded_error"


def test_another_models_answer_behind_an_early_opening_has_one_head(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    body = streamed("claude", models=["dual"], **simulate(c1="slow-head:0.8+role-then-error", c2="status:500"))
    with RawClient(mixed) as client:
        client.post(body, path=PATH).head()
        assert "x-zurelay-model" not in client.headers
        found = client.read().decode()
    assert found.startswith(PING)
    assert found.count("event: message_start") == 1
    assert '"model":"dual"' in found
    assert found.endswith(STOP.decode())


@pytest.mark.parametrize(("model", "upstream"), [("claude", "c1"), ("dual", "d1")])
def test_who_leaves_in_the_midst_ends_the_providers_work_and_is_accounted(
    mixed: Gateway, provider: Provider, model: str, upstream: str
) -> None:
    provider.reset()
    client = RawClient(mixed)
    body = streamed(model, max_tokens=5000, **simulate(**{upstream: "gap:0.05+tokens:1000"}))
    client.post(body, path=PATH).head()
    request_id = client.headers["request-id"]
    client.read_until(b"content_block_delta")
    client.leave()
    (record,) = provider.until(lambda seen: bool(seen) and seen[0].left is not None, 2)
    assert record.left is not None
    line = until(lambda: next((one for one in mixed.log if request_id in one), ""), 5)
    told = json.loads(line[line.index("{") :])
    assert ("client_left", model) == (told["outcome"], told["model"])
    assert told["usage"]["estimated"]
    assert told["usage"]["completion"] > 0
    assert told["usage"]["prompt"] > 0


def test_a_stream_that_falls_silent_ends_in_an_error(provider: Provider, tmp_path: pathlib.Path) -> None:
    base = f"http://127.0.0.1:{provider.port}/a1/v1"
    catalog = {
        "providers": {"a1": {"base_url": base, "format": "anthropic"}},
        "models": {"claude": {"routes": [{"provider": "a1", "model": "c1"}], "context_window": 100_000}},
        "timeouts": {"idle": "1s"},
        "streaming": {"messages_keepalive": "400ms"},
    }
    gateway = Gateway(tmp_path, catalog).wait_ready()
    try:
        _, _, found = read(gateway, streamed("claude", **simulate(c1="stall-after:2")))
    finally:
        assert gateway.stop() == 0
    assert found.decode().count(PING) >= 2
    assert Sse.read(found).chunks[-1]["error"]["type"] == "overloaded_error"
    assert b"message_stop" not in found


def test_ten_megabytes_of_tool_result_arrive_whole(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    big = "안녕 " * 1_600_000
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": big}]},
    ]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    body = streamed("claude", messages=turns, tools=tools)
    for model in ("claude", "dual"):
        # The window is none of the matter here: a named model's provider judges it.
        status, _, found = read(mixed, {**body, "model": model})
        assert status == 200
        assert found.endswith(STOP)
        assert provider.requests[-1].length > 10_000_000
