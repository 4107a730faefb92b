"""Which headers pass, to a provider and back (SPEC 3, 7), through the real Envoy."""

from __future__ import annotations

import pytest

from e2e.harness import Gateway, Provider, ask, simulate

CLIENT_SECRETS = {
    "authorization": "Bearer zk_client",
    "x-api-key": "zk_client",
    "api-key": "zk_client",
    "cookie": "session=1",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=b",
    "baggage": "a=b",
    "x-forwarded-for": "10.9.8.7",
    "x-forwarded-client-cert": "URI=spiffe://forged",
    "x-request-id": "from-the-client",
    "x-custom": "1",
    "forwarded": "for=10.9.8.7",
    "openai-organization": "org-1",
}
PLANTED = {
    "x-envoy-max-retries": "0",
    "x-envoy-upstream-rq-timeout-ms": "1",
    "x-envoy-upstream-rq-per-try-timeout-ms": "1",
    "x-envoy-retry-on": "5xx",
    "x-envoy-upstream-alt-stat-name": "x",
    "x-envoy-attempt-count": "7",
    "x-zurelay-plan": "x {}",
    "x-zurelay-shape": "messages",
    "x-zurelay-move-on": "1",
    "x-zurelay-model": "forged",
    "x-zurelay-request-id": "forged",
}
WANTED = {
    "user-agent": "test/1",
    "idempotency-key": "abc",
    "x-stainless-lang": "python",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "x",
}
ALWAYS = {"host", "content-type", "content-length", "accept", "accept-encoding"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failing", [{}, {"m1": "status:500"}], ids=["first attempt", "third attempt"])
def test_a_provider_sees_only_what_it_may(
    gateway: Gateway, provider: Provider, stream: bool, failing: dict[str, str]
) -> None:
    response = gateway.chat(
        ask("trio", stream=stream, **simulate(**failing)), headers={**CLIENT_SECRETS, **PLANTED, **WANTED}
    )
    assert response.status_code == 200, response.text
    for record in provider.requests:
        names = [name.lower() for name, _ in record.headers]
        assert sorted(names) == sorted(ALWAYS | set(WANTED))
        assert record.header("host") == f"127.0.0.1:{provider.port}"
        assert record.header("accept-encoding") == "identity"
        assert record.header("content-type") == "application/json"
        assert {name: record.header(name) for name in WANTED} == WANTED
        assert "zk_client" not in str(record.headers) + record.body.decode()


@pytest.mark.parametrize("stream", [False, True])
def test_planted_headers_change_nothing(gateway: Gateway, stream: bool) -> None:
    response = gateway.chat(ask("trio", stream=stream, **simulate(m1="slow-head:0.05+status:500")), headers=PLANTED)
    assert response.status_code == 200
    assert response.headers["x-zurelay-attempts"] == "3"
    assert response.headers["x-zurelay-model"] == "trio"
    assert response.headers["x-zurelay-request-id"].startswith("req_")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spec", ["headers", "headers+status:400"])
def test_a_client_sees_nothing_of_the_provider(gateway: Gateway, stream: bool, spec: str) -> None:
    response = gateway.chat(ask("solo", stream=stream, **simulate(m1=spec)))
    # Envoy closes a connection behind a 400 of its own writing.
    allowed = {"content-type", "content-length", "transfer-encoding", "date", "server", "cache-control", "connection"}
    names = {name for name in response.headers if not name.startswith("x-zurelay-")}
    assert names <= allowed
    assert response.headers["server"] == "zurelay"


def test_headers_of_a_failed_attempt_are_not_on_the_answer(gateway: Gateway) -> None:
    response = gateway.chat(ask("trio", **simulate(m1="headers+status:500:retry-after=9")))
    assert response.status_code == 200
    assert "retry-after" not in response.headers
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_tells_who_gave_it(gateway: Gateway, stream: bool) -> None:
    named = gateway.chat(ask("three", stream=stream, reasoning_effort="max"))
    assert {name: value for name, value in named.headers.items() if name.startswith("x-zurelay-")} == {
        "x-zurelay-model": "trio",
        "x-zurelay-attempts": "1",
        "x-zurelay-reasoning-effort": "high",
        "x-zurelay-request-id": named.headers["x-zurelay-request-id"],
    }
    other = gateway.chat(ask("guarded", stream=stream, reasoning_effort="max", **simulate(m1="status:500")))
    assert other.headers["x-zurelay-model"] == "spare"
    assert other.headers["x-zurelay-routed-from"] == "guarded"
    assert other.headers["x-zurelay-attempts"] == "3"


@pytest.mark.parametrize("value", ["maybe", "", "1"])
@pytest.mark.parametrize("name", ["x-zurelay-fallback", "x-zurelay-keepalive"])
def test_a_switch_that_is_neither_on_nor_off_is_refused(gateway: Gateway, name: str, value: str) -> None:
    response = gateway.chat(ask("solo", stream=True), headers={name: value})
    assert (response.status_code, response.json()["error"]["param"]) == (400, name)
