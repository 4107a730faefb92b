"""The bootstrap: what Envoy starts with and never changes."""

from __future__ import annotations

from typing import Any

from zurelay.envoy.runtime import ADMIN_SOCKET, CLUSTERS_FILE, LISTENERS_FILE, Runtime
from zurelay.envoy.templates import dump, template


def bootstrap(runtime: Runtime) -> str:
    """Write bootstrap.json."""
    config = template("bootstrap.yaml")
    config["admin"]["address"]["pipe"]["path"] = runtime.path(ADMIN_SOCKET)
    for source, name in (("lds_config", LISTENERS_FILE), ("cds_config", CLUSTERS_FILE)):
        watched = config["dynamic_resources"][source]["path_config_source"]
        watched["path"] = runtime.path(name)
        watched["watched_directory"]["path"] = runtime.directory
    clusters = {cluster["name"]: cluster for cluster in config["static_resources"]["clusters"]}
    _endpoints(clusters["sidecar"], runtime.worker_sockets)
    _endpoints(clusters["status"], (runtime.status_socket,))
    heap, connections = config["overload_manager"]["resource_monitors"]
    heap["typed_config"]["max_heap_size_bytes"] = runtime.heap
    connections["typed_config"]["max_active_downstream_connections"] = runtime.connections
    return dump(config)


def _endpoints(cluster: dict[str, Any], sockets: tuple[str, ...]) -> None:
    cluster["load_assignment"]["endpoints"] = [
        {"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": path}}}} for path in sockets]}
    ]
