"""What an Envoy tells of itself on its admin interface, and what we would write: the same parts of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from zurelay.contract.values import at, normal

_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_PROCESSOR = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
_MUTATION = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
_SCRIPT = "envoy.extensions.filters.http.lua.v3.Lua"
_LOGGER = "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig"
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
# Where what is in force stands in the dumps of each kind (envoy.admin.v3); what still warms up stands elsewhere.
_PLACES = {
    "Listeners": (("static_listeners", "listener"), ("dynamic_listeners", "active_state.listener")),
    "Clusters": (("static_clusters", "cluster"), ("dynamic_active_clusters", "cluster")),
    "Routes": (("static_route_configs", "route_config"), ("dynamic_route_configs", "route_config")),
}


class NotEnvoyError(Exception):
    """What answers isn't an Envoy's admin interface."""


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A listener's HTTP connection manager that asks the sidecar, and the route that carries out its plans."""

    name: str
    phase: str
    listener: Any
    manager: Any
    processor: Any
    host: Any
    route: Any
    ends: Any  # the access loggers that tell the sidecar of ends
    beside: Any  # the filters that prepare for the processor, and those that see answers before it does


class Envoy(msgspec.Struct, frozen=True, kw_only=True):
    """One Envoy: its version, its runtime's values, doors and clusters, all `normal`."""

    version: str
    runtime: dict[str, str]
    doors: tuple[Door, ...]
    clusters: dict[str, Any]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What we would write. `message_limit` is the largest message that a worker takes, in bytes."""

    doors: tuple[Door, ...]
    clusters: dict[str, Any]
    sidecar: Any
    message_limit: int

    @classmethod
    def of(cls, listeners: list[Any], clusters: list[Any], sidecar: Any, message_limit: int) -> Wanted:
        """Take it from resources as they are written; `sidecar` is the cluster that leads to the workers."""
        return cls(
            doors=tuple(_doors(normal(listeners), {})),
            clusters={cluster["name"]: cluster for cluster in normal(clusters)},
            sidecar=normal(sidecar),
            message_limit=message_limit,
        )


def envoy(server_info: Any, runtime: Any, config_dump: Any) -> Envoy:
    """Take it from the answers of /server_info, /runtime and /config_dump."""
    version, entries, configs = at(server_info, "version"), at(runtime, "entries"), at(config_dump, "configs")
    if not isinstance(version, str) or not isinstance(entries, dict) or not isinstance(configs, list):
        raise NotEnvoyError("what answers isn't an Envoy's admin interface")
    routes = {str(at(route, "name")): route for route in _resources(configs, "Routes")}
    return Envoy(
        version=version.split("/")[1] if version.count("/") else version,
        runtime={name: str(at(entry, "final_value")) for name, entry in entries.items()},
        doors=tuple(_doors(list(_resources(configs, "Listeners")), routes)),
        clusters={str(at(cluster, "name")): cluster for cluster in _resources(configs, "Clusters")},
    )


def filters(cluster: Any) -> list[Any]:
    """Give the upstream HTTP filters of a cluster."""
    options = (at(cluster, "typed_extension_protocol_options") or {}).get(_OPTIONS)
    return at(options, "http_filters") or []


def speaks_http2(cluster: Any) -> bool:
    """Tell whether a cluster speaks HTTP/2 without asking first, as gRPC needs it."""
    options = (at(cluster, "typed_extension_protocol_options") or {}).get(_OPTIONS)
    return at(options, "explicit_http_config.http2_protocol_options") is not None


def typed(filter_: Any, kind: str) -> Any:
    """Give a filter's configuration if it is of this kind (its type's full name)."""
    config = at(filter_, "typed_config")
    return config if str(at(config, "@type")).rpartition("/")[2] == kind else None


def processors(found: list[Any]) -> Iterator[Any]:
    """Give the external processors among filters."""
    yield from (config for each in found if (config := typed(each, _PROCESSOR)) is not None)


def phase(processor: Any) -> str:
    """Tell which phase an external processor is of; empty for those that aren't ours."""
    pairs = at(processor, "grpc_service.initial_metadata") or []
    return next((str(at(pair, "value")) for pair in pairs if at(pair, "key") == "phase"), "")


def _resources(configs: list[Any], kind: str) -> Iterator[Any]:
    """Give what is in force of a kind."""
    for dump in configs:
        if str(at(dump, "@type")).endswith(f".{kind}ConfigDump"):
            for group, inner in _PLACES[kind]:
                found = (at(entry, inner) for entry in at(dump, group) or [])
                yield from (normal(resource) for resource in found if resource is not None)


def _doors(listeners: list[Any], routes: dict[str, Any]) -> Iterator[Door]:
    for listener in listeners:
        for manager in _managers(listener):
            config = at(manager, "route_config") or routes.get(str(at(manager, "rds.route_config_name")))
            host, route = _planned(config)
            found = at(manager, "http_filters") or []
            for processor in processors(found):
                if phase(processor):
                    yield Door(
                        name=str(at(listener, "name")),
                        phase=phase(processor),
                        listener=listener,
                        manager=manager,
                        processor=processor,
                        host=host,
                        route=route,
                        ends=_ends(manager),
                        beside=_beside(found, processor),
                    )


def _ends(manager: Any) -> Any:
    """Find the access loggers that send to a gRPC service; others are their owner's."""
    loggers = at(manager, "access_log") or []
    return {"access_log": [each for each in loggers if typed(each, _LOGGER) is not None] or None}


def _beside(found: list[Any], processor: Any) -> Any:
    """Find what matters around a processor: header mutations before it, scripts after it; others are their owner's."""
    here = next(number for number, each in enumerate(found) if at(each, "typed_config") is processor)
    before, after = (
        [config for each in side if (config := typed(each, kind)) is not None] or None
        for side, kind in ((found[:here], _MUTATION), (found[here:], _SCRIPT))
    )
    return {"http_filters before ext_proc": before, "http_filters after ext_proc": after}


def _managers(listener: Any) -> Iterator[Any]:
    chains = [*(at(listener, "filter_chains") or []), at(listener, "default_filter_chain")]
    for chain in chains:
        for each in at(chain, "filters") or []:
            if (manager := typed(each, _MANAGER)) is not None:
                yield manager


def _planned(config: Any) -> tuple[Any, Any]:
    """Find the route that goes by plans, and its virtual host."""
    for host in at(config, "virtual_hosts") or []:
        for route in at(host, "routes") or []:
            if at(route, "route.inline_cluster_specifier_plugin") is not None:
                return host, route
    return None, None
