"""Providers that can't be reached, or that don't know us: each is a failed attempt and no more (SPEC 5)."""

from __future__ import annotations

import asyncio
import collections
import pathlib
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import trustme

from e2e.harness import Gateway, Provider, ask, free_port, simulate, until

OTHER_MODELS = [f"n{number}" for number in range(1, 8)]
SECRET = "sk-of-the-provider"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whoever signs the providers' certificates."""
    return trustme.CA()


def secure(authority: trustme.CA, *names: str) -> Iterator[Provider]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    running = Provider(ssl_context=context)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def honest(authority: trustme.CA) -> Iterator[Provider]:
    """A provider with the right certificate."""
    yield from secure(authority, "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def other_name(authority: trustme.CA) -> Iterator[Provider]:
    """A provider with a certificate of another name, from an authority that is trusted."""
    yield from secure(authority, "elsewhere.example", "127.0.0.2")


@pytest.fixture(scope="module")
def strict() -> Iterator[Provider]:
    """A provider that wants its credential."""
    running = Provider(credential=SECRET)
    yield running
    running.stop()


def settings(ports: dict[str, int], directory: pathlib.Path) -> dict[str, Any]:
    """Each bad provider alone, and in front of a good one."""
    bad, right = ports["other_name"], ports["honest"]
    providers = {
        "good": {"base_url": f"http://127.0.0.1:{ports['good']}/v1", "format": "openai"},
        "refuses": {"base_url": f"http://127.0.0.1:{ports['nobody']}/v1", "format": "openai"},
        "no-name": {"base_url": "https://provider.invalid/v1", "format": "openai"},
        "no-name-plain": {"base_url": "http://provider.invalid:8000/v1", "format": "openai"},
        "other-name": {"base_url": f"https://localhost:{bad}/v1", "format": "openai", "ca": "ca.pem"},
        "other-address": {
            "base_url": f"https://127.0.0.1:{bad}/v1",
            "format": "openai",
            "ca": "ca.pem",
        },
        "unknown-authority": {"base_url": f"https://localhost:{right}/v1", "format": "openai"},
        "speaks-plain": {"base_url": f"https://localhost:{ports['good']}/v1", "format": "openai", "ca": "ca.pem"},
        "speaks-tls": {"base_url": f"http://127.0.0.1:{right}/v1", "format": "openai"},
        "by-name": {"base_url": f"https://localhost:{right}/v1", "format": "openai", "ca": "ca.pem"},
        "by-address": {"base_url": f"https://127.0.0.1:{right}/v1", "format": "openai", "ca": "ca.pem"},
        "knows-us": {
            "base_url": f"http://127.0.0.1:{ports['strict']}/v1",
            "format": "openai",
            "api_key": {"file": "secret"},
        },
        "knows-us-not": {
            "base_url": f"http://127.0.0.1:{ports['strict']}/v1",
            "format": "openai",
            "api_key": {"file": "empty"},
        },
    }
    (directory / "secret").write_text(SECRET + "\n")
    (directory / "empty").write_text("soon empty")
    models = {}
    for name in providers:
        route = {"provider": name, "model": "m1"}
        models[name] = {"routes": [route], "context_window": 1000}
        models[f"{name}-then-good"] = {
            "routes": [route, {"provider": "good", "model": "m2"}],
            "context_window": 1000,
        }
    for name in OTHER_MODELS:
        models[name] = {"routes": [{"provider": "good", "model": name}], "context_window": 1000}
    return {"providers": providers, "models": models, "workers": 2}


@pytest.fixture(scope="module")
def wide(
    provider: Provider,
    honest: Provider,
    other_name: Provider,
    strict: Provider,
    authority: trustme.CA,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gateway]:
    """A gateway with providers of every bad kind."""
    directory = tmp_path_factory.mktemp("wide")
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    ports = {
        "good": provider.port,
        "nobody": free_port(),
        "honest": honest.port,
        "other_name": other_name.port,
        "strict": strict.port,
    }
    running = Gateway(directory, settings(ports, directory)).wait_ready()
    (directory / "empty").write_text("")  # a secret that goes missing while we run
    yield running
    assert running.stop() == 0, "".join(running.log)


UNREACHABLE = [
    *("refuses", "no-name", "no-name-plain", "other-name", "other-address", "unknown-authority"),
    *("speaks-plain", "speaks-tls"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_provider_that_cant_be_reached_moves_on(
    wide: Gateway, provider: Provider, name: str, *, stream: bool
) -> None:
    provider.reset()
    response = wide.chat(ask(f"{name}-then-good", stream=stream))
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (200, "3")
    assert [msgspec.json.decode(record.body)["model"] for record in provider.requests] == ["m2"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_provider_that_cant_be_reached_is_no_secret_to_tell(wide: Gateway, name: str, *, stream: bool) -> None:
    response = wide.chat(ask(name, stream=stream))
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "model_unavailable"
    assert (response.headers["retry-after"], response.headers["x-should-retry"]) == ("5", "false")
    assert response.headers["x-zurelay-attempts"] == "2"
    assert response.headers["x-zurelay-request-id"].startswith("req_")
    told = response.text.lower()
    assert [word for word in ("127.0.0.1", "localhost", "invalid", "tls", "ssl", "certificate") if word in told] == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ["by-name", "by-address"])
def test_a_provider_with_the_right_certificate_answers(wide: Gateway, name: str, *, stream: bool) -> None:
    response = wide.chat(ask(name, stream=stream))
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (200, "1")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_provider_that_doesnt_know_us_moves_on(wide: Gateway, strict: Provider, *, stream: bool) -> None:
    assert wide.chat(ask("knows-us", stream=stream)).headers["x-zurelay-attempts"] == "1"
    until(lambda: wide.chat(ask("knows-us-not", stream=stream)).status_code == 503)
    strict.reset()
    response = wide.chat(ask("knows-us-not-then-good", stream=stream))
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (200, "2")
    assert [record.status for record in strict.requests] == [401]


def test_a_secret_that_is_missing_stops_the_start(short_tmp: pathlib.Path) -> None:
    provider = {"base_url": "http://127.0.0.1:1/v1", "format": "openai"}
    config = {
        "providers": {
            "one": provider | {"api_key": {"env": "ZURELAY_TEST_ABSENT"}},
            "two": provider | {"api_key": {"file": "nowhere"}},
        },
        "models": {"m": {"routes": [{"provider": "one", "model": "m"}], "context_window": 1000}},
    }
    gateway = Gateway(short_tmp, config)
    assert gateway.process.wait(20) == 1
    gateway.stop()
    said = "".join(gateway.log)
    assert "ZURELAY_TEST_ABSENT" in said
    assert "nowhere" in said


async def all_at_once(gateway: Gateway, body: dict[str, Any], count: int) -> list[httpx.Response]:
    """Send the same request many times, together."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=gateway.url, limits=limits, timeout=60) as client:
        return await asyncio.gather(*(client.post("/v1/chat/completions", json=body) for _ in range(count)))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["refuses-then-good", "good-then-good"])
async def test_with_the_first_route_down_the_second_answers_all_of_200(
    wide: Gateway, provider: Provider, model: str, *, stream: bool
) -> None:
    provider.reset()
    responses = await all_at_once(wide, ask(model, stream=stream, **simulate(m1="status:500")), 200)
    assert collections.Counter(one.status_code for one in responses) == {200: 200}
    assert {one.headers["x-zurelay-attempts"] for one in responses} == {"3"}
    counted = collections.Counter(msgspec.json.decode(record.body)["model"] for record in provider.requests)
    assert counted == ({"m2": 200} if model.startswith("refuses") else {"m1": 400, "m2": 200})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_plan_has_at_most_12_attempts(wide: Gateway, provider: Provider, *, stream: bool) -> None:
    provider.reset()
    faults = dict.fromkeys(OTHER_MODELS, "status:500")
    response = wide.chat(ask("n1", models=OTHER_MODELS[1:], stream=stream, **simulate(**faults)))
    assert response.status_code == 503
    assert response.headers["x-zurelay-attempts"] == "12"
    asked = [msgspec.json.decode(record.body)["model"] for record in provider.requests]
    assert asked == [name for name in OTHER_MODELS[:6] for _ in range(2)]
