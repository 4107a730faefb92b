"""The configuration for an Envoy elsewhere, as Istio's and Envoy Gateway's resources."""

from __future__ import annotations

from typing import Any

from zurelay.envoy.elsewhere import Elsewhere, parts
from zurelay.model import Settings

_TYPES = "type.googleapis.com/envoy.config"


def istio(settings: Settings, place: Elsewhere) -> list[dict[str, Any]]:
    """Make one EnvoyFilter for the gateway's workload; what its labels are is its owner's to say."""
    found = parts(settings, place)
    boot = {"layered_runtime": found.bootstrap["layered_runtime"], "static_resources": {"secrets": found.secrets}}
    patches = [
        {"applyTo": "BOOTSTRAP", "patch": {"operation": "MERGE", "value": boot}},
        *(_added("CLUSTER", cluster) for cluster in found.clusters),
        *(_added("LISTENER", listener) for listener in found.listeners),
    ]
    selector = {"labels": {"istio": "ingressgateway"}}
    return [
        {
            "apiVersion": "networking.istio.io/v1alpha3",
            "kind": "EnvoyFilter",
            "metadata": {"name": "zurelay"},
            "spec": {"workloadSelector": selector, "configPatches": patches},
        }
    ]


def envoy_gateway(settings: Settings, place: Elsewhere) -> list[dict[str, Any]]:
    """Make an EnvoyProxy for the bootstrap, and an EnvoyPatchPolicy for listeners and clusters."""
    found = parts(settings, place)
    (layer,) = found.bootstrap["layered_runtime"]["layers"]
    boot = [
        {"op": "add", "path": "/layered_runtime/layers/-", "value": {**layer, "name": "zurelay"}},
        {"op": "add", "path": "/static_resources/secrets", "value": found.secrets},
    ]
    patches = [
        *(_patched("cluster.v3.Cluster", cluster) for cluster in found.clusters),
        *(_patched("listener.v3.Listener", listener) for listener in found.listeners),
    ]
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "zurelay"}
    return [
        {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1",
            "kind": "EnvoyProxy",
            "metadata": {"name": "zurelay"},
            "spec": {"bootstrap": {"type": "JSONPatch", "jsonPatches": boot}},
        },
        {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1",
            "kind": "EnvoyPatchPolicy",
            "metadata": {"name": "zurelay"},
            "spec": {"targetRef": target, "type": "JSONPatch", "jsonPatches": patches},
        },
    ]


def _added(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"applyTo": kind, "match": {"context": "GATEWAY"}, "patch": {"operation": "ADD", "value": value}}


def _patched(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    operation = {"op": "add", "path": "", "value": value}
    return {"type": f"{_TYPES}.{kind}", "name": value["name"], "operation": operation}
