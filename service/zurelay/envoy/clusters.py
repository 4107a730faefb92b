"""Providers as Envoy's clusters: one that connects to each, and in front of it three for each of its routes."""

from __future__ import annotations

import ipaddress
from typing import Any

from zurelay import otel
from zurelay.envoy import sds, tracing
from zurelay.envoy.runtime import Runtime
from zurelay.envoy.templates import discovery, literal, template
from zurelay.model import Format, Http, Provider, Settings, Url
from zurelay.otel import Signal

KINDS = ("first", "whole", "stream")

_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
# A connection is given up before the server does: Uvicorn, in front of most self-hosted models, closes after 5 s,
# nginx, load balancers and the big providers after 60 s or more.
_IDLE_PLAIN, _IDLE_TLS = "4s", "50s"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACE_HEADERS = frozenset({"traceparent", "tracestate"})  # they reach a provider where `telemetry.propagate` says so
_CREDENTIALS = ("authorization", "x-api-key", "api-key")
# Headers of the client that reach a provider (SPEC 3): a provider that sets one doesn't take it from the others.
_PASSED = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "idempotency-key", "user-agent"})


def clusters(settings: Settings, runtime: Runtime) -> str:
    """Write clusters.json."""
    added = _added_headers(settings)
    kept = _TRACE_HEADERS if settings.telemetry.propagate else frozenset()
    routes = [route for model in settings.models.values() for route in model.routes]
    used = dict.fromkeys(route.provider for route in routes)
    return discovery(
        _collectors(settings, runtime)
        + [_provider(settings.providers[name], runtime) for name in used]
        + [
            _attempt(f"{route.name}.{kind}", kind, settings.providers[route.provider], runtime, added, kept)
            for route in routes
            for kind in KINDS
        ]
    )


def _collectors(settings: Settings, runtime: Runtime) -> list[dict[str, Any]]:
    export = otel.export(settings.telemetry, runtime.environ)
    target = export.to(Signal.TRACES) if export is not None else None
    return [] if target is None else [tracing.collector(target, runtime.ca_bundle)]


def provider_cluster(provider: Provider) -> str:
    """Name the cluster that connects to a provider; no kind is called so, no route's cluster can be."""
    return f"{sds.identity(provider)}.provider"


def _provider(provider: Provider, runtime: Runtime) -> dict[str, Any]:
    cluster: dict[str, Any] = template("cluster.yaml")["provider"]
    url = provider.base_url
    cluster["name"] = cluster["load_assignment"]["cluster_name"] = provider_cluster(provider)
    if _is_address(url.host):
        del cluster["cluster_type"]
        cluster["type"] = "STATIC"
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["hostname"] = _authority(url)
    endpoint["address"]["socket_address"].update(address=url.host, port_value=url.port)
    _protocol(cluster["typed_extension_protocol_options"][_OPTIONS], provider)
    if url.scheme == "https":
        cluster["transport_socket"] = _transport(provider, runtime)
    return cluster


def _protocol(options: dict[str, Any], provider: Provider) -> None:
    tls = provider.base_url.scheme == "https"
    options["common_http_protocol_options"]["idle_timeout"] = _IDLE_TLS if tls else _IDLE_PLAIN
    http1 = options.pop("explicit_http_config")["http_protocol_options"]
    # A connection that died in silence must not take every new request with it.
    http2 = {"connection_keepalive": {"interval": "30s", "timeout": "10s"}}
    if provider.http is Http.AUTO and tls:
        options["auto_config"] = {"http_protocol_options": http1, "http2_protocol_options": http2}
    elif provider.http is Http.HTTP2:
        options["explicit_http_config"] = {"http2_protocol_options": http2}
    else:
        # Also AUTO without TLS: there is nothing to negotiate by.
        options["explicit_http_config"] = {"http_protocol_options": http1}


def _transport(provider: Provider, runtime: Runtime) -> dict[str, Any]:
    host = provider.base_url.host
    context: dict[str, Any] = {"@type": _TLS}
    validation: dict[str, Any] = {}
    if _is_address(host):
        # No name, no SNI (RFC 6066, 3): the certificate must carry the address.
        validation["match_typed_subject_alt_names"] = [{"san_type": "IP_ADDRESS", "matcher": {"exact": host}}]
    else:
        # A trusted authority signs for any host: the certificate must be for this one.
        context.update(sni=host, auto_sni_san_validation=True)
    if provider.ca is None:
        validation["trusted_ca"] = {"filename": runtime.ca_bundle}
        context["common_tls_context"] = {"validation_context": validation}
    else:
        # As a secret, so that a replaced file is taken up.
        source = sds.reference(sds.authority_secret(provider), runtime)
        combined = {"default_validation_context": validation, "validation_context_sds_secret_config": source}
        context["common_tls_context"] = {"combined_validation_context": combined}
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _attempt(
    name: str, kind: str, provider: Provider, runtime: Runtime, added: list[str], kept: frozenset[str]
) -> dict[str, Any]:
    loaded = template("cluster.yaml")
    cluster: dict[str, Any] = loaded["attempt"]
    cluster["name"] = name
    cluster["cluster_type"]["typed_config"]["clusters"][0] = provider_cluster(provider)
    options = cluster["typed_extension_protocol_options"][_OPTIONS]
    processor, mutation, credential, codec = options["http_filters"]
    _processor(processor["typed_config"], loaded["modes"][kind], kind, added)
    mutations = mutation["typed_config"]["mutations"]
    general = [each for each in mutations["request_mutations"] if each.get("remove") not in kept]
    mutations["request_mutations"] = general + _mutations(provider, added)
    options["http_filters"] = [processor, mutation, *_credential(credential, provider, runtime), codec]
    return cluster


def _processor(config: dict[str, Any], mode: dict[str, Any], kind: str, added: list[str]) -> None:
    config.update(mode)
    config["grpc_service"]["initial_metadata"] = [{"key": "phase", "value": kind}]
    hidden = [{"exact": name} for name in (*_CREDENTIALS, *added)]
    config["forward_rules"]["disallowed_headers"]["patterns"] = hidden


def _mutations(provider: Provider, added: list[str]) -> list[dict[str, Any]]:
    ours = {"accept-encoding": "identity", **{name.lower(): value for name, value in provider.headers.items()}}
    return [{"remove": name} for name in added] + [
        {"append": {"header": {"key": key, "value": literal(value)}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}}
        for key, value in ours.items()
    ]


def _added_headers(settings: Settings) -> list[str]:
    """List every header that some provider adds: an attempt sees what the one before it left on the request."""
    names = {name.lower() for provider in settings.providers.values() for name in provider.headers}
    names |= {provider.auth_header.lower() for provider in settings.providers.values() if provider.auth_header}
    return sorted(name for name in names - _PASSED if not name.startswith("x-stainless-"))


def _credential(filter_: dict[str, Any], provider: Provider, runtime: Runtime) -> list[dict[str, Any]]:
    if provider.api_key is None:
        return []
    generic = filter_["typed_config"]["credential"]["typed_config"]
    generic["credential"] = sds.reference(sds.provider_secret(provider), runtime)
    if provider.auth_header is not None:
        generic["header"] = provider.auth_header.lower()
    elif provider.format is Format.ANTHROPIC:
        generic["header"] = "x-api-key"
    else:
        generic.update(header="authorization", header_value_prefix="Bearer ")
    return [filter_]


def _authority(url: Url) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == _DEFAULT_PORTS[url.scheme] else f"{host}:{url.port}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
