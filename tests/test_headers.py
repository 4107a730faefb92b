"""Which headers pass, row by row of SPEC 3."""

from __future__ import annotations

import pytest

from zurelay import headers

PASS = (
    "content-type",
    "content-length",
    "accept",
    "accept-encoding",
    "user-agent",
    "idempotency-key",
    "x-stainless-lang",
    "x-stainless-retry-count",
    "x-stainless-anything-new",
    "anthropic-version",
    "anthropic-beta",
)
STAY = (
    "authorization",
    "x-api-key",
    "api-key",
    "cookie",
    "traceparent",
    "tracestate",
    "baggage",
    "x-forwarded-for",
    "x-forwarded-client-cert",
    "x-request-id",
    "x-envoy-max-retries",
    "x-envoy-upstream-rq-timeout-ms",
    "x-zurelay-fallback",
    "x-zurelay-keepalive",
    "x-zurelay-plan",
    "x-b3-traceid",
    "content-encoding",
    "te",
    "via",
    "forwarded",
    "openai-organization",
    "openai-project",
    "x-stainless",
    "origin",
    "x-anything",
)


@pytest.mark.parametrize("name", PASS)
def test_a_header_passes_to_the_provider(name: str) -> None:
    assert headers.passes_to_provider(name)
    assert [] == headers.kept_from_provider([name])


@pytest.mark.parametrize("name", STAY)
def test_nothing_else_of_the_clients_passes(name: str) -> None:
    assert not headers.passes_to_provider(name)
    assert [name] == headers.kept_from_provider([name])
    assert {} == headers.to_provider({name: "x"})


def test_what_envoys_router_reads_goes_later() -> None:
    assert [] == headers.kept_from_provider([":method", ":path", ":authority", ":scheme", "host", "x-forwarded-proto"])
    assert {} == headers.to_provider({":path": "/", "host": "x", "x-forwarded-proto": "https"})


def test_envoys_word_of_its_span_goes_later_as_no_client_has_written_it() -> None:
    assert [] == headers.kept_from_provider([headers.SPAN])
    assert {} == headers.to_provider({headers.SPAN: "x"})


def test_values_pass_as_they_are() -> None:
    sent = {"user-agent": "OpenAI/Python 3.57.0", "anthropic-beta": "a,b", "cookie": "c"}
    assert {"user-agent": "OpenAI/Python 3.57.0", "anthropic-beta": "a,b"} == headers.to_provider(sent)


@pytest.mark.parametrize(
    "name",
    [
        "set-cookie",
        "openai-organization",
        "openai-processing-ms",
        "openai-version",
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-requests-limit",
        "anthropic-organization-id",
        "server",
        "x-request-id",
        "request-id",
        "retry-after",
        "x-should-retry",
        "cf-ray",
        "cf-cache-status",
        "strict-transport-security",
        "access-control-allow-origin",
        "content-encoding",
        "x-zurelay-model",
        "x-envoy-upstream-service-time",
        "alt-svc",
        "trailer",
    ],
)
def test_a_providers_own_headers_never_reach_the_client(name: str) -> None:
    assert [name] == headers.kept_from_client([name])


def test_the_answers_framing_reaches_the_client() -> None:
    assert [] == headers.kept_from_client([":status", "content-type", "content-length", "transfer-encoding", "date"])
