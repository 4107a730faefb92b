"""The listeners: ingress, egress and status."""

from __future__ import annotations

from typing import Any

from zurelay import otel, passthrough
from zurelay.envoy import sds, tracing
from zurelay.envoy.local_replies import for_clients, for_relay
from zurelay.envoy.runtime import EGRESS_SOCKET, Runtime
from zurelay.envoy.templates import discovery, duration, script, template
from zurelay.model import IdentityMode, Limits, Listen, Settings

PEER_URIS = "peer-uris"
PEER_ADDRESS = "peer-address"

# What our rewriting may add to a body: a model's name, options, another format's shape.
_REWRITTEN = 1 << 20
# Envoy's own patience ends after the sidecar's, so that the sidecar's answer is the one that is given.
_LATER = 30.0
# A client may leave more than the listener's buffer limit unread for so long, in seconds: no model writes that much
# faster than people or programs read, and what one client holds is lost to all others.
_UNREAD = 120.0
# Envoy 1.40 crashes when a client's connection fills up with an answer that is complete, but still in the attempt's
# ext_proc (as on the egress listener). So a stream that passes through must find room for all that may wait there until
# the sidecar has seen the first token; beyond it a slow client slows its provider.
_HELD_BACK = 64 << 20
_LUA = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"

# What comes with a body in one message: headers, the plan.
_BESIDE_A_BODY = 2 << 20


def message_limit(limits: Limits) -> int:
    """Bound what one message of Envoy's may hold: a whole body, as large as it may get on its way, and the rest."""
    return max(limits.request_body, limits.response_body) + _BESIDE_A_BODY


def listeners(settings: Settings, runtime: Runtime) -> str:
    """Write listeners.json."""
    resources = template("listeners.yaml")["resources"]
    ingress, egress, status = resources
    _ingress(ingress, settings, runtime)
    _egress(egress, settings, runtime)
    _address(status, settings.status)
    return discovery(resources)


def _ingress(listener: dict[str, Any], settings: Settings, runtime: Runtime) -> None:
    _address(listener, settings.listen)
    listener["per_connection_buffer_high_watermark_timeout"] = duration(min(settings.timeouts.idle, _UNREAD))
    chain = listener["filter_chains"][0]
    del chain["transport_socket"]
    if sds.server_certificate(settings) is not None:
        chain["transport_socket"] = _transport(settings, runtime)
    manager = _manager(listener)
    _common(manager, settings)
    manager["local_reply_config"] = for_clients()
    service = manager["http_filters"][0]["typed_config"]["grpc_service"]
    export = otel.export(settings.telemetry, runtime.environ)
    if export is not None:
        tracing.trace(manager, export, propagate=settings.telemetry.propagate)
    if settings.telemetry.access_log:
        tracing.access_log(manager)
    _identify(manager, service["initial_metadata"], settings.identity.mode)
    if passthrough.wanted(settings):
        manager["http_filters"].insert(-1, _script())  # before the router: traces put theirs first
        listener["per_connection_buffer_limit_bytes"] = max(settings.limits.response_body, _HELD_BACK)


def _script() -> dict[str, Any]:
    """Streams that pass through lack what the relay does to others; some of it is done in Envoy."""
    source = {"inline_string": script("passthrough.lua")}
    return {"name": "envoy.filters.http.lua", "typed_config": {"@type": _LUA, "default_source_code": source}}


def _identify(manager: dict[str, Any], metadata: list[dict[str, str]], mode: IdentityMode) -> None:
    """Tell the sidecar who the peer is, in the metadata of its stream, which no client can write."""
    if mode is IdentityMode.MTLS:
        # All of them, comma-separated: exactly one is wanted.
        metadata.append({"key": PEER_URIS, "value": "%DOWNSTREAM_PEER_URI_SAN%"})
    if mode is IdentityMode.FORWARDED:
        manager["forward_client_cert_details"] = "ALWAYS_FORWARD_ONLY"
        metadata.append({"key": PEER_ADDRESS, "value": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"})


def _egress(listener: dict[str, Any], settings: Settings, runtime: Runtime) -> None:
    listener["address"]["pipe"]["path"] = runtime.path(EGRESS_SOCKET)
    manager = _manager(listener)
    _common(manager, settings)
    manager["local_reply_config"] = for_relay()
    service = manager["http_filters"][0]["typed_config"]["grpc_service"]
    service["initial_metadata"] = [{"key": "phase", "value": "egress"}]


def _common(manager: dict[str, Any], settings: Settings) -> None:
    manager["stream_idle_timeout"] = _patience(settings)
    route = manager["route_config"]["virtual_hosts"][0]["routes"][0]
    route["request_body_buffer_limit"] = max(settings.limits.request_body + _REWRITTEN, settings.limits.response_body)


def _transport(settings: Settings, runtime: Runtime) -> dict[str, Any]:
    common: dict[str, Any] = {
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": [sds.reference(sds.SERVER, runtime)],
    }
    context: dict[str, Any] = {"@type": _TLS, "common_tls_context": common}
    if settings.identity.mode is IdentityMode.MTLS:
        common["validation_context_sds_secret_config"] = sds.reference(sds.CLIENTS, runtime)
        context["require_client_certificate"] = True
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _manager(listener: dict[str, Any]) -> dict[str, Any]:
    manager: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return manager


def _address(listener: dict[str, Any], listen: Listen) -> None:
    address = listener["address"]["socket_address"]
    address.update(address=listen.host, port_value=listen.port)
    if listen.host == "::":
        address["ipv4_compat"] = True  # both families, as elsewhere; without it Envoy takes IPv6 alone


def _patience(settings: Settings) -> str:
    return duration(settings.timeouts.total + _LATER)
