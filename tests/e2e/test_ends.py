"""Every request has one end that is put on record and settled, whoever sees it (decision 9)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, free_port, simulate, until
from e2e.keys import bearer, usage, write_keys
from e2e.raw import RawClient

PRICE = {"input": 1, "output": 10}
TOKENS = 100_000
KEYS: dict[str, dict[str, Any]] = {
    **{name: {"limits": {"tokens_per_minute": TOKENS, "usd_per_day": 100}} for name in ("held", "many")},
    **{name: {"limits": {"tokens_per_minute": 10_000_000, "usd_per_day": 100}} for name in ("racer", "planned")},
    **{name: {} for name in ("free", "leaver", "late-leaver", "stream-leaver", "absurd", "mortal")},
}


@pytest.fixture(scope="module")
def ends_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("ends")
    settings = catalog(provider.port)
    settings["providers"]["dead"] = {"base_url": f"http://127.0.0.1:{free_port()}/v1", "format": "openai"}
    settings["models"]["dead"] = {"routes": [{"provider": "dead", "model": "m1"}], "context_window": 100_000}
    settings["providers"]["a1"] = {"base_url": f"http://127.0.0.1:{provider.port}/a1/v1", "format": "anthropic"}
    routes = [{"provider": "a1", "model": "m1"}, {"provider": "p2", "model": "m2"}]
    settings["models"]["claude"] = {"routes": routes, "context_window": 100_000}
    for model in settings["models"].values():
        model["price"] = PRICE
    auth = write_keys(directory, **KEYS)
    running = Gateway(directory, settings | {"auth": auth, "workers": 2, "timeouts": {"whole": "1s"}}).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def gateway(ends_gateway: Gateway, provider: Provider) -> Gateway:
    provider.reset()
    return ends_gateway


def records(gateway: Gateway, key: str) -> list[dict[str, Any]]:
    """The log lines of a key's requests, in the order in which they came."""
    lines = [msgspec.json.decode(line) for line in list(gateway.log) if line.startswith('{"time"')]
    return [line for line in lines if line.get("key") == key]


def settled(gateway: Gateway, key: str, requests: int) -> dict[str, Any]:
    """What the store says of a key once that many requests are settled."""

    def found() -> dict[str, Any]:
        row = usage(gateway).get(key, {"requests": 0})
        return row if row["requests"] >= requests else {}

    return until(found)


def record_of(gateway: Gateway, answer: httpx.Response) -> dict[str, Any]:
    """The log line of an answer."""
    wanted = answer.headers["x-zurelay-request-id"]

    def found() -> dict[str, Any]:
        lines = [msgspec.json.decode(line) for line in list(gateway.log) if wanted in line and line.startswith("{")]
        return next(iter(lines), {})

    return until(found)


# model, fault of its upstream models, and how what Envoy says of it begins
FAILED = {
    "every route refuses the connection": ("dead", "ok", "upstream_reset_before_response_started"),
    "reset before the head": ("solo", "reset", "upstream_reset_before_response_started"),
    "reset after the head": ("solo", "abort:1", "upstream_reset_before_response_started"),
    "closed": ("solo", "close", "upstream_reset_before_response_started"),
    "silence until the timeout": ("solo", "hang", "upstream_per_try_timeout"),
}


@pytest.mark.parametrize(("model", "fault", "why"), [pytest.param(*row, id=name) for name, row in FAILED.items()])
def test_a_request_that_no_attempt_judges_is_put_on_record_and_free(
    gateway: Gateway, model: str, fault: str, why: str
) -> None:
    before = usage(gateway).get("held", {"requests": 0})["requests"]
    answer = gateway.chat(ask(model, **simulate(m1=fault)), bearer("held"))
    assert (503, "2") == (answer.status_code, answer.headers["x-zurelay-attempts"])
    assert (str(TOKENS), True) == (
        answer.headers["x-ratelimit-limit-tokens"],
        int(answer.headers["x-ratelimit-remaining-tokens"]) < TOKENS,
    )
    row = settled(gateway, "held", before + 1)
    assert (before + 1, "0.00", 0) == (row["requests"], row["usd"], row["prompt"])
    line = record_of(gateway, answer)
    assert ("failed", 2) == (line["outcome"], line["attempts"])
    assert line["why"].startswith(why)


def test_what_it_held_is_free_again_at_once(gateway: Gateway) -> None:
    """Tokens of a minute are held until its end is known, not until the minute is over."""
    for number in range(1, 4):
        answer = gateway.chat(ask("dead", max_tokens=90_000), bearer("many"))
        assert 503 == answer.status_code, answer.text
        settled(gateway, "many", number)
    assert 200 == gateway.chat(ask("solo", max_tokens=90_000), bearer("many")).status_code


