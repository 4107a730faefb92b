"""Streams that pass through: Envoy's own throughput, with the gate and fallback of all others (docs/passthrough.md)."""

from __future__ import annotations

import concurrent.futures
import gzip
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import h11
import httpx
import msgspec
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, simulate, until
from e2e.raw import RawClient, Sse
from e2e.scripted import ScriptedProvider

MB = 1_000_000
MESSAGES = "/v1/messages"


def passing(port: int, **more: Any) -> dict[str, Any]:
    settings = catalog(port)
    base = f"http://127.0.0.1:{port}"
    settings["providers"]["a1"] = {"base_url": f"{base}/a1/v1", "format": "anthropic"}
    window = {"context_window": 100_000}
    settings["models"]["claude"] = {"routes": [{"provider": "a1", "model": "m1"}], **window}
    settings["models"]["kept"] = {"routes": [{"provider": "p1", "model": "m1"}], "passthrough": False, **window}
    places = [("p1", "m1"), ("p2", "m2"), ("p3", "m3"), ("p1", "m2"), ("p2", "m3")]
    routes = [{"provider": provider, "model": model} for provider, model in places]
    settings["models"]["long"] = {"routes": routes, **window}
    streaming = {"passthrough": True, "open_after": "1s", "keepalive": "1s", "messages_keepalive": "1s"}
    return settings | {"streaming": streaming, "workers": 2, **more}


def running(directory: pathlib.Path, settings: dict[str, Any]) -> Iterator[Gateway]:
    found = Gateway(directory, settings).wait_ready()
    before = (found.envoy, found.workers)
    yield found
    assert (found.envoy, found.workers) == before
    assert found.stop() == 0, "".join(found.log)
    assert not [line for line in found.log if '"logger":"lua"' in line]


@pytest.fixture(scope="module")
def passing_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    yield from running(tmp_path_factory.mktemp("passing"), passing(provider.port))


@pytest.fixture(scope="module")
def impatient_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    times = {"first_token": "1s", "total": "3s"}
    yield from running(tmp_path_factory.mktemp("impatient"), passing(provider.port, timeouts=times))


@pytest.fixture
def gateway(passing_gateway: Gateway, provider: Provider) -> Gateway:
    provider.reset()
    return passing_gateway


@pytest.fixture
def impatient(impatient_gateway: Gateway, provider: Provider) -> Gateway:
    provider.reset()
    return impatient_gateway


def relayed(gateway: Gateway) -> int:
    """How many requests have gone through the egress listener."""
    transport = httpx.HTTPTransport(uds=str(gateway.run_dir / "admin.sock"))
    with httpx.Client(transport=transport, base_url="http://admin") as admin:
        text = admin.get("/stats", params={"filter": "^http.egress.downstream_rq_total$"}).text
    return int(text.partition(":")[2])


def streamed(model: str, text: str = "How are you?", **more: Any) -> dict[str, Any]:
    return ask(model, text, stream=True, **more)


def record(gateway: Gateway, request_id: str) -> dict[str, Any]:
    """The log line of a request."""

    def found() -> dict[str, Any]:
        lines = [msgspec.json.decode(line) for line in list(gateway.log) if request_id in line and line[0] == "{"]
        return next(iter(lines), {})

    return until(found)


