"""The pod's manifest, as docs/kubernetes.md describes the pod."""

from __future__ import annotations

from typing import Any

_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_RESOURCES = {"requests": {"memory": "256Mi"}, "limits": {"memory": "1Gi"}}
_SIDECAR_MOUNTS = [
    {"name": "config", "mountPath": "/etc/zurelay/config", "readOnly": True},
    {"name": "data", "mountPath": "/var/lib/zurelay"},
    {"name": "run", "mountPath": "/run/zurelay"},
]
_ARGS = ["sidecar", "--config", "/etc/zurelay/config/zurelay.yaml", "--run-dir", "/run/zurelay"]
_MEMORY = {
    "name": "ZURELAY_ENVOY_MEMORY",
    "valueFrom": {"resourceFieldRef": {"containerName": "envoy", "resource": "limits.memory"}},
}


def deployment(drain_seconds: int) -> dict[str, Any]:
    """Make the Deployment for a cluster without native sidecars."""
    common = {"resources": _RESOURCES, "securityContext": _RESTRICTED}
    sidecar = {"image": "zurelay", "env": [_MEMORY], "volumeMounts": _SIDECAR_MOUNTS, **common}
    serving = ["--status-listen", "0.0.0.0:8082", "--drain-seconds", str(drain_seconds)]
    envoy = {
        "name": "envoy",
        "image": "envoy",
        "args": [
            *("--config-path", "/run/zurelay/bootstrap.json", "--concurrency", "1", "--drain-time-s", "660"),
            *("--drain-strategy", "immediate", "--disable-hot-restart", "--log-level", "warning"),
        ],
        "env": [{"name": "PROVIDER_KEY", "valueFrom": {"secretKeyRef": {"name": "provider", "key": "key"}}}],
        "volumeMounts": [{"name": "run", "mountPath": "/run/zurelay"}],
        **common,
    }
    spec = {
        "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532, "runAsNonRoot": True},
        "initContainers": [{"name": "prepare", "args": [*_ARGS, "--prepare"], **sidecar}],
        "containers": [{"name": "sidecar", "args": [*_ARGS, *serving], **sidecar}, envoy],
        "volumes": [
            {"name": "config", "configMap": {"name": "zurelay"}},
            {"name": "data", "emptyDir": {}},
            {"name": "run", "emptyDir": {}},
        ],
    }
    template = {"metadata": {"labels": {"app": "zurelay"}}, "spec": spec}
    return {"metadata": {"name": "zurelay-pod-test"}, "spec": {"template": template}}