def test_a_client_that_leaves_before_its_whole_answer_pays_its_prompt(gateway: Gateway, provider: Provider) -> None:
    with RawClient(gateway) as client:
        client.post(ask("solo", "word " * 1_000, **simulate(m1="slow-head:0.9")), bearer("leaver"))
        provider.until(lambda requests: len(requests) == 1)
        client.leave()
    row = settled(gateway, "leaver", 1)
    assert (1, 0, 0, 1) == (row["requests"], row["failed"], row["completion"], row["estimated"])
    assert 800 < row["prompt"] < 2_000
    assert float(row["usd"]) == row["prompt"] / 10**6
    (line,) = records(gateway, "leaver")
    assert ("client_left", "solo", 1) == (line["outcome"], line["model"], line["attempts"])


def test_a_client_that_leaves_in_the_midst_of_its_answer_has_had_it(gateway: Gateway) -> None:
    with RawClient(gateway, 4096) as client:
        client.post(ask("solo", **simulate(m1="big:20000000")), bearer("late-leaver")).head()
        client.leave()
    settled(gateway, "late-leaver", 1)
    gateway.chat(ask("dead"), bearer("late-leaver"))  # what Envoy tells of the first end comes before the second's
    settled(gateway, "late-leaver", 2)
    assert ["answered", "failed"] == [line["outcome"] for line in records(gateway, "late-leaver")]


def test_a_client_that_leaves_its_stream_before_the_first_token_pays_its_prompt(
    gateway: Gateway, provider: Provider
) -> None:
    with RawClient(gateway) as client:
        body = ask("solo", "word " * 1_000, stream=True, **simulate(m1="slow-token:20"))
        client.post(body, bearer("stream-leaver"))
        provider.until(lambda requests: len(requests) == 1)
        client.leave()
    row = settled(gateway, "stream-leaver", 1)
    assert (0, 0, 1, "client_left") == (
        row["failed"],
        row["completion"],
        row["estimated"],
        records(gateway, "stream-leaver")[0]["outcome"],
    )
    assert 800 < row["prompt"] < 2_000


GIVEN_UP = {
    "answered by the third route": ("ok", "answered", ["trio/p1: status", "trio/p1: status", "trio/p2: not_json"]),
    "failed everywhere": (
        "status:502",
        "refused",
        ["trio/p1: status", "trio/p1: status", "trio/p2: not_json", "trio/p3: status"],
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("last", "outcome", "given_up"), [pytest.param(*it, id=name) for name, it in GIVEN_UP.items()])
def test_a_record_says_what_was_given_up(
    gateway: Gateway, last: str, outcome: str, given_up: list[str], *, stream: bool
) -> None:
    faults = simulate(m1="status:500", m2="not-json", m3=last)
    answer = gateway.chat(ask("trio", stream=stream, **faults), bearer("free"))
    assert "x-zurelay-past" not in answer.headers
    line = record_of(gateway, answer)
    expected = [name.replace("not_json", "no_token") if stream else name for name in given_up]
    assert (outcome, expected) == (line["outcome"], line["given_up"])


def test_a_stream_whose_last_attempts_reach_nobody_says_what_was_given_up(gateway: Gateway) -> None:
    answer = gateway.chat(ask("trio", stream=True, **simulate(m1="status:500", m2="reset", m3="reset")), bearer("free"))
    assert 503 == answer.status_code
    judged, unseen = ["trio/p1: status"] * 2, ["trio/p2: no_answer", "trio/p3: no_answer"]
    assert [*judged, *unseen] == record_of(gateway, answer)["given_up"]


# What the first route wastes, twice, and what that is of the tokens that the second tells: 1,000 and 100.
WASTED = {
    "an answer that breaks off, estimated": ("solo", {"m1": "cut:40+tokens:200"}, False, "refused", "0.00"),
    "an answer that breaks off before another model's": (
        "trio",
        {"m1": "cut:40+tokens:200"},
        False,
        "answered",
        "0.002",
    ),
    "a stream whose head told of its prompt": (
        "claude",
        {"m1": "role-then-error+input:5000+output:0"},
        True,
        "answered",
        "0.002",
    ),
}


@pytest.mark.parametrize(
    ("model", "faults", "stream", "outcome", "usd"), [pytest.param(*row, id=name) for name, row in WASTED.items()]
)
def test_what_given_up_attempts_used_is_ours(
    gateway: Gateway, model: str, faults: dict[str, str], stream: bool, outcome: str, usd: str
) -> None:
    answer = gateway.chat(ask(model, stream=stream, **simulate(**faults, m2="input:1000+output:100")), bearer("free"))
    line = record_of(gateway, answer)
    assert (outcome, usd) == (line["outcome"], line.get("usd", "0.00"))
    assert float(line["ours_usd"]) > 0.0001
    if stream:
        assert float(line["ours_usd"]) >= 2 * 5_000 / 10**6


@pytest.mark.parametrize("stream", [False, True])
def test_absurd_usage_is_an_estimate_that_is_marked(gateway: Gateway, *, stream: bool) -> None:
    fault = simulate(m1="input:900000000+output:800000000")
    line = record_of(gateway, gateway.chat(ask("solo", stream=stream, **fault), bearer("absurd")))
    assert line["usage"]["estimated"]
    assert 0 < line["usage"]["prompt"] < 200
    assert 0 < line["usage"]["completion"] < 200


def test_a_price_is_that_of_the_time_when_the_request_came(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("repriced")
    settings = catalog(provider.port) | {"auth": write_keys(directory, buyer={"limits": {"usd_per_day": 100}})}
    for model in settings["models"].values():
        model["price"] = PRICE
    running = Gateway(directory, settings).wait_ready()
    try:
        provider.reset()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            slow = simulate(m1="slow-head:6+input:1000+output:100")
            asked = [pool.submit(running.chat, ask("solo", stream=on, **slow), bearer("buyer")) for on in (False, True)]
            provider.until(lambda requests: len(requests) == 2)
            kept = {name: model for name, model in settings["models"].items() if name != "solo"}
            running.write(running.config | {"models": kept})
            until(lambda: "solo" not in httpx.get(running.url + "/v1/models", headers=bearer("buyer")).text)
            assert [False, False] == [one.done() for one in asked]
            assert [200, 200] == [one.result().status_code for one in asked]
        row = settled(running, "buyer", 2)
        assert ("0.004", 0) == (row["usd"], row["unpriced"])
    finally:
        assert 0 == running.stop()


def test_clients_that_leave_while_they_are_answered_count_once_each(gateway: Gateway) -> None:
    """They leave at about the time when the answer comes: one worker judges it, another hears that they left."""
    asked = 60

    def leave_at(delay: float) -> None:
        with RawClient(gateway) as client:
            client.post(ask("solo", **simulate(m1="slow-head:0.1")), bearer("racer"))
            time.sleep(delay)
            with contextlib.suppress(OSError):
                client.leave()

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(leave_at, [0.09 + number * 0.0006 for number in range(asked)]))
    row = settled(gateway, "racer", asked)
    gateway.chat(ask("dead"), bearer("racer"))
    row = settled(gateway, "racer", asked + 1)
    lines = records(gateway, "racer")
    assert (asked + 1, asked + 1) == (row["requests"], len({line["request_id"] for line in lines}))
    assert asked + 1 == len(lines)
    assert {"answered", "client_left"} >= {line["outcome"] for line in lines[:-1]}


def test_clients_that_leave_while_they_are_planned_leave_nothing_held(gateway: Gateway) -> None:
    """They leave about when the plan is on its way to Envoy, which then has nothing to tell of them."""

    def leave_at(delay: float) -> None:
        with RawClient(gateway) as client:
            client.post(ask("solo", **simulate(m1="slow-head:0.9")), bearer("planned"))
            time.sleep(delay)
            client.leave()

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(leave_at, [number * 0.0001 for number in range(100)]))

    def nothing_held() -> bool:
        answer = gateway.chat(ask("solo", max_tokens=1), bearer("planned"))
        left: int = sum(line["usage"]["prompt"] for line in records(gateway, "planned") if "usage" in line)
        remaining = int(answer.headers["x-ratelimit-remaining-tokens"])
        return remaining > 10_000_000 - left - 1_000

    until(nothing_held)


