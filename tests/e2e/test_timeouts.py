"""Providers that are too slow, and those that say when to come again (SPEC 5 and 10), through the real Envoy."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.harness import Gateway, Provider, ask, simulate, until

EFFORTS = {"levels": ["low", "high"]}
MODELS = 30  # models of two routes each: a test sets routes aside, and the next one needs others


@pytest.fixture(scope="module")
def slow_provider() -> Iterator[Provider]:
    """A provider whose requests no other test forgets."""
    running = Provider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def hasty(slow_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with little patience. One worker: each learns for itself which routes are set aside."""
    base = f"http://127.0.0.1:{slow_provider.port}"
    routes = [{"provider": f"p{number}", "model": f"m{number}"} for number in (1, 2, 3)]
    models = {f"pair{number}": {"routes": routes[:2], "context_window": 100_000} for number in range(MODELS)}
    settings = {
        "providers": {f"p{n}": {"base_url": f"{base}/p{n}/v1", "format": "openai"} for n in (1, 2, 3)},
        "models": {
            "trio": {"routes": routes, "context_window": 100_000, "reasoning": EFFORTS},
            "one": {"routes": routes[:1], "context_window": 100_000},
            **models,
        },
        "timeouts": {
            "first_token": "1s",
            "whole": "1s",
            "first_token_high": "30s",
            "whole_high": "30s",
            "total": "2500ms",
        },
        "workers": 1,
    }
    running = Gateway(tmp_path_factory.mktemp("hasty"), settings).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


def seen(provider: Provider, text: str) -> list[str]:
    """The upstream models that were asked with this text, in order."""
    bodies = [msgspec.json.decode(record.body) for record in provider.requests]
    return [body["model"] for body in bodies if body["messages"][0]["content"] == text]


# Faults that never end the attempt by themselves, by whether the request is streamed.
ALWAYS = ["hang", "stall", "slow-head:9", "slow-body:9", "status:500+slow-body:9", "status:400+slow-body:9"]
WHOLE, STREAMED = [*ALWAYS, "stall-after:2"], [*ALWAYS, "stall-after:0", "slow-token:9"]
FAULTS = [(fault, stream) for stream in (False, True) for fault in (STREAMED if stream else WHOLE)]
CASES = [
    *((fault + ",ok", "status:500", "status:500", stream) for fault, stream in FAULTS),
    *(("status:500", "status:500", "hang", stream) for stream in (False, True)),
    *(("hang", "hang", "hang", stream) for stream in (False, True)),
]
Case = tuple[str, str, str, bool]


def text_of(case: Case) -> str:
    """A text that no other case has."""
    return " ".join(map(str, case))


@pytest.fixture(scope="module")
def answers(hasty: Gateway) -> dict[Case, httpx.Response]:
    """What came of each case; they wait together."""

    def one(case: Case) -> httpx.Response:
        m1, m2, m3, stream = case
        return hasty.chat(ask("trio", text_of(case), stream=stream, **simulate(m1=m1, m2=m2, m3=m3)))

    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(one, CASES), strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if case[0].endswith(",ok")], ids=text_of)
def test_an_attempt_that_takes_too_long_moves_on(
    answers: dict[Case, httpx.Response], slow_provider: Provider, case: Case
) -> None:
    response = answers[case]
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (200, "2")
    assert seen(slow_provider, text_of(case)) == ["m1", "m1"]


@pytest.mark.parametrize("case", [case for case in CASES if case[2] == "hang"], ids=text_of)
def test_when_the_last_attempt_takes_too_long_the_request_fails(
    answers: dict[Case, httpx.Response], slow_provider: Provider, case: Case
) -> None:
    response = answers[case]
    all_hang = case[0] == "hang"
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "model_unavailable"
    assert (response.headers["retry-after"], response.headers["x-should-retry"]) == ("5", "false")
    # Three times 1 s is over `total`; the relay, which then gives up, knows of no attempts.
    assert seen(slow_provider, text_of(case)) == (["m1", "m1", "m2"] if all_hang else ["m1", "m1", "m2", "m3"])
    attempts = None if all_hang and case[3] else "3" if all_hang else "4"
    assert response.headers.get("x-zurelay-attempts") == attempts


