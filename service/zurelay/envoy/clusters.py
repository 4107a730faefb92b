"""Providers as Envoy's clusters: three a route (DESIGN of the attempt filter), over the same endpoints."""

from __future__ import annotations

import ipaddress
from typing import Any

from zurelay.envoy import sds
from zurelay.envoy.runtime import Runtime
from zurelay.envoy.templates import discovery, literal, template
from zurelay.model import Format, Http, Provider, Settings, Url

KINDS = ("first", "whole", "stream")

_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
# Uvicorn, in front of most self-hosted models, closes after 5 s; nginx, load balancers and the big providers after 60 s or more.
_IDLE_PLAIN, _IDLE_TLS = "4s", "50s"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CREDENTIALS = ("authorization", "x-api-key", "api-key")
# Headers of the client that reach a provider (SPEC 3): a provider that sets one doesn't take it from the others.
_PASSED = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "idempotency-key", "user-agent"})


def clusters(settings: Settings, runtime: Runtime) -> str:
    """Write clusters.json."""
    forbidden = _others_headers(settings)
    return discovery(
        [
            _cluster(f"{route.name}.{kind}", kind, settings.providers[route.provider], settings, runtime, forbidden)
            for model in settings.models.values()
            for route in model.routes
            for kind in KINDS
        ]
    )


def _cluster(
    name: str, kind: str, provider: Provider, settings: Settings, runtime: Runtime, forbidden: list[str]
) -> dict[str, Any]:
    loaded = template("cluster.yaml")
    cluster: dict[str, Any] = loaded["cluster"]
    cluster["name"] = name
    if kind != "stream":
        cluster["per_connection_buffer_limit_bytes"] = settings.limits.response_body
    _endpoint(cluster, name, provider)
    options = cluster["typed_extension_protocol_options"][_OPTIONS]
    _protocol(options, provider)
    processor, mutation, credential, codec = options["http_filters"]
    _processor(processor["typed_config"], loaded["modes"][kind], kind, name, settings, forbidden)
    _headers(mutation["typed_config"]["mutations"]["request_mutations"], provider, forbidden)
    options["http_filters"] = [processor, mutation, *_credential(credential, provider, runtime), codec]
    if provider.base_url.scheme == "https":
        cluster["transport_socket"] = _transport(provider, runtime)
    return cluster


def _endpoint(cluster: dict[str, Any], name: str, provider: Provider) -> None:
    url = provider.base_url
    if _is_address(url.host):
        del cluster["cluster_type"]
        cluster["type"] = "STATIC"
    cluster["load_assignment"]["cluster_name"] = name
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["hostname"] = _authority(url)
    endpoint["address"]["socket_address"].update(address=url.host, port_value=url.port)


def _protocol(options: dict[str, Any], provider: Provider) -> None:
    tls = provider.base_url.scheme == "https"
    options["common_http_protocol_options"]["idle_timeout"] = _IDLE_TLS if tls else _IDLE_PLAIN
    explicit = options.pop("explicit_http_config")
    both = {"http_protocol_options": explicit["http_protocol_options"], "http2_protocol_options": _http2()}
    if provider.http is Http.AUTO and tls:
        options["auto_config"] = both
        return
    # Without TLS there is nothing to negotiate by.
    wanted = "http2_protocol_options" if provider.http is Http.HTTP2 else "http_protocol_options"
    options["explicit_http_config"] = {wanted: both[wanted]}


def _http2() -> dict[str, Any]:
    """Options of HTTP/2: a connection that died in silence must not take every new request with it."""
    return {"connection_keepalive": {"interval": "30s", "timeout": "10s"}}


def _processor(
    config: dict[str, Any], mode: dict[str, Any], kind: str, name: str, settings: Settings, forbidden: list[str]
) -> None:
    config.update(mode)
    config["forward_rules"]["disallowed_headers"]["patterns"] = [
        {"exact": name} for name in (*_CREDENTIALS, *forbidden)
    ]
    config["stat_prefix"] = "attempt"
    config["max_message_timeout"] = f"{max(settings.timeouts.first_token_high, settings.timeouts.total) + 60:g}s"
    config["grpc_service"]["initial_metadata"] = [
        {"key": "phase", "value": kind},
        {"key": "cluster", "value": literal(name)},
    ]


def _headers(mutations: list[dict[str, Any]], provider: Provider, forbidden: list[str]) -> None:
    mutations += [{"remove": name} for name in forbidden]
    ours = {"accept-encoding": "identity", **{name.lower(): value for name, value in provider.headers.items()}}
    mutations += [
        {"append": {"header": {"key": key, "value": literal(value)}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}}
        for key, value in ours.items()
    ]


def _others_headers(settings: Settings) -> list[str]:
    """List every header that some provider adds: an attempt sees what the one before it left on the request."""
    names = {name.lower() for provider in settings.providers.values() for name in provider.headers}
    names |= {provider.auth_header.lower() for provider in settings.providers.values() if provider.auth_header}
    return sorted(name for name in names - _PASSED if not name.startswith("x-stainless-"))


def _credential(filter_: dict[str, Any], provider: Provider, runtime: Runtime) -> list[dict[str, Any]]:
    if provider.api_key is None:
        return []
    generic = filter_["typed_config"]["credential"]["typed_config"]
    generic["credential"] = sds.reference(sds.provider_secret(provider.name), runtime)
    if provider.auth_header is not None:
        generic["header"] = provider.auth_header.lower()
    elif provider.format is Format.ANTHROPIC:
        generic["header"] = "x-api-key"
    else:
        generic.update(header="authorization", header_value_prefix="Bearer ")
    return [filter_]


def _transport(provider: Provider, runtime: Runtime) -> dict[str, Any]:
    host = provider.base_url.host
    validation: dict[str, Any] = {"trusted_ca": {"filename": provider.ca or runtime.ca_bundle}}
    context: dict[str, Any] = {"@type": _TLS, "common_tls_context": {"validation_context": validation}}
    if _is_address(host):
        # No name, no SNI (RFC 6066, 3): the certificate must carry the address.
        validation["match_typed_subject_alt_names"] = [{"san_type": "IP_ADDRESS", "matcher": {"exact": host}}]
    else:
        # A trusted authority signs for any host: the certificate must be for this one.
        context.update(sni=host, auto_sni_san_validation=True)
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _authority(url: Url) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == _DEFAULT_PORTS[url.scheme] else f"{host}:{url.port}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
