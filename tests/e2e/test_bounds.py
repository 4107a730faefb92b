"""What is held in memory is bounded (SPEC 3): one body, and all bodies in flight together."""

from __future__ import annotations

import concurrent.futures
import pathlib
from collections.abc import Iterator

import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, simulate

BODY = "a" * (6 << 20)


@pytest.fixture(scope="module")
def tight(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that takes bodies of 8 MiB, and 10 MiB of them at once."""
    directory: pathlib.Path = tmp_path_factory.mktemp("tight")
    bounds = {"limits": {"request_body": "8MiB", "bodies_in_flight": "10MiB"}, "workers": 1}
    running = Gateway(directory, catalog(provider.port) | bounds).wait_ready()
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize(("stream", "fault"), [(False, "slow-head:2"), (True, "slow-head:2")])
def test_bodies_beyond_the_bound_are_refused_until_others_are_done(
    tight: Gateway, provider: Provider, stream: bool, fault: str
) -> None:
    provider.reset()
    slow = ask("solo", padding=BODY, stream=stream, **simulate(m1=fault))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(tight.chat, slow)
        provider.until(lambda requests: len(requests) == 1)
        refused = tight.chat(ask("solo", padding=BODY, stream=stream))
        small = tight.chat(ask("solo", stream=stream))
        assert first.result().status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "gateway_unavailable")
    assert refused.headers["retry-after"] == "1"
    assert small.status_code == 200
    assert tight.chat(ask("solo", padding=BODY, stream=stream)).status_code == 200


def test_a_body_over_the_setting_is_refused(tight: Gateway) -> None:
    refused = tight.chat(ask("solo", padding="a" * (8 << 20)))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")
