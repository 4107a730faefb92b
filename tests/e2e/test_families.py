"""A listener on `::` serves both families, and knows peers of IPv4 by their own addresses."""

from __future__ import annotations

import httpx
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, free_port


def test_both_families_are_served_and_trusted_by_their_addresses(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port, status = free_port(), free_port()
    config = {
        "listen": {"port": port, "host": "::"},
        "status": {"port": status, "host": "::"},
        "auth": {"require": "workload"},
        "identity": {"mode": "forwarded", "trusted": ["127.0.0.0/8"], "trust_domain": "mesh.example"},
        **catalog(provider.port),
    }
    gateway = Gateway(tmp_path_factory.mktemp("families"), config).wait_ready()
    try:
        said = {"x-forwarded-client-cert": "URI=spiffe://mesh.example/ns/shop/sa/cart"}
        answers = {
            host: httpx.post(f"http://{host}:{port}/v1/chat/completions", json=ask("solo"), headers=said, timeout=30)
            for host in ("127.0.0.1", "[::1]")
        }
        assert {"127.0.0.1": 200, "[::1]": 401} == {host: answer.status_code for host, answer in answers.items()}
        for host in answers:
            assert 200 == httpx.get(f"http://{host}:{status}/readyz", timeout=30).status_code
    finally:
        gateway.stop()
