"""Workers that die or freeze take with them what they held, and nothing else; a drain takes nothing."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import h11
import httpx
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, simulate, until
from e2e.raw import RawClient, Sse

STREAMS = 8


@pytest.fixture(scope="module")
def mortal_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway of two workers whose death no other test minds."""
    running = Gateway(tmp_path_factory.mktemp("mortal"), catalog(provider.port) | {"workers": 2}).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def mortal(mortal_gateway: Gateway, provider: Provider) -> Iterator[Gateway]:
    """It, with all its workers; Envoy outlives each test."""
    provider.reset()
    envoy = mortal_gateway.envoy
    until(lambda: serving(mortal_gateway) == 2)
    yield mortal_gateway
    assert mortal_gateway.envoy == envoy


def serving(gateway: Gateway) -> int:
    """How many workers serve."""
    lines = httpx.get(gateway.status_url + "/metrics").text.splitlines()
    return int(next(line for line in lines if line.startswith("zurelay_workers_alive ")).split()[1])


def busiest(gateway: Gateway) -> int:
    """The worker that holds most of what is under way, by its open files."""
    return max(gateway.workers, key=lambda pid: len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())))


def kill(gateway: Gateway) -> int:
    """Kill the busiest worker."""
    worker = busiest(gateway)
    os.kill(worker, signal.SIGKILL)
    return worker


def outcome(client: RawClient) -> str:
    """What became of a stream: whole, or cut so that the client notices. Nothing else may happen."""
    found = b""
    try:
        for _, piece in client.pieces():
            found += piece
    except (h11.RemoteProtocolError, ConnectionError):
        assert b"[DONE]" not in found
        return "broken"
    assert Sse.read(found).events[-1] == "[DONE]"
    return "whole"


def test_a_killed_worker_breaks_its_streams_and_the_next_requests_work(mortal: Gateway, provider: Provider) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(mortal)) for _ in range(STREAMS)]
        for client in clients:
            client.post(ask("solo", stream=True, **simulate(m1="gap:0.1+tokens:15")))
        for client in clients:
            client.head()
        killed = kill(mortal)
        answers = [mortal.chat(ask("solo", stream=number % 2 == 0)) for number in range(10)]
        outcomes = collections.Counter(outcome(client) for client in clients)
    assert [answer.status_code for answer in answers] == [200] * 10
    assert outcomes["broken"] >= 1
    # What the clients no longer wait for is not paid for either.
    until(lambda: sum(record.left is not None for record in provider.requests) == outcomes["broken"])
    until(lambda: serving(mortal) == 2)
    assert killed not in mortal.workers


def test_a_killed_worker_fails_what_had_no_answer_yet_as_an_error(mortal: Gateway, provider: Provider) -> None:
    def one(number: int) -> httpx.Response:
        return mortal.chat(ask("solo", f"{number}", stream=number % 2 == 0, **simulate(m1="slow-head:0.7")))

    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        waiting = [pool.submit(one, number) for number in range(STREAMS)]
        provider.until(lambda records: len(records) == STREAMS)
        kill(mortal)
        answers = [future.result() for future in waiting]
    assert {answer.status_code for answer in answers} <= {200, 503}
    for answer in answers:
        if answer.status_code == 200:
            assert answer.text.endswith(("data: [DONE]\n\n", "}}}"))
        else:
            assert answer.json()["error"]["code"] == "gateway_unavailable"
            assert answer.headers["retry-after"] == "1"
            assert "x-should-retry" not in answer.headers  # another try is served by another worker


@pytest.mark.parametrize("number", [0, 1])
def test_a_frozen_worker_fails_no_request(mortal: Gateway, number: int) -> None:
    frozen = mortal.workers[number]
    os.kill(frozen, signal.SIGSTOP)
    try:
        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            bodies = [ask("solo", stream=one % 2 == 0) for one in range(60)]
            statuses = collections.Counter(answer.status_code for answer in pool.map(mortal.chat, bodies))
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has been replaced
            os.kill(frozen, signal.SIGCONT)
    assert statuses == {200: 60}


def drained(gateway: Gateway) -> dict[str, Any]:
    """Drain it, and wait until that is done."""
    found: dict[str, Any] = httpx.get(gateway.status_url + "/drain", timeout=60).json()
    return found


def ready(gateway: Gateway) -> bool:
    """Whether it wants requests."""
    return httpx.get(gateway.status_url + "/readyz").status_code == 200


def test_a_drain_waits_for_what_is_under_way(provider: Provider, short_tmp: pathlib.Path) -> None:
    gateway = Gateway(short_tmp, catalog(provider.port) | {"workers": 2}).wait_ready()
    provider.reset()
    with RawClient(gateway) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        client.post(ask("solo", stream=True, **simulate(m1="gap:0.2+tokens:30"))).head()
        draining = pool.submit(drained, gateway)
        until(lambda: not ready(gateway))
        assert gateway.chat(ask("solo")).status_code == 200  # whoever hasn't heard of it yet is served
        assert Sse.read(client.read()).events[-1] == "[DONE]"
        assert draining.result() == {"drained": True}
    with RawClient(gateway) as late:
        assert late.post(ask("solo")).head().status == 503
    assert gateway.stop() == 0


def test_what_waits_at_a_provider_outlives_its_worker(mortal: Gateway, provider: Provider) -> None:
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        asked = [pool.submit(mortal.chat, ask("solo", **simulate(m1="slow-head:1.5"))) for _ in range(STREAMS)]
        provider.until(lambda requests: len(requests) == STREAMS)
        kill(mortal)
        assert [one.result().status_code for one in asked] == [200] * STREAMS


def test_a_stream_that_waits_for_its_first_token_outlives_the_worker_of_its_attempt(
    mortal: Gateway, provider: Provider
) -> None:
    """Of the streams whose relay lives, none is lost to the death of another worker."""
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        body = ask("solo", stream=True, **simulate(m1="slow-token:1.5"))
        asked = [pool.submit(lambda: outcome_of(mortal, body)) for _ in range(STREAMS)]
        provider.until(lambda requests: len(requests) == STREAMS)
        kill(mortal)
        assert {one.result() for one in asked} <= {"whole", "broken"}


def outcome_of(gateway: Gateway, body: dict[str, Any]) -> str:
    """What became of a stream that is asked for now; broken also when its connection ended without a head."""
    with RawClient(gateway) as client:
        client.post(body)
        try:
            client.head()
        except (h11.RemoteProtocolError, ConnectionError):
            return "broken"
        if client.status != 200:
            return f"status {client.status}"
        return outcome(client)