def test_what_was_given_up_is_cancelled_at_the_provider(
    answers: dict[Case, httpx.Response], slow_provider: Provider
) -> None:
    assert answers
    hung = [record for record in slow_provider.requests if record.spec == "hang"]
    assert len(hung) == 2 + 2 + 2 * 3  # the cases above
    until(lambda: all(record.left is not None for record in hung), 5)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("effort", "attempts"), [("low", "2"), ("high", "1")])
def test_high_effort_has_more_patience(hasty: Gateway, effort: str, attempts: str, *, stream: bool) -> None:
    body = ask("trio", f"{effort} {stream}", reasoning_effort=effort, stream=stream, **simulate(m1="slow-head:1.5,ok"))
    response = hasty.chat(body)
    assert (response.status_code, response.headers["x-zurelay-attempts"]) == (200, attempts)


MODEL = iter(range(MODELS))


@pytest.fixture
def pair() -> str:
    """A model of two routes that no test has used."""
    return f"pair{next(MODEL)}"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("faults", "wait"),
    [
        ({"m1": "status:500", "m2": "status:500"}, "5"),
        ({"m1": "status:429:retry-after=30", "m2": "status:503:retry-after=9"}, "9"),
        ({"m1": "status:500:retry-after=7", "m2": "status:500"}, "7"),
        ({"m1": "status:500", "m2": "status:429:retry-after=600"}, "60"),
        ({"m1": "status:500", "m2": "status:429:retry-after=0"}, "1"),
        ({"m1": "status:429:retry-after=8", "m2": "reset"}, "8"),  # Envoy itself answers
        ({"m1": "reset", "m2": "reset"}, "5"),
    ],
)
def test_the_client_is_told_when_to_ask_again(
    hasty: Gateway, pair: str, faults: dict[str, str], wait: str, *, stream: bool
) -> None:
    response = hasty.chat(ask(pair, pair, stream=stream, **simulate(**faults)))
    assert response.status_code == 503
    assert (response.headers["retry-after"], response.headers["x-should-retry"]) == (wait, "false")


def test_a_date_to_ask_again_is_told_in_seconds(hasty: Gateway, pair: str) -> None:
    faults = {"m1": "status:429:retry-after-date=40", "m2": "status:500"}
    response = hasty.chat(ask(pair, pair, **simulate(**faults)))
    assert 30 <= int(response.headers["retry-after"]) <= 40


def models_asked(gateway: Gateway, provider: Provider, model: str, faults: dict[str, str], **more: Any) -> list[str]:
    """Send one request and say which upstream models it went to."""
    text = f"{model} {time.monotonic_ns()}"
    gateway.chat(ask(model, text, **more, **simulate(**faults)))
    return seen(provider, text)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "fault", ["status:429:retry-after=60", "status:503:retry-after=60", "status:429:retry-after-date=60"]
)
def test_a_route_that_said_when_is_left_out_until_then(
    hasty: Gateway, slow_provider: Provider, pair: str, fault: str, *, stream: bool
) -> None:
    models_asked(hasty, slow_provider, pair, {"m1": fault}, stream=stream)
    assert models_asked(hasty, slow_provider, pair, {}, stream=stream) == ["m2"]
    assert models_asked(hasty, slow_provider, "trio", {}, stream=stream) == ["m1"]  # its own route to the same model


def test_a_route_set_aside_comes_back_when_it_said(hasty: Gateway, slow_provider: Provider, pair: str) -> None:
    models_asked(hasty, slow_provider, pair, {"m1": "status:429:retry-after=1"})
    assert models_asked(hasty, slow_provider, pair, {}) == ["m2"]
    until(lambda: models_asked(hasty, slow_provider, pair, {}) == ["m1"], 5)


def test_a_route_is_not_left_out_where_it_is_the_only_one(hasty: Gateway, slow_provider: Provider, pair: str) -> None:
    faults = {"m1": "status:429:retry-after=60", "m2": "status:503:retry-after=60"}
    models_asked(hasty, slow_provider, "one", faults)
    assert models_asked(hasty, slow_provider, "one", {}) == ["m1"]
    models_asked(hasty, slow_provider, pair, faults)
    assert models_asked(hasty, slow_provider, pair, {}) == ["m1"]


def test_other_failures_set_no_route_aside(hasty: Gateway, slow_provider: Provider, pair: str) -> None:
    for fault in ("status:500:retry-after=60", "status:429", "reset"):
        models_asked(hasty, slow_provider, pair, {"m1": fault})
        assert models_asked(hasty, slow_provider, pair, {}) == ["m1"]
