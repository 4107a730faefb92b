"""Where telemetry goes and what of it: the configuration file's word, and where it is silent the OTEL_* variables'.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and .../protocol/exporter/. OTLP over
gRPC alone is spoken.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from zurelay.model import Telemetry, Url
from zurelay.settings.urls import host
from zurelay.trace_context import Sampling

_PORT = 4317  # OTLP over gRPC
_TIMEOUT = 10.0
_INTERVAL = 60.0
_SERVICE = "zurelay"
_LONGEST_NUMBER = 9  # digits of milliseconds: eleven days
# https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md: Header-Name, and what is gRPC's own
_METADATA = re.compile(r"(?!grpc-)[a-z0-9_.-]+")
_EXPORTERS = {"", "none", "otlp"}


class Signal(enum.Enum):
    """What is sent."""

    TRACES = "traces"
    METRICS = "metrics"
    LOGS = "logs"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A collector. `headers` may hold a credential: they are never shown. `ca` is a file, None for the system's."""

    url: Url
    headers: tuple[tuple[str, str], ...] = ()
    ca: str | None = None
    timeout: float = _TIMEOUT


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """All that is sent. `targets` lack the signals that aren't; `interval` is between two reports of metrics."""

    targets: dict[Signal, Target]
    sampling: Sampling
    resource: dict[str, str]
    interval: float = _INTERVAL

    def to(self, signal: Signal) -> Target | None:
        """Give where a signal goes."""
        return self.targets.get(signal)


class OtelError(Exception):
    """A variable that can't be obeyed: which, and what to do."""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Take OpenTelemetry's variables out of an environment."""
    return {name: value for name, value in environ.items() if name.startswith("OTEL_")}


def export(telemetry: Telemetry, environ: Mapping[str, str]) -> Export | None:
    """Give what is to be sent; None where nothing is."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    wanted = _wanted(telemetry, environ)
    targets = {signal: target for signal in wanted if (target := _target(signal, telemetry, environ)) is not None}
    if not targets:
        return None
    return Export(
        targets=targets,
        sampling=_sampling(telemetry, environ),
        resource=resource(environ),
        interval=_milliseconds(environ, "OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL),
    )


def _wanted(telemetry: Telemetry, environ: Mapping[str, str]) -> list[Signal]:
    """Traces and metrics unless set to none; logs, which go to standard error anyway, where they are asked for."""
    found = []
    for signal in Signal:
        said = environ.get(f"OTEL_{signal.name}_EXPORTER", "").strip().lower()
        asked = telemetry.logs if signal is Signal.LOGS else True
        if said not in _EXPORTERS:
            raise OtelError(f"OTEL_{signal.name}_EXPORTER is {said!r}: set otlp or none, or leave it out")
        if said == "otlp" or (asked and said != "none"):
            found.append(signal)
    return found


def _target(signal: Signal, telemetry: Telemetry, environ: Mapping[str, str]) -> Target | None:
    own, common = f"OTEL_EXPORTER_OTLP_{signal.name}_", "OTEL_EXPORTER_OTLP_"

    def variable(name: str) -> str:
        return environ.get(own + name, "").strip() or environ.get(common + name, "").strip()

    written = telemetry.otlp or variable("ENDPOINT")
    if not written:
        return None
    protocol = variable("PROTOCOL")
    if protocol not in ("", "grpc"):
        raise OtelError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}: only grpc is spoken; set it, or leave it out")
    if variable("CLIENT_KEY") or variable("CLIENT_CERTIFICATE"):
        raise OtelError("OTEL_EXPORTER_OTLP_CLIENT_KEY, _CLIENT_CERTIFICATE: none is shown to a collector; unset them")
    insecure = variable("INSECURE").lower() == "true"
    return Target(
        url=_url(written, "http" if insecure else "https"),
        headers=_headers(variable("HEADERS")),
        ca=variable("CERTIFICATE") or None,
        timeout=_milliseconds({"": variable("TIMEOUT")}, "", _TIMEOUT),
    )


def _url(written: str, scheme: str) -> Url:
    """Read an endpoint; one without a scheme is https unless OTEL_EXPORTER_OTLP_INSECURE says otherwise."""
    try:
        parts = urlsplit(written if "://" in written else f"{scheme}://{written}")
        port, found = parts.port, host(parts.hostname or "")
    except ValueError:
        port = found = None
    if found is None or parts.scheme not in ("http", "https") or port == 0 or "@" in parts.netloc:
        # It may hold a password: it is not said again.
        raise OtelError("the OTLP endpoint is no URL that can be used: write it like http://collector:4317")
    return Url(scheme=parts.scheme, host=found, port=port or _PORT)


def _headers(written: str) -> tuple[tuple[str, str], ...]:
    """Read what gRPC and Envoy both can send; neither name nor value is said again, as either may be a credential."""
    found = tuple(_pairs(written, lower=True).items())
    for place, (name, value) in enumerate(found, 1):
        if not _METADATA.fullmatch(name) or name.endswith("-bin") or not (value.isascii() and value.isprintable()):
            raise OtelError(
                f"OTEL_EXPORTER_OTLP_HEADERS: header {place} is none that gRPC can send: write name=value, the name of"
                " letters, digits, dots, hyphens and underscores, not grpc-* nor *-bin, the value of printable ASCII"
            )
    return found


_SAMPLERS = {"always_on": (1.0, False), "always_off": (0.0, False)}


def _sampling(telemetry: Telemetry, environ: Mapping[str, str]) -> Sampling:
    """By default a caller's decision counts, and all others are kept; the file's `sample` is a share of those."""
    if telemetry.sample is not None:
        return Sampling(ratio=telemetry.sample)
    name = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower() or "parentbased_always_on"
    bare = name.removeprefix("parentbased_")
    heed = bare != name
    if bare == "traceidratio":
        return Sampling(ratio=_ratio(environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip()), heed_parent=heed)
    if bare not in _SAMPLERS:
        raise OtelError(
            f"OTEL_TRACES_SAMPLER is {name!r}: set always_on, always_off, traceidratio, or parentbased_ of them"
        )
    return Sampling(ratio=_SAMPLERS[bare][0], heed_parent=heed)


def _ratio(written: str) -> float:
    try:
        ratio = float(written or "1")
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise OtelError(f"OTEL_TRACES_SAMPLER_ARG is {written!r}: write a share from 0 to 1")
    return ratio


def resource(environ: Mapping[str, str]) -> dict[str, str]:
    """Give who sends."""
    found = {"service.name": _SERVICE, **_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))}
    named = environ.get("OTEL_SERVICE_NAME", "").strip()
    return {**found, "service.name": named} if named else found


def _pairs(written: str, *, lower: bool = False) -> dict[str, str]:
    """Read `key=value,key=value`, both percent-encoded (W3C Baggage); what is no pair is left out."""
    found = {}
    for pair in written.split(","):
        name, equals, value = pair.partition("=")
        name = unquote(name.strip())
        if equals and name:
            found[name.lower() if lower else name] = unquote(value.strip())
    return found


def _milliseconds(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    written = environ.get(name, "").strip()
    whole = int(written) if written.isascii() and written.isdigit() and len(written) <= _LONGEST_NUMBER else 0
    return whole / 1000 if whole else otherwise
