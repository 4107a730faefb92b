"""What a client doesn't read waits in Envoy, to which the sidecar writes without hearing back: it must have a bound.

The bound of one stream is `limits.response_body`, that of its time `timeouts.idle` (at most two minutes). The provider
sends far more than that, as fast as it can.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator

import httpx
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, simulate, until
from e2e.raw import RawClient, Sse

MIB = 1 << 20
BOUND = 4  # MiB of a stream
SENT = 128  # MiB
CLIENTS = 3
NEARLY_DEAF = 4096  # bytes of a client's receive buffer
ENDLESS = simulate(m1=f"big:{SENT * MIB}+size:16384")


@pytest.fixture
def bounded(provider: Provider, short_tmp: pathlib.Path) -> Iterator[Gateway]:
    provider.reset()
    limits = {"response_body": f"{BOUND}MiB"}
    running = Gateway(short_tmp, {**catalog(provider.port), "limits": limits}).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def impatient(provider: Provider, short_tmp: pathlib.Path) -> Iterator[Gateway]:
    provider.reset()
    running = Gateway(short_tmp, {**catalog(provider.port), "timeouts": {"idle": "1s"}}).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


def resident(pid: int) -> float:
    """A process's memory, in MiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def connections(gateway: Gateway) -> int:
    """How many clients Envoy has."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(gateway.run_dir / "admin.sock"))) as admin:
        found = admin.get("http://envoy/stats", params={"filter": "^http.ingress.downstream_cx_active$"}).text
    return int(found.partition(":")[2])


def test_what_clients_leave_unread_is_bounded_and_then_they_are_told(bounded: Gateway, provider: Provider) -> None:
    assert bounded.chat(ask("trio", stream=True)).status_code == 200
    before = {pid: resident(pid) for pid in (bounded.envoy, *bounded.workers)}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(bounded, receive_buffer=NEARLY_DEAF)) for _ in range(CLIENTS)]
        for client in clients:
            client.post(ask("trio", stream=True, **ENDLESS))
        provider.until(lambda records: len(records) == CLIENTS + 1 and all(record.ended for record in records))
        grown = {pid: resident(pid) - memory for pid, memory in before.items()}
        # Beside the bound: what had come from the provider before the relay was through with the rest, and is thrown
        # away. It depends on how fast the two are, but not on how much the provider would send.
        assert all(more < CLIENTS * SENT / 2 for more in grown.values()), grown
        for client in clients:
            sse = Sse.read(client.head().read())
            assert "bytes that one stream may hold" in sse.events[-1]
    assert bounded.chat(ask("trio", stream=True)).status_code == 200


def test_a_client_that_never_reads_is_cut_off(impatient: Gateway, provider: Provider) -> None:
    with RawClient(impatient, receive_buffer=NEARLY_DEAF) as client:
        client.post(ask("trio", stream=True, **simulate(m1=f"big:{16 * MIB}+size:16384")))
        provider.until(lambda records: bool(records) and records[0].ended)
        until(lambda: connections(impatient) == 0)
