"""The same configuration for an Envoy of someone else's, which reaches the sidecar by TCP."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec

from zurelay.envoy.bootstrap import bootstrap
from zurelay.envoy.clusters import clusters
from zurelay.envoy.listeners import listeners
from zurelay.envoy.runtime import Runtime
from zurelay.envoy.sds import secrets
from zurelay.model import Settings

Address = tuple[str, int]

_OURS = ("node", "layered_runtime", "typed_dns_resolver_config")
# The watched files and the status listener are those of an Envoy with a run directory.
_LISTENERS = ("ingress", "egress")
_CLUSTERS = ("sidecar", "refuse")


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sidecar is, where Envoy shall listen for what it relays, and what stands on Envoy's own file system.

    `environ` are the variables that say where telemetry goes.
    """

    sidecar: Address
    egress: Address
    authorities: str = "/etc/ssl/certs/ca-certificates.crt"
    admin: Address = ("127.0.0.1", 9901)
    environ: dict[str, str] = {}


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What such an Envoy needs: the bootstrap's own part, secrets (named, never shown), listeners, clusters."""

    bootstrap: dict[str, Any]
    secrets: list[Any]
    listeners: list[Any]
    clusters: list[Any]


def parts(settings: Settings, place: Elsewhere) -> Parts:
    """Make the parts."""
    runtime = Runtime(
        directory="/run",
        worker_sockets=("/run/w",),
        status_socket="/run/s",
        ca_bundle=place.authorities,
        environ=place.environ,
    )
    boot = msgspec.json.decode(bootstrap(runtime))
    ours = [one for one in boot["static_resources"]["clusters"] if one["name"] in _CLUSTERS]
    for one in ours:
        if one["name"] == "sidecar":
            _lead(one, place.sidecar)
    doors = [one for one in _resources(listeners(settings, runtime)) if one["name"] in _LISTENERS]
    for door in doors:
        if door["name"] == "egress":
            host, port = place.egress
            door["address"] = {"socket_address": {"address": host, "port_value": port}}
    found = [one for text in secrets(settings).values() for one in _resources(text)]
    return Parts(
        bootstrap={key: boot[key] for key in _OURS},
        secrets=[_bare(one) for one in found],
        listeners=[_static(_bare(one)) for one in doors],
        clusters=[_static(_bare(one)) for one in (*ours, *_resources(clusters(settings, runtime)))],
    )


def whole(settings: Settings, place: Elsewhere) -> dict[str, Any]:
    """Make a whole configuration: for an Envoy that does nothing else, or to take pieces from."""
    found = parts(settings, place)
    host, port = place.admin
    return {
        **found.bootstrap,
        "admin": {"address": {"socket_address": {"address": host, "port_value": port}}},
        "static_resources": {"listeners": found.listeners, "clusters": found.clusters, "secrets": found.secrets},
    }


def _resources(text: str) -> list[Any]:
    found: list[Any] = msgspec.json.decode(text)["resources"]
    return found


def _bare(resource: dict[str, Any]) -> dict[str, Any]:
    """Take a resource out of its envelope: where it stands says its type."""
    return {key: value for key, value in resource.items() if key != "@type"}


def _static(value: Any) -> Any:
    """Let secrets be found among the static ones: what names a place to watch is for a run directory."""
    if isinstance(value, dict):
        found = {key: _static(item) for key, item in value.items()}
        return {"name": found["name"]} if found.keys() == {"name", "sds_config"} else found
    return [_static(item) for item in value] if isinstance(value, list) else value


def _lead(cluster: dict[str, Any], sidecar: Address) -> None:
    host, port = sidecar
    cluster["type"] = "STATIC" if _is_address(host) else "STRICT_DNS"
    address = {"socket_address": {"address": host, "port_value": port}}
    cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
