"""Envoy's configuration: settings in, files out. Nothing here reads or writes the run directory; `reload` does."""

from zurelay.envoy.bootstrap import bootstrap
from zurelay.envoy.clusters import KINDS, clusters
from zurelay.envoy.elsewhere import Elsewhere, whole
from zurelay.envoy.launch import command
from zurelay.envoy.listeners import PEER_ADDRESS, PEER_URIS, listeners, message_limit
from zurelay.envoy.manifests import envoy_gateway, istio
from zurelay.envoy.runtime import (
    ADMIN_SOCKET,
    BOOTSTRAP_FILE,
    CLUSTERS_FILE,
    EGRESS_SOCKET,
    LISTENERS_FILE,
    Runtime,
)
from zurelay.envoy.sds import secrets
from zurelay.envoy.tracing import is_collector

__all__ = [
    "ADMIN_SOCKET",
    "BOOTSTRAP_FILE",
    "CLUSTERS_FILE",
    "EGRESS_SOCKET",
    "KINDS",
    "LISTENERS_FILE",
    "PEER_ADDRESS",
    "PEER_URIS",
    "Elsewhere",
    "Runtime",
    "bootstrap",
    "clusters",
    "command",
    "envoy_gateway",
    "is_collector",
    "istio",
    "listeners",
    "message_limit",
    "secrets",
    "whole",
]
