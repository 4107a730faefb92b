"""SPEC 11 through the real Envoy: limits that hold across workers, and spend that is counted once and survives."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import openai
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, until
from e2e.keys import bearer, key_of, usage, write_keys
from e2e.raw import RawClient
from redis_server import MISSING, RedisServer, lacks_redis

REQUESTS = 20
PRICE = {"input": 1, "output": 10}
USED = "input:1000+output:100"  # 0.002 USD at this price
KEYS: dict[str, dict[str, Any]] = {
    "free": {},
    "many": {"limits": {"requests_per_minute": REQUESTS}},
    "tokens": {"limits": {"tokens_per_minute": 5_000}},
    "poor": {"limits": {"usd_per_day": 0.01}},
    "thrifty": {"limits": {"usd_per_day": 0.05}},
    "thrifty-stream": {"limits": {"usd_per_day": 0.05}},
    "one": {"limits": {"requests_per_minute": 1}},
    **{f"swift-{number}": {"limits": {"usd_per_day": 0.02}} for number in range(3)},
    "sloppy": {"limits": {"tokens_per_minute": 5_000}},
    "leaver": {},
    "unlucky": {},
    "broken": {},
    "mute": {},
    "batch": {"limits": {"requests_per_minute": 1_000, "usd_per_month": 100}},
}


def priced(port: int) -> dict[str, Any]:
    found = catalog(port)
    for model in found["models"].values():
        model["price"] = PRICE
    return found


def started(directory: pathlib.Path, provider: Provider, **settings: Any) -> Gateway:
    auth = write_keys(directory, **KEYS)
    return Gateway(directory, priced(provider.port) | {"auth": auth, "workers": 2} | settings).wait_ready()


@pytest.fixture(scope="module")
def limited_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    running = started(tmp_path_factory.mktemp("limited"), provider)
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def limited(limited_gateway: Gateway, provider: Provider) -> Gateway:
    provider.reset()
    return limited_gateway


def chat(gateway: Gateway, key: str, spec: str = USED, **more: Any) -> httpx.Response:
    body = ask("solo", simulate={"faults": {"m1": spec}}, **more)
    return gateway.chat(body, bearer(key))


def settled(gateway: Gateway, key: str, requests: int = 1) -> dict[str, Any]:
    """What the store says of a key once that many requests are settled."""

    def found() -> dict[str, Any]:
        row = usage(gateway).get(key, {"requests": 0})
        return row if row["requests"] >= requests else {}

    return until(found)


def test_of_two_key_headers_ours_counts_and_two_of_ours_are_refused(limited: Gateway) -> None:
    def models(api_key: str, x_api_key: str) -> set[str]:
        options: dict[str, Any] = {"base_url": limited.url + "/v1", "default_headers": {"x-api-key": x_api_key}}
        with openai.OpenAI(api_key=api_key, max_retries=0, **options) as client:
            return {model.id for model in client.models.list()}

    assert "solo" in models(key_of("free"), "sk-ant-someone-elses")
    assert "solo" in models("sk-someone-elses", key_of("free"))
    with pytest.raises(openai.AuthenticationError, match="two different API keys"):
        models(key_of("free"), key_of("batch"))


def test_requests_a_minute_are_exact_across_workers(limited: Gateway, provider: Provider) -> None:
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: chat(limited, "many"), range(3 * REQUESTS)))
    assert {200: REQUESTS, 429: 2 * REQUESTS} == collections.Counter(each.status_code for each in answers)
    assert REQUESTS == len(provider.requests)
    assert sorted(range(REQUESTS)) == sorted(
        int(each.headers["x-ratelimit-remaining-requests"]) for each in answers if each.is_success
    )
    for refused in (each for each in answers if each.status_code == 429):
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert "x-should-retry" not in refused.headers
        assert ("20", "0") == tuple(refused.headers[f"x-ratelimit-{it}-requests"] for it in ("limit", "remaining"))
        assert "rate_limit_exceeded" == refused.json()["error"]["code"]


def test_tokens_are_reserved_by_estimate_and_settled_by_the_true_figure(limited: Gateway) -> None:
    first = chat(limited, "tokens", max_tokens=1_000)
    assert 3_500 < int(first.headers["x-ratelimit-remaining-tokens"]) < 4_000
    settled(limited, "tokens")
    second = chat(limited, "tokens", max_tokens=1_000)
    # 1,100 were used by the first; the second holds its estimate.
    assert 2_700 < int(second.headers["x-ratelimit-remaining-tokens"]) < 2_900
    refused = chat(limited, "tokens", max_tokens=4_000)
    assert (429, "rate_limit_exceeded") == (refused.status_code, refused.json()["error"]["code"])
    never = chat(limited, "tokens", max_tokens=6_000)
    assert (429, "false") == (never.status_code, never.headers["x-should-retry"])
    assert "retry-after" not in never.headers


@pytest.mark.parametrize("number", range(3))
def test_one_request_at_a_time_never_spends_more_than_the_limit(limited: Gateway, number: int) -> None:
    """What one worker let in another one settles: what it held isn't free before that is seen."""
    key, costs = f"swift-{number}", {"m1": "input:5+output:100"}  # 0.001005 USD, a little less than it may need
    body = msgspec.json.encode(ask("solo", max_tokens=100, simulate={"faults": costs}))
    with contextlib.ExitStack() as stack:  # Envoy's threads, and so the workers, differ by connection
        clients = [stack.enter_context(httpx.Client(base_url=limited.url, timeout=30)) for _ in range(8)]
        answers = [
            client.post("/v1/chat/completions", content=body, headers=bearer(key)).status_code
            for _ in range(10)
            for client in clients
        ]
    assert {200: 19, 429: 61} == collections.Counter(answers)


