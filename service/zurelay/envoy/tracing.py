"""Envoy's part of the traces: the server span of each request, and the cluster that leads to the collector."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

import msgspec

from zurelay import paths
from zurelay.envoy.templates import duration, literal, template
from zurelay.otel import Export, Signal, Target

PLANNED = "x-envoy-max-retries"  # the request header that the sidecar sends with every plan, and no client can

_COLLECTOR = "collector."  # how its cluster's name begins; those of routes have a slash, those of providers another end
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


def is_collector(cluster: str) -> bool:
    """Tell a collector's cluster by its name: no plan needs it."""
    return cluster.startswith(_COLLECTOR)


def collector_name(target: Target) -> str:
    """Name the cluster of a collector; another place is another cluster."""
    return f"{_COLLECTOR}{hashlib.sha256(msgspec.json.encode((target.url, target.ca))).hexdigest()[:8]}"


def collector(target: Target, authorities: str) -> dict[str, Any]:
    """Make the cluster that leads to a collector; `authorities` are those trusted where it names none of its own."""
    cluster: dict[str, Any] = template("telemetry.yaml")["collector"]
    url = target.url
    cluster["name"] = cluster["load_assignment"]["cluster_name"] = collector_name(target)
    is_address = _is_address(url.host)
    if is_address:
        del cluster["cluster_type"]
        cluster["type"] = "STATIC"
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"]["socket_address"].update(address=url.host, port_value=url.port)
    if url.scheme == "https":
        validation: dict[str, Any] = {"trusted_ca": {"filename": target.ca or authorities}}
        context: dict[str, Any] = {"@type": _TLS, "common_tls_context": {"validation_context": validation}}
        if is_address:
            validation["match_typed_subject_alt_names"] = [{"san_type": "IP_ADDRESS", "matcher": {"exact": url.host}}]
        else:
            context.update(sni=url.host, auto_sni_san_validation=True)
        cluster["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    return cluster


def trace(manager: dict[str, Any], export: Export, *, propagate: bool = False) -> None:
    """Let a connection manager trace its requests, if traces are sent at all; `propagate` tells providers of them."""
    target = export.to(Signal.TRACES)
    if target is None:
        return
    loaded = template("telemetry.yaml")
    manager.update(loaded["manager"])
    manager["tracing"]["no_context_propagation"] = not propagate
    config = manager["tracing"]["provider"]["typed_config"]
    service = config["grpc_service"]
    service["envoy_grpc"]["cluster_name"] = collector_name(target)
    service["timeout"] = duration(target.timeout)
    service["initial_metadata"] = [{"key": key, "value": literal(value)} for key, value in target.headers]
    config["service_name"] = export.resource["service.name"]
    config["resource_detectors"][0]["typed_config"]["attributes"] = export.resource
    inner = config["sampler"]["typed_config"]["wrapped_sampler"]
    inner["typed_config"]["sampling_percentage"]["numerator"] = export.sampling.millionths
    if not export.sampling.heed_parent:
        config["sampler"] = inner
    processor = manager["http_filters"][0]["typed_config"]
    processor["emit_client_span"] = False
    manager["http_filters"][:0] = loaded["filters"]
    host = manager["route_config"]["virtual_hosts"][0]
    host["routes"] = [named for route in host["routes"] for named in _named(route)]


def _named(route: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a route once for each name that a span may have: they differ in nothing but the name.

    Once there is a plan the path is a provider's, and the route is chosen again: the first has no name, so that the one
    given before stays. An expression in the tracer's own settings could do this too, and would cost each request 5 us.
    """
    planned = {**route, "match": {"prefix": "/", "headers": [{"name": PLANNED, "present_match": True}]}}
    named = [
        {**route, "name": path, "match": _match(method, path), "decorator": _decorator(f"{method} {path}")}
        for method, path in paths.OPERATIONS
    ]
    return [planned, *named, {**route, "name": "other", "decorator": _decorator(paths.OTHER)}]


def _decorator(name: str) -> dict[str, Any]:
    return {"operation": name, "propagate": False}


def _match(method: str, path: str) -> dict[str, Any]:
    fixed, brace, _ = path.partition("{")
    where = {"prefix": fixed} if brace else {"path": fixed}
    return {**where, "headers": [{"name": ":method", "string_match": {"exact": method}}]}


def access_log(manager: dict[str, Any]) -> None:
    """Let a connection manager write a line about every request."""
    manager["access_log"].append(template("telemetry.yaml")["access_log"])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