def test_ends_are_told_to_another_worker_where_one_has_died(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("mortal")
    settings = catalog(provider.port)
    settings["providers"]["p1"]["base_url"] = f"http://127.0.0.1:{free_port()}/v1"
    running = Gateway(directory, settings | {"auth": write_keys(directory, mortal={}), "workers": 2}).wait_ready()
    try:
        told = 0
        for _ in range(4):
            for _ in range(5):  # each of Envoy's threads has a stream to one of the workers
                assert 503 == running.chat(ask("solo"), bearer("mortal")).status_code
                told += 1
                settled(running, "mortal", told)
            kill_one(running)
        assert 20 == usage(running)["mortal"]["failed"] == len(records(running, "mortal"))
    finally:
        assert 0 == running.stop()


def kill_one(gateway: Gateway) -> None:
    """Kill a worker, and wait for the one that takes its place."""
    victim = gateway.workers[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(gateway.workers) == 2 and victim not in gateway.workers)


def test_a_client_that_can_be_answered_costs_no_entry(gateway: Gateway) -> None:
    """Only what nobody judged is sent: Envoy counts what it writes."""
    before = written(gateway)
    for _ in range(5):
        assert 200 == gateway.chat(ask("solo"), bearer("free")).status_code
        assert 503 == gateway.chat(ask("solo", **simulate(m1="status:500")), bearer("free")).status_code
        assert 400 == gateway.chat(ask("solo", **simulate(m1="status:400")), bearer("free")).status_code
    assert before == written(gateway)
    assert 503 == gateway.chat(ask("dead"), bearer("free")).status_code
    until(lambda: written(gateway) == before + 1)


def written(gateway: Gateway) -> int:
    transport = httpx.HTTPTransport(uds=str(pathlib.Path(gateway.run_dir) / "admin.sock"))
    with httpx.Client(transport=transport, base_url="http://envoy") as client:
        lines = client.get("/stats?filter=access_logs.grpc_access_log").text.splitlines()
    return int(next((line.partition(": ")[2] for line in lines if "logs_written" in line), "0"))