def test_a_stream_that_is_asked_for_wrongly_holds_nothing(limited: Gateway) -> None:
    for mistake in ({"stream_options": 5}, {"n": "two"}):
        answer = limited.chat(ask("solo", stream=True, max_tokens=4_900, **mistake), bearer("sloppy"))
        assert 400 == answer.status_code
    assert 200 == chat(limited, "sloppy", max_tokens=4_900).status_code


def test_a_spend_limit_lets_through_what_fits(limited: Gateway) -> None:
    for number in range(1, 5):  # each may cost 0.0011 by its estimate, and costs 0.002
        assert 200 == chat(limited, "poor", max_tokens=100).status_code
        assert f"{number * 2 / 1000:.3f}" == settled(limited, "poor", number)["usd"]
    assert 200 == chat(limited, "poor", max_tokens=100).status_code
    settled(limited, "poor", 5)
    refused = chat(limited, "poor", max_tokens=100)
    assert (429, "insufficient_quota") == (refused.status_code, refused.json()["error"]["code"])
    assert "false" == refused.headers["x-should-retry"]


def test_streams_carry_the_limits_and_are_counted(limited: Gateway) -> None:
    before = usage(limited).get("batch", {"requests": 0})["requests"]
    answer = chat(limited, "batch", stream=True)
    assert "1000" == answer.headers["x-ratelimit-limit-requests"]
    row = settled(limited, "batch", before + 1)
    assert (1_000, 100, 0) == (row["prompt"], row["completion"], row["estimated"])


def test_a_client_that_leaves_pays_what_was_generated(limited: Gateway) -> None:
    body = ask("solo", stream=True, simulate={"faults": {"m1": "tokens:400+gap:0.05"}})
    with RawClient(limited) as client:
        pieces = client.post(body, bearer("leaver")).head().pieces()
        seen = b""
        while seen.count(b"data: ") < 8:
            seen += next(pieces)[1]
    row = settled(limited, "leaver")
    assert (1, 0, 1) == (row["requests"], row["failed"], row["estimated"])
    assert 0 < row["completion"] < 300
    assert float(row["usd"]) > 0


def test_a_failure_after_content_is_free_and_ours(limited: Gateway) -> None:
    answer = chat(limited, "broken", "cut:5+tokens:20", stream=True)
    assert b"[DONE]" not in answer.content
    row = settled(limited, "broken")
    assert (1, 1, "0.00", 0) == (row["requests"], row["failed"], row["usd"], row["completion"])
    assert float(row["ours_usd"]) > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_request_is_free(limited: Gateway, *, stream: bool) -> None:
    before = usage(limited).get("unlucky", {"requests": 0})["requests"]
    assert 503 == chat(limited, "unlucky", "status:500", stream=stream).status_code
    row = settled(limited, "unlucky", before + 1)
    assert (before + 1, "0.00", "0.00") == (row["failed"], row["usd"], row["ours_usd"])


def test_no_usage_from_the_provider_is_an_estimate_that_is_marked(limited: Gateway) -> None:
    assert 200 == chat(limited, "mute", "no-usage").status_code
    row = settled(limited, "mute")
    assert (1, 1) == (row["requests"], row["estimated"])
    assert row["prompt"] > 0
    assert row["completion"] > 0


