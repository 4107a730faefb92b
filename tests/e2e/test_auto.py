"""zurelay-auto through the real Envoy: who is tried, in which order, and what the client is told (SPEC 6)."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from e2e.harness import Gateway, Provider, ask, simulate

EASY = "Hi! Thanks for your help, bye."
HARD = (
    "Prove that every finite group of order p^2, p prime, is abelian. Then classify all groups of order 2p up to "
    "isomorphism, with full proofs of each step, and discuss where the argument fails for order p^3."
)
LIMITS = {"small": 4_000, "big": 200_000}


def model(provider: str, upstream: str, window: int = 200_000, **more: Any) -> dict[str, Any]:
    """A model with one route."""
    return {"routes": [{"provider": provider, "model": upstream}], "context_window": window, **more}


def auto_catalog(port: int, last: str = "p") -> dict[str, Any]:
    """Two models a category; the upstream model has the same name. `last` is c2's provider, `a` for a Claude."""
    thinking = {"levels": ["none", "low", "high"], "default": "low"}
    base = f"http://127.0.0.1:{port}"
    return {
        "providers": {
            "p": {"base_url": f"{base}/p/v1", "format": "openai"},
            "a": {"base_url": f"{base}/a/v1", "format": "anthropic"},
        },
        "models": {
            "s1": model("p", "s1", 4_000),
            "s2": model("p", "s2", 8_000, inputs=["text", "image"], reasoning=thinking),
            "t1": model("p", "t1", inputs=["text", "audio"], reasoning=thinking),
            "t2": model("p", "t2", inputs=["text", "image"], features=["json_schema"]),
            "c1": model("p", "c1", inputs=["text", "image"], reasoning=thinking),
            "c2": model(last, "c2", inputs=["text", "image", "pdf"], max_output=8_000, reasoning=thinking),
        },
        "auto": {"simple": ["s1", "s2"], "standard": ["t1", "t2"], "complex": ["c1", "c2"]},
        "streaming": {"open_after": "1s", "keepalive": "1s"},
    }


