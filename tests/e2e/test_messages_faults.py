"""Every fault of SPEC 5 and 8 where one side at least speaks Messages: the rules are chat's (see test_faults)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.harness import Gateway, Provider
from e2e.raw import Sse
from e2e.test_faults import FAULTS, PLACES, PROVIDERS, Outcome, seen, told, walk

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
PAIRS = {
    "messages": (MESSAGES, "claudes"),
    "messages from chat": (MESSAGES, "gpts"),
    "chat from messages": (CHAT, "claudes"),
}


@pytest.fixture(scope="module")
def trios(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Three routes of either format, to upstream models m1, m2 and m3."""
    base = f"http://127.0.0.1:{provider.port}"
    routes = [("1", "m1"), ("2", "m2"), ("3", "m3")]
    catalog = {
        "providers": {
            **{f"a{one}": {"base_url": f"{base}/a{one}/v1", "format": "anthropic"} for one, _ in routes},
            **{f"p{one}": {"base_url": f"{base}/p{one}/v1", "format": "openai"} for one, _ in routes},
        },
        "models": {
            name: {
                "routes": [{"provider": f"{letter}{one}", "model": model} for one, model in routes],
                "context_window": 100_000,
                "messages": True,
            }
            for name, letter in (("claudes", "a"), ("gpts", "p"))
        },
    }
    running = Gateway(tmp_path_factory.mktemp("trios"), catalog).wait_ready()
    envoy = running.envoy
    yield running
    assert running.envoy == envoy
    assert running.stop() == 0, "".join(running.log)


def said(response: httpx.Response, path: str, *, stream: bool) -> str:
    """All that the answer says."""
    if path == CHAT:
        if stream:
            return Sse.read(response.content).joined()
        content: str = response.json()["choices"][0]["message"]["content"]
        return content
    if not stream:
        return "".join(block["text"] for block in response.json()["content"])
    return "".join(event.get("delta", {}).get("text", "") for event in Sse.read(response.content).chunks)


def error(body: dict[str, Any], response: httpx.Response, path: str) -> dict[str, Any]:
    """An error's members, in the one shape that it may have."""
    if path == CHAT:
        assert (["error"], ["code", "message", "param", "type"]) == (list(body), sorted(body["error"]))
    else:
        assert (["error", "request_id", "type"], ["message", "type"]) == (sorted(body), sorted(body["error"]))
        assert body["request_id"] == response.headers["request-id"]
    found: dict[str, Any] = body["error"]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("place", ["first", "last", "everywhere"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("path", "model"), PAIRS.values(), ids=PAIRS)
def test_a_fault_has_the_outcome_of_the_rules(
    trios: Gateway, provider: Provider, path: str, model: str, fault: str, place: str, *, stream: bool
) -> None:
    provider.reset()
    specs = {upstream: spec.format(fault) for upstream, spec in PLACES[place].items()}
    outcome = {"ok": Outcome.ANSWERS, "status:500": Outcome.AGAIN, fault: FAULTS[fault][stream]}
    expected, end = walk({one: [outcome[each] for each in spec.split(",")] for one, spec in specs.items()})
    text = f"Answer number one to {fault} at the {place} place."
    body = {"model": model, "max_tokens": 500, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}

    response = httpx.post(trios.url + path, content=msgspec.json.encode(body | told(text, **specs)), timeout=60)

    assert seen(provider) == expected
    assert response.headers["x-zurelay-attempts"] == str(len(expected))
    assert not (PROVIDERS - {"request-id"}) & set(response.headers)
    last = "[DONE]" if path == CHAT else '{"type":"message_stop"}'
    if end is Outcome.ANSWERS:
        assert (200, model, text) == (
            response.status_code,
            response.headers["x-zurelay-model"],
            said(response, path, stream=stream),
        )
        assert '"error"' not in response.text
        if stream:
            events = Sse.read(response.content).events
            assert last == events[-1]
            assert (path == MESSAGES) == (sum('"message_start"' in event for event in events) == 1)
    elif end is Outcome.LATE:
        found = Sse.read(response.content)
        assert response.status_code == 200
        assert last not in found.events
        error(found.chunks[-1], response, path)
        assert ["error"] == [key for chunk in found.chunks for key in chunk if key == "error"]
        assert text.startswith(said(response, path, stream=True) or "nothing")
    elif end is Outcome.MISTAKE:
        status = 400 if fault == "context-length" else int(fault.split("+", maxsplit=1)[0].removeprefix("status:"))
        assert status == response.status_code
        assert error(response.json(), response, path)["type"] == "invalid_request_error"
        assert "retry-after" not in response.headers
    else:
        kind = "server_error" if path == CHAT else "overloaded_error"
        assert (503, kind) == (response.status_code, error(response.json(), response, path)["type"])
        assert ("5", "false") == (response.headers["retry-after"], response.headers["x-should-retry"])