def test_counts_by_model_and_metrics_tell_of_cost(limited: Gateway) -> None:
    chat(limited, "free")
    settled(limited, "free")
    assert "solo" in usage(limited, "model")
    lines = httpx.get(limited.status_url + "/metrics").text
    assert 'zurelay_cost_usd_total{model="solo"}' in lines
    while chat(limited, "one").is_success:
        continue
    told = 'zurelay_limits_hit_total{scope="key",limit="requests_per_minute",shadow="false"}'
    assert told in httpx.get(limited.status_url + "/metrics").text


def test_spend_survives_killed_workers_and_a_restart(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("survives")
    gateway = started(directory, provider)
    try:
        for number in range(1, 6):
            assert 200 == chat(gateway, "poor", max_tokens=100).status_code
            settled(gateway, "poor", number)
        for worker in gateway.workers:
            os.kill(worker, signal.SIGKILL)
        until(lambda: chat(gateway, "poor", max_tokens=100).status_code == 429, 20)
        assert ("0.01", 5) == tuple(usage(gateway)["poor"][name] for name in ("usd", "requests"))
        assert 0 == gateway.stop()
        gateway = started(directory, provider)
        assert 429 == chat(gateway, "poor", max_tokens=100).status_code
    finally:
        gateway.stop()


def test_what_is_settled_when_it_is_stopped_is_written(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gateway = started(tmp_path_factory.mktemp("stopped"), provider)
    assert 200 == chat(gateway, "free").status_code
    assert 0 == gateway.stop()
    assert 1 == usage(gateway)["free"]["requests"]


def test_a_store_that_cannot_be_used_stops_the_start(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("unusable")
    (directory / "zurelay.db").write_bytes(b"no database" * 100)
    with pytest.raises(AssertionError, match="no SQLite database"):
        started(directory, provider)


def test_a_revoked_key_stops_and_another_store_is_taken_up_while_serving(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("reloaded")
    gateway = started(directory, provider)
    try:
        assert 200 == chat(gateway, "free").status_code
        settled(gateway, "free")
        write_keys(directory, **KEYS | {"free": {"disabled": True}})
        until(lambda: chat(gateway, "free").status_code == 401, 5)
        gateway.write(gateway.config | {"store": {"sqlite": "other.db"}})

        def counted() -> bool:
            assert 200 == chat(gateway, "batch").status_code
            return (directory / "other.db").exists() and "batch" in usage(gateway)

        until(counted)
        assert "free" not in usage(gateway)
        assert (1, 200) == (len(gateway.pids("bin/envoy")), chat(gateway, "batch").status_code)
    finally:
        gateway.stop()


@pytest.mark.skipif(lacks_redis(), reason=MISSING)
@pytest.mark.parametrize(("on_failure", "status"), [("allow", 200), ("refuse", 503)])
def test_a_redis_that_is_away_lets_requests_go_on_or_refuses_them_as_set(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, on_failure: str, status: int
) -> None:
    redis = RedisServer(tmp_path_factory.mktemp("r"))
    redis.start()
    try:
        store = {"redis": redis.url, "on_failure": on_failure}
        gateway = started(tmp_path_factory.mktemp("redis"), provider, store=store)
        try:
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                answers = list(pool.map(lambda _: chat(gateway, "many").status_code, range(2 * REQUESTS)))
            assert {200: REQUESTS, 429: REQUESTS} == collections.Counter(answers), "".join(gateway.log)
            assert REQUESTS == settled(gateway, "many", REQUESTS)["requests"]
            redis.stop()
            away = until(lambda: (it := chat(gateway, "many")).status_code == status and it)
            assert isinstance(away, httpx.Response)
            if status == 503:
                assert ("gateway_unavailable", "1") == (
                    away.json()["error"]["code"],
                    away.headers["retry-after"],
                )
            assert 200 == chat(gateway, "free").status_code
            redis.start()
            until(lambda: chat(gateway, "many").headers.get("x-ratelimit-limit-requests") == "20")
        finally:
            gateway.stop()
    finally:
        redis.stop()


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_under_way_counts_against_a_spend_limit(limited: Gateway, provider: Provider, stream: bool) -> None:
    """Each of these may cost a cent and a bit, the limit is five: four at once, however long they take."""
    slow = {"max_tokens": 1_000, "stream": stream}
    key = "thrifty-stream" if stream else "thrifty"
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        first = [pool.submit(chat, limited, key, "slow-head:2+input:1+output:1", **slow) for _ in range(4)]
        provider.until(lambda requests: len(requests) == 4)
        refused = [pool.submit(chat, limited, key, "ok", **slow) for _ in range(6)]
        assert {one.result().status_code for one in refused} == {429}
        assert {one.result().status_code for one in first} == {200}
    until(lambda: chat(limited, key, "input:1+output:1", **slow).status_code == 200)
