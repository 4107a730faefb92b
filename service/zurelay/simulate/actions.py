"""What goes over the wire, as a list of actions, and what all answers share: headers, compression, bytes one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from zurelay.simulate.faults import Fault

BREATH = 0.05  # seconds before a connection breaks, so that what was sent is surely read first
SHORT_BY = 100  # bytes that a short body promises and doesn't send

_PROVIDER_HEADERS = (
    ("server", "cloudflare"),
    ("set-cookie", "__cf_bm=simulated; path=/; HttpOnly; Secure"),
    ("openai-organization", "org-simulated"),
    ("openai-processing-ms", "12"),
    ("anthropic-organization-id", "11111111-2222-3333-4444-555555555555"),
    ("request-id", "req_of_the_provider"),
    ("x-request-id", "req_of_the_provider"),
    ("x-ratelimit-limit-requests", "10000"),
    ("x-ratelimit-remaining-requests", "9999"),
    ("x-ratelimit-remaining-tokens", "149984"),
    ("anthropic-ratelimit-requests-remaining", "999"),
)


class Head(msgspec.Struct, frozen=True):
    """Begin the answer; a `retry_at` in seconds from now becomes a Retry-After date."""

    status: int
    headers: tuple[tuple[str, str], ...]
    length: int | None = None
    retry_at: int | None = None


class Send(msgspec.Struct, frozen=True):
    """Add bytes to the body."""

    data: bytes


class Pause(msgspec.Struct, frozen=True):
    """Put out what there is, then wait."""

    seconds: float


class End(msgspec.Struct, frozen=True):
    """End properly."""


class Close(msgspec.Struct, frozen=True):
    """Close the connection, whatever is missing."""


class Reset(msgspec.Struct, frozen=True):
    """Reset the connection."""


class Hang(msgspec.Struct, frozen=True):
    """Say nothing more until the client leaves."""


Action = Head | Send | Pause | End | Close | Reset | Hang


def headers(fault: Fault, kind: str) -> tuple[tuple[str, str], ...]:
    """Give the headers of an answer of this content type."""
    return (
        ("content-type", "text/plain" if fault.wrong_type else kind),
        *((("content-encoding", "gzip"),) if fault.gzip else ()),
        *(_PROVIDER_HEADERS if fault.headers else ()),
    )


def finished(actions: Iterable[Action], fault: Fault) -> Iterator[Action]:
    """Play actions up to the first that ends the answer; where asked for, each byte by itself."""
    for action in actions:
        if isinstance(action, Send) and fault.split:
            for byte in action.data:
                yield from (Send(bytes((byte,))), Pause(0))
        else:
            yield action
        if isinstance(action, End | Close | Reset | Hang):
            return