@pytest.fixture(scope="module")
def running(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with Auto."""
    directory: pathlib.Path = tmp_path_factory.mktemp("auto")
    made = Gateway(directory, auto_catalog(provider.port)).wait_ready()
    yield made
    assert made.stop() == 0


@pytest.fixture
def auto(running: Gateway, provider: Provider) -> Gateway:
    provider.reset()
    return running


def tried(provider: Provider) -> list[str]:
    """The upstream models that were asked, in order."""
    return [json.loads(record.body)["model"] for record in provider.requests]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["zurelay-auto", "auto"])
@pytest.mark.parametrize(("text", "answering"), [(EASY, "s1"), (HARD, "c1")])
def test_the_first_model_of_the_category_answers(
    auto: Gateway, name: str, text: str, answering: str, stream: bool
) -> None:
    response = auto.chat(ask(name, text, stream=stream))
    assert response.headers["x-zurelay-model"] == answering
    assert response.headers["x-zurelay-routed-from"] == "zurelay-auto"
    assert f'"model":"{answering}"' in response.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("text", "order"),
    [
        (EASY, ["s1", "s2", "t1", "t2"]),
        (HARD, ["c1", "c2", "t1", "t2"]),
    ],
)
def test_refused_by_all_it_goes_on_through_the_categories(
    auto: Gateway, provider: Provider, text: str, order: list[str], stream: bool
) -> None:
    down = simulate(**dict.fromkeys(order, "status:429:retry-after=7"))
    response = auto.chat(ask("auto", text, stream=stream, **down))
    assert (response.status_code, response.json()["error"]["code"]) == (503, "model_unavailable")
    assert response.headers["retry-after"] == "7"
    assert response.headers["x-should-retry"] == "false"
    assert tried(provider) == order


def test_five_models_at_the_most_and_each_with_its_second_try(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    provider.reset()
    config = auto_catalog(provider.port)
    names = [f"m{number}" for number in range(7)]
    config["models"] = {name: model("p", name) for name in names}
    config["auto"] = {"simple": names[:3], "standard": names[3:5], "complex": names[5:]}
    directory: pathlib.Path = tmp_path_factory.mktemp("five")
    made = Gateway(directory, config).wait_ready()
    try:
        response = made.chat(ask("auto", EASY, **simulate(**dict.fromkeys(names, "status:500"))))
        assert response.headers["x-zurelay-attempts"] == "10"
        assert tried(provider) == [name for name in names[:5] for _ in range(2)]
    finally:
        assert made.stop() == 0


def test_routing_settings_do_not_change_it(auto: Gateway) -> None:
    down = simulate(s1="status:429")
    response = auto.chat(ask("auto", EASY, models=["c1"], **down), headers={"x-zurelay-fallback": "off"})
    assert response.headers["x-zurelay-model"] == "s2"


def image() -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="}}


def audio() -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}}


def with_parts(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A small request with media."""
    content = [{"type": "text", "text": EASY}, *parts]
    return {"model": "auto", "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.parametrize(
    ("body", "answering"),
    [
        (with_parts(image()), "s2"),
        (with_parts(audio()), "t1"),
        (ask("auto", EASY, reasoning_effort="high"), "s2"),
        (ask("auto", EASY, reasoning_effort="none"), "s1"),
        (ask("auto", EASY, max_tokens=6_000), "s2"),
        (ask("auto", EASY, max_tokens=100_000), "t1"),
    ],
)
def test_a_model_that_can_not_take_it_is_passed_over(auto: Gateway, body: dict[str, Any], answering: str) -> None:
    response = auto.chat(body)
    assert response.status_code == 200, response.text
    assert response.headers["x-zurelay-model"] == answering


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (with_parts(image(), audio()), "unsupported_content", ["audio, image", "separate"]),
        (ask("auto", EASY, max_tokens=300_000), "context_length_exceeded", ["200000", "300000", "less output"]),
        (ask("auto", EASY, reasoning_effort="huge"), "invalid_reasoning_effort", ["none, low, high"]),
    ],
)
def test_what_none_can_take_is_refused_with_the_facts(
    auto: Gateway, provider: Provider, body: dict[str, Any], code: str, said: list[str]
) -> None:
    response = auto.chat(body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert [part for part in said if part not in response.json()["error"]["message"]] == []
    assert provider.requests == []


def test_an_early_opened_stream_names_auto_but_no_model(auto: Gateway) -> None:
    slow = simulate(s1="slow-token:1.5")
    response = auto.chat(ask("auto", EASY, stream=True, **slow))
    assert response.text.startswith(": keep-alive\n\n")
    assert response.headers["x-zurelay-routed-from"] == "zurelay-auto"
    assert "x-zurelay-model" not in response.headers
    assert "x-zurelay-attempts" not in response.headers
    assert '"model":"s1"' in response.text


def test_a_client_may_ask_why(auto: Gateway) -> None:
    response = auto.chat(ask("auto", HARD), headers={"x-zurelay-explain": "1"})
    assert response.headers["x-zurelay-explain"].startswith("category=complex; score=0.")
    assert "x-zurelay-explain" not in auto.chat(ask("auto", HARD)).headers


def test_work_in_progress_stays_where_it_is(auto: Gateway) -> None:
    turns = [
        {"role": "user", "content": HARD},
        {"role": "assistant", "content": "First part of the proof: consider the centre of the group."},
        {"role": "user", "content": "ok, continue"},
    ]
    assert auto.chat({"model": "auto", "messages": turns}).headers["x-zurelay-model"] == "c1"


def test_the_sdks_see_the_model_that_answered(auto: Gateway) -> None:
    with openai.OpenAI(base_url=auto.url + "/v1", api_key="any", max_retries=0) as client:
        assert client.models.retrieve("auto").id == "zurelay-auto"
        answer = client.chat.completions.create(model="auto", messages=[{"role": "user", "content": EASY}])
        assert answer.model == "s1"


def test_on_messages_it_picks_among_those_of_the_format(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory: pathlib.Path = tmp_path_factory.mktemp("claude")
    made = Gateway(directory, auto_catalog(provider.port, last="a")).wait_ready()
    try:
        with anthropic.Anthropic(base_url=made.url, api_key="any", max_retries=0) as claude:
            message = claude.messages.create(
                model="zurelay-auto", max_tokens=50, messages=[{"role": "user", "content": EASY}]
            )
        assert message.model == "c2"
        assert made.chat(ask("auto", EASY)).headers["x-zurelay-model"] == "s1"
    finally:
        assert made.stop() == 0