def test_a_stream_passes_without_the_relay_and_is_what_the_relay_gives(gateway: Gateway) -> None:
    before = relayed(gateway)
    answer = gateway.chat(streamed("trio"))
    assert (200, "text/event-stream; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert before == relayed(gateway)
    through_relay = gateway.chat(streamed("trio"), {"x-zurelay-keepalive": "on"})
    assert before + 1 == relayed(gateway)
    passed, other = Sse.read(answer.text), Sse.read(through_relay.text)
    assert other.joined() == passed.joined() != ""
    assert "[DONE]" == passed.events[-1]
    assert {"trio"} == {chunk["model"] for chunk in passed.chunks}
    shown = {name: answer.headers.get(name) for name in through_relay.headers if name.startswith("x-zurelay-")}
    own = {"x-zurelay-request-id": answer.headers["x-zurelay-request-id"]}
    assert {name: value for name, value in through_relay.headers.items() if name in shown} | own == shown
    assert not [name for name in answer.headers if name.startswith(("x-zurelay-pass", "x-zurelay-route", "x-sim"))]


@pytest.mark.parametrize("include", [None, False, True])
@pytest.mark.parametrize("fault", ["ok", "split", "crlf", "split+crlf", "nospace", "no-done"])
def test_the_chunk_of_the_usage_goes_to_who_asked_for_it(gateway: Gateway, fault: str, *, include: bool | None) -> None:
    options: dict[str, Any] = {} if include is None else {"stream_options": {"include_usage": include}}
    answer = gateway.chat(streamed("solo", **options, **simulate(m1=fault)))
    sse = Sse.read(answer.text)
    alone = [chunk for chunk in sse.chunks if not chunk["choices"]]
    assert bool(include) == bool(alone)
    assert all(chunk["usage"]["total_tokens"] for chunk in alone)
    assert {"solo"} == {chunk["model"] for chunk in sse.chunks}
    line = record(gateway, answer.headers["x-zurelay-request-id"])
    assert ("answered", 1, True) == (line["outcome"], line["attempts"], line["stream"])
    told = line["usage"]
    assert (False, True) == (told["estimated"], told["completion"] > 0)
    if alone:
        usage = alone[0]["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (told["prompt"], told["completion"])


@pytest.mark.parametrize(
    "fault",
    ["status:500", "status:429", "reset", "close", "first-error", "role-then-error", "empty-stream", "html"],
)
def test_attempts_fail_invisibly_until_the_first_token(gateway: Gateway, fault: str) -> None:
    answer = gateway.chat(streamed("trio", **simulate(m1=fault)))
    expected = "2" if fault == "status:429" else "3"
    assert (200, expected, "trio") == (
        answer.status_code,
        answer.headers["x-zurelay-attempts"],
        answer.headers["x-zurelay-model"],
    )
    assert "[DONE]" == Sse.read(answer.text).events[-1]
    assert int(expected) == record(gateway, answer.headers["x-zurelay-request-id"])["attempts"]


@pytest.mark.parametrize("fault", ["hang", "stall", "reset-after-head"])
def test_an_attempt_without_a_first_token_in_time_is_given_up(impatient: Gateway, fault: str) -> None:
    answer = impatient.chat(streamed("guarded", **simulate(m1=[fault, "ok"])))
    assert (200, "2") == (answer.status_code, answer.headers["x-zurelay-attempts"])


@pytest.mark.parametrize("fault", ["status:500", "close", "first-error", "empty-stream"])
def test_a_plan_that_fails_is_an_error_of_ours(gateway: Gateway, fault: str) -> None:
    answer = gateway.chat(streamed("trio", **simulate(m1=fault, m2=fault, m3=fault)))
    assert (503, "model_unavailable") == (answer.status_code, answer.json()["error"]["code"])
    assert "retry-after" in answer.headers
    line = record(gateway, answer.headers["x-zurelay-request-id"])
    assert line["outcome"] in {"refused", "failed"}


def test_the_clients_own_mistake_comes_back(gateway: Gateway) -> None:
    answer = gateway.chat(streamed("solo", **simulate(m1="status:422")))
    assert 422 == answer.status_code
    assert "error" in answer.json()
    assert "refused" == record(gateway, answer.headers["x-zurelay-request-id"])["outcome"]


def test_no_attempt_begins_after_the_total(impatient: Gateway) -> None:
    slow = "slow-head:0.9+status:500"  # the plan has six attempts, and three seconds
    answer = impatient.chat(streamed("long", **simulate(m1=slow, m2=slow, m3=slow)), timeout=20)
    assert (503, "model_unavailable") == (answer.status_code, answer.json()["error"]["code"])
    line = record(impatient, answer.headers["x-zurelay-request-id"])
    assert ("failed", "timed out") == (line["outcome"], line["why"])
    assert line["attempts"] < 6


def test_messages_pass_too_and_their_usage_is_both_reports(gateway: Gateway) -> None:
    before = relayed(gateway)
    body = streamed("claude") | {"max_tokens": 100}
    answer = httpx.post(gateway.url + MESSAGES, json=body, timeout=30)
    events = Sse.read(answer.text).chunks
    assert (200, "message_start", "message_stop") == (answer.status_code, events[0]["type"], events[-1]["type"])
    assert "claude" == events[0]["message"]["model"]
    assert answer.headers["request-id"] == answer.headers["x-zurelay-request-id"]
    assert before == relayed(gateway)
    line = record(gateway, answer.headers["x-zurelay-request-id"])
    delta = next(event for event in events if event["type"] == "message_delta")
    first = events[0]["message"]["usage"]
    assert (first["input_tokens"], delta["usage"]["output_tokens"]) == (
        line["usage"]["prompt"] - line["usage"]["cached"] - line["usage"]["cache_written"],
        line["usage"]["completion"],
    )


@pytest.mark.parametrize(
    ("model", "headers"),
    [("claude", {}), ("kept", {}), ("solo", {"x-zurelay-keepalive": "on"})],
    ids=["another format", "a model that says so", "a client that wants keep-alives"],
)
def test_the_relay_takes_what_can_not_pass(gateway: Gateway, model: str, headers: dict[str, str]) -> None:
    before = relayed(gateway)
    answer = gateway.chat(streamed(model), headers)
    assert (200, "[DONE]") == (answer.status_code, Sse.read(answer.text).events[-1])
    assert before + 1 == relayed(gateway)


@pytest.mark.parametrize("enough", [8, 300])
def test_a_client_that_leaves_pays_for_what_was_generated(gateway: Gateway, provider: Provider, enough: int) -> None:
    with RawClient(gateway) as client:
        client.post(streamed("solo", **simulate(m1="gap:0.002+tokens:5000"))).head()
        request_id = client.headers["x-zurelay-request-id"]
        seen = 0
        for _, piece in client.pieces():
            seen += piece.count(b"data: ")
            if seen > enough:
                break
        left = client.leave()
    (served,) = provider.until(lambda records: records[0].left is not None)
    assert served.left is not None
    assert served.left - left < 1
    line = record(gateway, request_id)
    assert ("client_left", True) == (line["outcome"], line["usage"]["estimated"])
    assert seen - min(seen / 2 + 1, 100) < line["usage"]["completion"] < seen + 500


def test_a_stream_that_its_provider_cuts_is_cut_for_its_client(gateway: Gateway) -> None:
    with RawClient(gateway) as client:
        client.post(streamed("solo", **simulate(m1="abort:3"))).head()
        with pytest.raises((ConnectionError, h11.RemoteProtocolError)):
            client.read()
        line = record(gateway, client.headers["x-zurelay-request-id"])
    assert "broken" == line["outcome"]


@pytest.mark.parametrize(
    "fault", [f"big:{MB}", f"big:{3 * MB}", f"big:{30 * MB}+size:16384", f"big:{3 * MB}+size:1500000"]
)
def test_large_streams_reach_fast_and_slow_clients_whole(gateway: Gateway, fault: str) -> None:
    size = int(fault.partition(":")[2].partition("+")[0])

    def one(buffer: int | None) -> int:
        with RawClient(gateway, buffer) as client:
            client.post(streamed("solo", **simulate(m1=fault))).head()
            sse = Sse.read(client.read())
            assert "[DONE]" == sse.events[-1]
            return len(sse.joined())

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [size] * 4 == list(pool.map(one, [None, None, 4096, 4096]))


@pytest.mark.parametrize("buffer", [None, 4096], ids=["a fast client", "a slow client"])
def test_an_answer_that_waits_whole_for_a_busy_worker_harms_nothing(
    gateway: Gateway, provider: Provider, buffer: int | None
) -> None:
    size = 30 * MB
    workers = gateway.workers
    with RawClient(gateway, buffer) as client:
        client.post(streamed("solo", **simulate(m1=f"slow-head:0.2+big:{size}+size:16384")))
        provider.until(bool)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        try:
            time.sleep(0.8)  # as busy as a worker may be before Envoy takes it for frozen
        finally:
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
        sse = Sse.read(client.head().read())
    assert (size, "[DONE]") == (len(sse.joined()), sse.events[-1])


def test_a_client_that_never_reads_holds_up_its_provider_and_no_memory(gateway: Gateway, provider: Provider) -> None:
    def resident() -> int:
        return int((pathlib.Path(f"/proc/{gateway.envoy}/statm").read_text().split())[1]) * 4096

    before = resident()
    with RawClient(gateway, 4096) as client:
        client.post(streamed("solo", **simulate(m1=f"big:{300 * MB}+size:16384"))).head()
        provider.until(bool)
        ok = gateway.chat(streamed("spare"))
        assert 200 == ok.status_code
        assert resident() - before < 100 * MB
        assert not provider.requests[0].ended


# The script sees events in any pieces, and bytes that are no events.

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(content: str, **more: Any) -> bytes:
    delta = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    return b"data: " + msgspec.json.encode({"model": "other", "choices": [delta], **more}) + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
ALONE = b"data: " + msgspec.json.encode({"model": "other", "choices": [], "usage": USAGE}) + b"\n\n"
DONE = b"data: [DONE]\n\n"
TRICKY = 'says "model":"x" and "usage":{"prompt_tokens":9} and { and data: [DONE]'

SPACED = b'data: {"model" : "NAME", "choices": [{"index":0,"delta":{"content":"\\n"}}]}\n\n'
BLANKS = b'data: {"choices" : [ ], "usage" :  {"prompt_tokens":3, "completion_tokens":4}}\n\n'
LARGE = ALONE[:-3] + b',"more":"' + b"x" * 3 * MB + b'"}\n\n'
LARGE = LARGE.replace(b'"choices":[]', b'"choices":[{"index":0,"delta":{"content":"b"}}]')

ODD: dict[str, tuple[bytes, bytes]] = {
    "names in what is said": (event(TRICKY) + DONE, event(TRICKY) + DONE),
    "a usage chunk that opens a brace before": (event("{") + ALONE + DONE, event("{") + DONE),
    "a usage chunk with content": (event("a", usage=USAGE) + DONE, event("a", usage=USAGE) + DONE),
    "an end without blank line": (event("a") + DONE.strip(), event("a") + DONE.strip()),
    "an end with one newline": (event("a") + DONE[:-1], event("a") + DONE[:-1]),
    "no end": (event("a"), event("a")),
    "an event that is cut": (event("a") + b'data: {"mod', event("a")),
    "comments": (
        b": hello\n\n" + event("a") + b": more\n\n" + DONE,
        b": hello\n\n" + event("a") + b": more\n\n" + DONE,
    ),
    "an event beyond what is waited for": (
        event("a") + event("x" * 3 * MB) + DONE,
        event("a") + event("x" * 3 * MB) + DONE,
    ),
    "names with blanks and escapes": (
        event("a") + SPACED.replace(b"NAME", b"x\\/y") + SPACED.replace(b"NAME", b"x") + DONE,
        event("a") + SPACED.replace(b"NAME", b"odd") * 2 + DONE,
    ),
    "a usage chunk with blanks": (event("a") + BLANKS + DONE, event("a") + DONE),
    "a usage chunk without choices": (event("a") + ALONE.replace(b'"choices":[],', b"") + DONE, event("a") + DONE),
    "lines that end with CR": ((event("a") + DONE).replace(b"\n", b"\r"), (event("a") + DONE).replace(b"\n", b"\r")),
    "an event with usage beyond what is waited for": (event("a") + LARGE + DONE, event("a") + LARGE + DONE),
    "no name": (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n' + DONE,
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n' + DONE,
    ),
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, ScriptedProvider]]:
    scripted = ScriptedProvider()
    base = f"http://127.0.0.1:{scripted.port}/v1"
    settings = {
        "providers": {
            "p": {"base_url": base, "format": "openai"},
            "a": {"base_url": base, "format": "anthropic"},
        },
        "models": {
            "odd": {"routes": [{"provider": "p", "model": "m"}], "context_window": 100_000},
            "message": {"routes": [{"provider": "a", "model": "m"}], "context_window": 100_000},
        },
        "streaming": {"passthrough": True},
    }
    for found in running(tmp_path_factory.mktemp("odd"), settings):
        yield found, scripted
    scripted.stop()


@pytest.mark.parametrize(("sent", "expected"), ODD.values(), ids=ODD)
def test_an_odd_stream_passes_with_its_models_name_and_nothing_else_changed(
    odd: tuple[Gateway, ScriptedProvider], sent: bytes, expected: bytes
) -> None:
    gateway, scripted = odd
    scripted.answers = {"m": HEAD + sent}
    answer = gateway.chat(streamed("odd"))
    assert 200 == answer.status_code
    assert expected.replace(b'"model":"other"', b'"model":"odd"') == answer.content


def test_a_compressed_stream_goes_on_as_it_is(odd: tuple[Gateway, ScriptedProvider]) -> None:
    gateway, scripted = odd
    packed = gzip.compress(event("a") + ALONE + DONE)
    scripted.answers = {"m": HEAD[:-2] + b"content-encoding: gzip\r\n\r\n" + packed}
    answer = gateway.chat(streamed("odd"))
    assert event("a") + ALONE + DONE == answer.content
    line = record(gateway, answer.headers["x-zurelay-request-id"])
    assert ("answered", True) == (line["outcome"], line["usage"]["estimated"])


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([event("a"), DONE[:-1], b"\n"], event("a") + DONE),
        ([event("a"), DONE[:-2], b"\n\n"], event("a") + DONE),
        ([event("a"), DONE[:9], DONE[9:]], event("a") + DONE),
        ([event("a"), b"data: [DONE]\r\n", b"\r\n"], event("a") + b"data: [DONE]\r\n\r\n"),
        ([event("a").replace(b"other", b"odd"), event("b"), DONE], event("a") + event("b") + DONE),
        (
            [event("a"), event("b" * 300)[:200], event("b" * 300)[200:-1], b"\n", DONE],
            event("a") + event("b" * 300) + DONE,
        ),
    ],
    ids=["last newline", "both newlines", "in the end", "crlf", "another name later", "a long event"],
)
def test_a_stream_in_pieces_is_the_same_stream(
    odd: tuple[Gateway, ScriptedProvider], pieces: list[bytes], expected: bytes
) -> None:
    gateway, scripted = odd
    scripted.answers = {"m": [HEAD, *pieces]}
    answer = gateway.chat(streamed("odd"))
    assert expected.replace(b'"model":"other"', b'"model":"odd"') == answer.content
    assert "answered" == record(gateway, answer.headers["x-zurelay-request-id"])["outcome"]


