"""What can go wrong on /v1/messages, in Anthropic's shape; its SDK's list of models; counts (SPEC 2, 5, 10)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from e2e.claudes import HELLO, claude_catalog
from e2e.harness import Gateway, Provider, simulate

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
KEY = "zk_messages"


@pytest.fixture(scope="module")
def small(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that wants a key, takes small bodies and waits longer for those who ask for effort."""
    directory: pathlib.Path = tmp_path_factory.mktemp("small")
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    (directory / "keys.yaml").write_text(f'keys: [{{name: one, digest: "sha256:{digest}", models: ["c*", "d*"]}}]')
    catalog = claude_catalog(provider.port) | {
        "auth": {"require": "key", "keys": "keys.yaml"},
        "limits": {"request_body": "64KiB"},
        "timeouts": {"first_token": "400ms", "first_token_high": "5s", "whole": "400ms", "whole_high": "5s"},
        "streaming": {"messages_keepalive": "20s", "open_after": "20s"},
        "workers": 1,
    }
    running = Gateway(directory, catalog).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


def body(**more: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 50, "messages": HELLO, **more}


def asked(gateway: Gateway, method: str = "POST", path: str = PATH, **more: Any) -> httpx.Response:
    headers = {"x-api-key": KEY, **more.pop("headers", {})}
    return httpx.request(method, gateway.url + path, headers=headers, timeout=30, **more)


ERRORS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "no JSON": ("POST", PATH, {"content": b"{"}, 400, "invalid_request_error"),
    "no object": ("POST", PATH, {"content": b"[]"}, 400, "invalid_request_error"),
    "no messages": ("POST", PATH, {"json": {"model": "claude"}}, 400, "invalid_request_error"),
    "an effort that is none": (
        "POST",
        PATH,
        {"json": body(output_config={"effort": "Low"})},
        400,
        "invalid_request_error",
    ),
    "a config that is no object": (
        "POST",
        PATH,
        {"json": body(output_config=7, thinking={"type": "disabled"})},
        400,
        "invalid_request_error",
    ),
    "no key": ("POST", PATH, {"headers": {"x-api-key": ""}}, 401, "authentication_error"),
    "a key that isn't": ("POST", COUNT, {"headers": {"x-api-key": "zk_no"}}, 401, "authentication_error"),
    "a model that the key may not use": ("POST", PATH, {"json": body(model="spare")}, 403, "permission_error"),
    "a model that isn't": ("POST", PATH, {"json": body(model="cloud")}, 404, "not_found_error"),
    "a path that isn't": ("POST", PATH + "/batches", {}, 404, "not_found_error"),
    "another method": ("GET", PATH, {}, 405, "not_found_error"),
    "another method of the count": ("DELETE", COUNT, {}, 405, "not_found_error"),
    "too much": ("POST", PATH, {"json": body(x="a" * 70_000)}, 413, "request_too_large"),
    "a coding that we can't undo": (
        "POST",
        PATH,
        {"content": b"x", "headers": {"content-encoding": "lzw"}},
        415,
        "invalid_request_error",
    ),
}


@pytest.mark.parametrize(("method", "path", "more", "status", "kind"), ERRORS.values(), ids=ERRORS)
def test_every_error_has_anthropics_shape(
    small: Gateway,
    provider: Provider,
    method: str,
    path: str,
    more: dict[str, Any],
    status: int,
    kind: str,
) -> None:
    provider.reset()
    answer = asked(small, method, path, **more)
    found = answer.json()
    assert (status, "error", kind) == (answer.status_code, found["type"], found["error"]["type"])
    assert found.keys() == {"type", "error", "request_id"}
    assert found["error"].keys() == {"type", "message"}
    assert answer.headers["request-id"] == answer.headers["x-zurelay-request-id"] == found["request_id"]
    assert ("allow" in answer.headers) is (status == 405)
    assert provider.requests == []


