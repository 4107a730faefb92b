"""Envoy 1.40 crashes, the whole process, when too much of an answer waits in an upstream external processor.

Each test sends more than that through it; the fixture asserts that Envoy is the same process afterwards. They stay for
every change of Envoy's version, of the filters, and of the buffers' limits.
"""

from __future__ import annotations

import concurrent.futures
import os
import signal
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from e2e.harness import Gateway, Provider, ask, simulate
from e2e.raw import RawClient, Sse
from e2e.scripted import ScriptedProvider
from zurelay.simulate.server import Record

MB = 1_000_000
# What the answer is cut into: an ordinary token, and one that takes a while to be recognised as the first.
ANSWERS = {
    "1 MB": f"big:{MB}",
    "3 MB": f"big:{3 * MB}",
    "30 MB": f"big:{30 * MB}+size:16384",
    "3 MB in large tokens": f"big:{3 * MB}+size:300000",
    "a first token over what is held": f"big:{3 * MB}+size:1500000",
}
SLOW = 4096  # bytes of a slow client's receive buffer: nearly all waits in Envoy


def told(fault: str) -> str:
    """The text that the provider tells for a fault."""
    told = dict(part.split(":") for part in fault.split("+"))
    size = int(told.get("size", 1024))
    whole, rest = divmod(int(told["big"]), size)
    return ("x" * (size - 1) + " ") * whole + ("x" * (rest - 1) + " " if rest else "")


def said(body: bytes, *, stream: bool) -> str:
    """The text of an answer."""
    if not stream:
        text: str = msgspec.json.decode(body)["choices"][0]["message"]["content"]
        return text
    sse = Sse.read(body)
    assert sse.events[-1] == "[DONE]"
    return sse.joined()


def ended(records: Sequence[Record]) -> bool:
    """Whether the provider has got rid of its answer."""
    return bool(records) and records[0].ended


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ANSWERS.values(), ids=ANSWERS)
def test_a_large_answer_reaches_a_fast_client_whole(gateway: Gateway, fault: str, *, stream: bool) -> None:
    for _ in range(3 if "30" not in fault else 1):  # it was a matter of chance
        response = gateway.chat(ask("trio", stream=stream, **simulate(m1=fault)))
        assert ("1", told(fault)) == (response.headers["x-zurelay-attempts"], said(response.content, stream=stream))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ANSWERS.values(), ids=ANSWERS)
def test_a_large_answer_reaches_a_slow_client_whole(
    gateway: Gateway, provider: Provider, fault: str, *, stream: bool
) -> None:
    with RawClient(gateway, receive_buffer=SLOW) as client:
        client.post(ask("trio", stream=stream, **simulate(m1=fault)))
        provider.until(ended)
        client.head()
        pieces = client.pieces(at_once=512)
        first = b"".join(next(pieces)[1] for _ in range(200))
        body = first + client.read()
    assert told(fault) == said(body, stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ANSWERS.values(), ids=ANSWERS)
def test_a_client_that_never_reads_and_leaves_harms_no_one(
    gateway: Gateway, provider: Provider, fault: str, *, stream: bool
) -> None:
    with RawClient(gateway, receive_buffer=SLOW) as client:
        client.post(ask("trio", stream=stream, **simulate(m1=fault)))
        provider.until(ended)
        client.leave()
    assert gateway.chat(ask("solo")).status_code == 200


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_sidecar_that_stands_still_while_a_large_answer_comes_harms_no_one(
    gateway: Gateway, provider: Provider, *, stream: bool
) -> None:
    """All of the answer waits in the attempt's filter, as where a worker is busy with something else."""
    fault = f"big:{10 * MB}+size:16384"
    with RawClient(gateway) as client:
        client.post(ask("trio", stream=stream, **simulate(m1="slow-body:0.2+" + fault)))
        provider.until(bool)
        workers = gateway.workers
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        try:
            provider.until(ended)
        finally:
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
        body = client.head().read()
    assert told(fault) == said(body, stream=stream)


EARLY = (
    b'HTTP/1.1 %d Early\r\ncontent-type: application/json\r\ncontent-length: 29\r\n\r\n{"error":{"message":"early"}}'
)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, ScriptedProvider]]:
    """A gateway whose provider answers before it has read the body, as front ends do for 401, 413 and 429."""
    provider = ScriptedProvider()
    base = f"http://127.0.0.1:{provider.port}"
    config = {
        "providers": {"p": {"base_url": f"{base}/v1", "format": "openai"}},
        "models": {"m": {"routes": [{"provider": "p", "model": "m"}], "context_window": 10_000_000}},
    }
    running = Gateway(tmp_path_factory.mktemp("hasty"), config).wait_ready()
    yield running, provider
    assert running.stop() == 0
    provider.stop()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", [100, 40_000, 66_000, 300_000, 1_000_000, 8_000_000])
@pytest.mark.parametrize("status", [401, 413, 429, 500])
def test_an_answer_that_comes_before_the_body_has_gone(
    hasty: tuple[Gateway, ScriptedProvider], status: int, size: int, stream: bool
) -> None:
    gateway, provider = hasty
    provider.at_the_head = EARLY % status
    envoy = gateway.envoy
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(gateway.chat, ask("m", padding="x" * size, stream=stream)) for _ in range(10)]
        found = {one.result().status_code for one in asked}
    assert found <= {413, 503}
    assert gateway.envoy == envoy
