"""Envoy's configuration: settings in, files out. Nothing here reads or writes the run directory; `reload` does."""

from zurelay.envoy.bootstrap import bootstrap
from zurelay.envoy.clusters import KINDS, clusters
from zurelay.envoy.launch import command
from zurelay.envoy.listeners import PEER_ADDRESS, PEER_URIS, listeners
from zurelay.envoy.runtime import (
    ADMIN_SOCKET,
    BOOTSTRAP_FILE,
    CLUSTERS_FILE,
    EGRESS_SOCKET,
    LISTENERS_FILE,
    Runtime,
)
from zurelay.envoy.sds import secrets
from zurelay.envoy.tracing import SPAN

__all__ = [
    "ADMIN_SOCKET",
    "BOOTSTRAP_FILE",
    "CLUSTERS_FILE",
    "EGRESS_SOCKET",
    "KINDS",
    "LISTENERS_FILE",
    "PEER_ADDRESS",
    "PEER_URIS",
    "SPAN",
    "Runtime",
    "bootstrap",
    "clusters",
    "command",
    "listeners",
    "secrets",
]
