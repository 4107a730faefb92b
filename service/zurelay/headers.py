"""Which headers pass: from the client to a provider, and back (SPEC 3). Names are lower case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zurelay.model import Endpoint

_TO_PROVIDER = frozenset(
    {
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "user-agent",
        "idempotency-key",
        "anthropic-version",
        "anthropic-beta",
    }
)
_TO_PROVIDER_PREFIX = "x-stainless-"
SPAN = "x-zurelay-span"  # Envoy tells the sidecar of its span in it: TRACE-SPAN, or - for none
_GO_LATER = frozenset({"host", "x-forwarded-proto", SPAN})
_PROVIDER_KEEPS = frozenset({"content-type", "content-length", "transfer-encoding", "date"})

ANTHROPIC_VERSION = "anthropic-version"
DEFAULT_VERSION = "2023-06-01"  # the only one that Anthropic's API has had since

FALLBACK = "x-zurelay-fallback"
KEEPALIVE = "x-zurelay-keepalive"
EXPLAIN = "x-zurelay-explain"


def request_ids(endpoint: Endpoint, request_id: str) -> dict[str, str]:
    """Give the headers that carry a request's id: ours, and on messages Anthropic's too (SPEC 3)."""
    if endpoint is Endpoint.CHAT:
        return {"x-zurelay-request-id": request_id}
    return {"x-zurelay-request-id": request_id, "request-id": request_id}


def passes_to_provider(name: str) -> bool:
    """Tell whether a client's header may reach a provider."""
    return name in _TO_PROVIDER or name.startswith(_TO_PROVIDER_PREFIX)


def to_provider(headers: Mapping[str, str]) -> dict[str, str]:
    """Give the client's headers that a provider may see."""
    return {name: value for name, value in headers.items() if passes_to_provider(name)}


def kept_from_provider(names: Iterable[str]) -> list[str]:
    """List the client's headers that must go before the request leaves us.

    What Envoy's router reads stays, and goes at the provider's cluster: without x-forwarded-proto it finds no route.
    So does what every traced request has: here it would be one more mutation of each.
    """
    return [name for name in names if not (name.startswith(":") or name in _GO_LATER or passes_to_provider(name))]


def kept_from_client(names: Iterable[str]) -> list[str]:
    """List a provider's response headers that must not reach the client."""
    return [name for name in names if not name.startswith(":") and name not in _PROVIDER_KEEPS]
