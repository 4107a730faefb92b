"""How it runs: times, store, workers, bounds, telemetry."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from zurelay.model import Keep, Limits, OnFailure, Store, Streaming, Telemetry, Timeouts
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Found, Reader, each, struct
from zurelay.settings.redis import redis_url
from zurelay.settings.scalars import choice, duration, flag, integer, number, size, text
from zurelay.settings.secrets import secret
from zurelay.settings.urls import url
from zurelay.units import size_text
from zurelay.yamlnodes import Scalar, Table

_BODY = size(1 << 10, 1 << 30)  # Envoy counts its buffers in 32 bits
_ALL_BODIES = size(1 << 10, 1 << 40)
_WORKERS = integer(1, 128)


def streaming(at: At) -> Streaming:
    """Read the times of an open stream."""
    readers: dict[str, Reader[Any]] = dict.fromkeys(("open_after", "keepalive", "messages_keepalive"), duration)
    return struct(at, Streaming, readers | {"passthrough": flag})


def timeouts(at: At) -> Timeouts:
    """Read the times of attempts and requests."""
    return struct(at, Timeouts, dict.fromkeys(Timeouts.__struct_fields__, duration))


def store(at: At, facts: Facts) -> Store:
    """Read where spend is kept; the address of a Redis may hold its password and is never shown."""
    if at.has("sqlite") and at.has("redis"):
        at.note("names two stores; keep sqlite or redis")
    readers: dict[str, Reader[Any]] = {"sqlite": text, "on_failure": choice(OnFailure)}
    secreted = isinstance(at.key("redis").node, Table) if isinstance(at.node, Table) else False
    found = Found(at, readers | {"redis": (lambda child: secret(child, facts)) if secreted else redis_url})
    if "redis" in found.values:
        found.values["sqlite"] = None
    if secreted and "redis" in found.values:
        found.values["redis_secret"] = found.values.pop("redis")
    return found.build(Store)


def workers(at: At) -> int | None:
    """Read the number of worker processes; auto is None."""
    if isinstance(at.node, Scalar) and at.node.text == "auto":
        return None
    if not isinstance(at.node, Scalar) or at.node.number is None:
        raise at.wrong("expected auto or a whole number")
    return _WORKERS(at)


def limits(at: At) -> Limits:
    """Read the bounds of what is held in memory."""
    found = struct(at, Limits, {"request_body": _BODY, "response_body": _BODY, "bodies_in_flight": _ALL_BODIES})
    if found.request_body > found.bodies_in_flight:
        raise at.wrong(
            f"request_body, {size_text(found.request_body)}, is over bodies_in_flight,"
            f" {size_text(found.bodies_in_flight)}: no request of that size could come in"
        )
    return found


def telemetry(at: At) -> Telemetry:
    """Read where traces and metrics go."""
    readers: dict[str, Reader[Any]] = dict.fromkeys(("capture_content", "propagate", "logs", "access_log"), flag)
    return struct(at, Telemetry, readers | {"otlp": _collector, "sample": _sample, "keep": _keep})


def _keep(at: At) -> frozenset[Keep]:
    return frozenset(each(choice(Keep))(at))


def _collector(at: At) -> str:
    url(at)
    return text(at)


def _sample(at: At) -> float:
    return float(number(Decimal(0), Decimal(1))(at))