ERROR = b'data: {"error":{"message":"boom","code":500}}\n\n'


@pytest.mark.parametrize("ending", [ERROR, b""], ids=["an error", "nothing"])
def test_a_stream_that_ends_without_its_end_is_on_record_as_broken(
    odd: tuple[Gateway, ScriptedProvider], ending: bytes
) -> None:
    gateway, scripted = odd
    scripted.answers = {"m": HEAD + event("a") + ending}
    answer = gateway.chat(streamed("odd"))
    assert ending == answer.content[-len(ending) :] or not ending
    assert "broken" == record(gateway, answer.headers["x-zurelay-request-id"])["outcome"]


def told(kind: str, **more: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **more}) + b"\n\n"


MESSAGE = {"model": "other", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}
TOOL = {"type": "tool_use", "id": "t", "name": "n", "input": {"model": "mine"}}
SAID = told("content_block_delta", index=0, delta={"type": "text_delta", "text": "a"})


def test_of_a_message_only_its_own_name_changes(odd: tuple[Gateway, ScriptedProvider]) -> None:
    gateway, scripted = odd
    sent = told("message_start", message=MESSAGE) + told("content_block_start", index=0, content_block=TOOL)
    sent += told("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 7}) + told("message_stop")
    for pieces in ([sent], [sent[:-200], sent[-200:]]):
        scripted.answers = {"m": [HEAD, *pieces]}
        answer = httpx.post(gateway.url + MESSAGES, json=streamed("message") | {"max_tokens": 9}, timeout=30)
        assert sent.replace(b'"model":"other"', b'"model":"message"') == answer.content


def test_a_message_that_breaks_off_is_estimated_not_taken_at_its_first_word(
    odd: tuple[Gateway, ScriptedProvider],
) -> None:
    gateway, scripted = odd
    scripted.answers = {"m": HEAD + told("message_start", message=MESSAGE) + SAID * 50}
    answer = httpx.post(gateway.url + MESSAGES, json=streamed("message") | {"max_tokens": 900}, timeout=30)
    line = record(gateway, answer.headers["x-zurelay-request-id"])
    assert ("broken", True) == (line["outcome"], line["usage"]["estimated"])
    assert line["usage"]["completion"] >= 50