STATUSES = {
    400: anthropic.BadRequestError,
    402: anthropic.APIStatusError,
    413: anthropic.APIStatusError,
    422: anthropic.UnprocessableEntityError,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", STATUSES)
def test_a_providers_refusal_of_what_the_client_sent_is_passed_on(
    claude: anthropic.Anthropic, provider: Provider, status: int, stream: bool
) -> None:
    with pytest.raises(STATUSES[status], match="simulated") as caught:
        claude.messages.create(**body(stream=stream, extra_body=simulate(c1=f"status:{status}")))
    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "error"
    assert caught.value.request_id == caught.value.body["request_id"]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_told_as_the_provider_told_it(claude: anthropic.Anthropic, stream: bool) -> None:
    with pytest.raises(anthropic.BadRequestError, match="too long"):
        claude.messages.create(**body(stream=stream, extra_body=simulate(c1="context-length", c2="context-length")))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_retries_gets_told_when(claude: anthropic.Anthropic, stream: bool) -> None:
    faults = simulate(s1="status:429:retry-after=7")
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude.messages.create(**body(model="spare", stream=stream, extra_body=faults))
    assert (503, "7", "false") == (
        caught.value.status_code,
        caught.value.response.headers["retry-after"],
        caught.value.response.headers["x-should-retry"],
    )


def test_a_sidecar_that_is_away_is_told_in_the_formats_shape(small: Gateway) -> None:
    (worker,) = small.workers
    os.kill(worker, signal.SIGSTOP)
    try:
        answer = asked(small, json=body())
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has been replaced
            os.kill(worker, signal.SIGCONT)
    found = answer.json()
    assert (503, "error", "api_error") == (answer.status_code, found["type"], found["error"]["type"])
    assert answer.headers["retry-after"]


# Time: by the effort asked.


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 503),
        ({"output_config": {"effort": "medium"}}, 503),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}, 503),
        ({"output_config": {"effort": "high"}}, 200),
        ({"output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}}, 200),
    ],
)
@pytest.mark.parametrize("model", ["claude", "dual"])
def test_the_effort_asked_decides_how_long_an_attempt_may_take(
    small: Gateway, provider: Provider, model: str, more: dict[str, Any], status: int, stream: bool
) -> None:
    provider.reset()
    slow = "slow-token:1" if stream else "slow-head:1"
    answer = asked(small, json={**body(model=model, stream=stream, **more), **simulate(c1=slow, c2=slow, d1=slow)})
    assert status == answer.status_code


# Models and counts.


def test_anthropics_sdk_lists_the_models(small: Gateway) -> None:
    with anthropic.Anthropic(base_url=small.url, api_key=KEY, max_retries=0) as client:
        page = client.models.list(limit=1000)
        found = client.models.retrieve("opus")
        assert [model.id for model in page] == ["claude", "dual", "chatty"]
        assert {model.type for model in page} == {"model"}
        assert (found.id, found.type, found.display_name) == ("claude", "model", "claude")
        assert found.created_at.tzinfo is not None
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("spare")


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [("ok", 1), ("status:529", 2), ("status:408", 2), ("reset", 2), ("close", 2)],
)
def test_a_count_is_asked_for_twice(mixed: Gateway, provider: Provider, fault: str, attempts: int) -> None:
    provider.reset()
    control = {"simulate": {"key": fault, "faults": {"c1": [fault, "ok"]}}}
    answer = httpx.post(mixed.url + COUNT, json={"model": "opus", "messages": HELLO, **control}, timeout=30)
    assert (200, ["input_tokens"]) == (answer.status_code, list(answer.json()))
    assert [f"/a1{COUNT}"] * attempts == [one.path for one in provider.requests]


@pytest.mark.parametrize(("fault", "status"), [("status:529", 503), ("status:429", 503), ("status:400", 400)])
def test_a_count_that_fails_falls_back_to_no_other_model(
    mixed: Gateway, provider: Provider, fault: str, status: int
) -> None:
    provider.reset()
    more = {"models": ["spare", "dual"], **simulate(c1=fault)}
    answer = httpx.post(mixed.url + COUNT, json={"model": "claude", "messages": HELLO, **more}, timeout=30)
    assert (status, "error") == (answer.status_code, answer.json()["type"])
    assert {f"/a1{COUNT}"} == {one.path for one in provider.requests}
    assert "models" not in json.loads(provider.requests[0].body)


def test_a_count_is_no_stream_whatever_is_asked(mixed: Gateway) -> None:
    answer = httpx.post(mixed.url + COUNT, json={"model": "claude", "messages": HELLO, "stream": True}, timeout=30)
    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])


def test_effort_is_clamped_in_a_count_too(mixed: Gateway, provider: Provider) -> None:
    provider.reset()
    more = {"thinking": {"type": "disabled"}, "system": "Be kind."}
    assert httpx.post(mixed.url + COUNT, json={"model": "claude", "messages": HELLO, **more}).status_code == 200
    sent = json.loads(provider.requests[-1].body)
    assert ({"effort": "low"}, "Be kind.", False) == (sent["output_config"], sent["system"], "thinking" in sent)
