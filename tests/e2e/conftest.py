"""One gateway for most end-to-end tests; each test process has its own."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from e2e.claudes import claude_catalog
from e2e.harness import Gateway, Provider

EFFORTS = ["low", "medium", "high"]


def catalog(port: int) -> dict[str, Any]:
    """Three providers of one simulator; upstream models m1, m2, m3 and f1 fail by name."""
    base = f"http://127.0.0.1:{port}"
    return {
        "providers": {
            "p1": {"base_url": f"{base}/p1/v1", "format": "openai"},
            "p2": {"base_url": f"{base}/p2/v1", "format": "openai"},
            "p3": {"base_url": f"{base}/p3/v1", "format": "openai"},
        },
        "models": {
            "solo": {"routes": [{"provider": "p1", "model": "m1"}], "context_window": 100_000},
            "trio": {
                "aliases": ["three"],
                "routes": [
                    {"provider": "p1", "model": "m1"},
                    {"provider": "p2", "model": "m2"},
                    {"provider": "p3", "model": "m3"},
                ],
                "context_window": 100_000,
                "reasoning": {"levels": EFFORTS, "default": "medium"},
            },
            "guarded": {
                "routes": [{"provider": "p1", "model": "m1"}],
                "context_window": 100_000,
                "reasoning": {"levels": ["none", "minimal", "high"]},
                "fallbacks": ["spare"],
            },
            "spare": {
                "routes": [{"provider": "p2", "model": "f1"}],
                "context_window": 1_000_000,
                "reasoning": {"levels": EFFORTS},
            },
        },
    }


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """The simulated provider."""
    running = Provider()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def shared_gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose streams open early after 2 s and are kept alive each second."""
    settings = catalog(provider.port) | {
        "streaming": {"open_after": "2s", "keepalive": "1s"},
        "workers": 2,
    }
    running = Gateway(tmp_path_factory.mktemp("gateway"), settings).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def gateway(shared_gateway: Gateway, provider: Provider) -> Iterator[Gateway]:
    """The shared gateway; Envoy and the workers are the same processes before and after each test."""
    provider.reset()
    before = (shared_gateway.envoy, shared_gateway.workers)
    yield shared_gateway
    assert (shared_gateway.envoy, shared_gateway.workers) == before


@pytest.fixture(scope="session")
def mixed(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with models of both formats, whose streams open early after 1 s of silence."""
    running = Gateway(tmp_path_factory.mktemp("mixed"), claude_catalog(provider.port)).wait_ready()
    before = (running.envoy, running.workers)
    yield running
    assert (running.envoy, running.workers) == before
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture
def claude(mixed: Gateway, provider: Provider) -> Iterator[anthropic.Anthropic]:
    provider.reset()
    with anthropic.Anthropic(base_url=mixed.url, api_key="any", max_retries=0, timeout=30) as made:
        yield made


@pytest.fixture
def chat(mixed: Gateway, provider: Provider) -> Iterator[openai.OpenAI]:
    provider.reset()
    with openai.OpenAI(base_url=mixed.url + "/v1", api_key="any", max_retries=0, timeout=30) as made:
        yield made


@pytest.fixture
def short_tmp(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory whose path leaves room for a Unix socket's name."""
    return tmp_path_factory.mktemp("g")
