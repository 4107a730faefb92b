"""What an operator would type wrongly is told when the chart is rendered, with its path and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from helm.charts import Values, at, merged, template
from tools import helm

REDIS = at("store.redis.existingSecret.name", "zurelay-redis")
SIDECAR_ONLY = merged(
    at("mode", "sidecar-only"),
    at("sidecarOnly", {"egress": "envoy.gateways:10001", "egressToken": {"existingSecret": {"name": "token"}}}),
    at("config.providers.openai.api_key", {"existingSecret": None, "file": "/run/secrets/openai"}),
)
ISTIO = merged(at("mesh.istio.enabled", True), at("callers.namespaces", ["payments"]))
KEY = "config.providers.openai.api_key"

WRONG: dict[str, tuple[Values, str]] = {
    "no provider": (at("config.providers.openai", None), "config.providers: no providers; at least one"),
    "no model": (at("config.models", None), "config.models: no models; at least one is needed"),
    "no Secret of the keys": (
        at("keys.existingSecret.name", ""),
        "keys.existingSecret.name: missing; config.auth.require key needs the Secret with keys.yaml",
    ),
    "a Secret without a name": (at(KEY, {"existingSecret": {"name": None}}), f"{KEY}.existingSecret: the name of"),
    "a Secret without a key": (at(KEY, {"existingSecret": {"key": None}}), f"{KEY}.existingSecret: the name of"),
    "a Secret as text": (at(KEY, {"existingSecret": "openai"}), f"{KEY}.existingSecret: the name of the Secret or"),
    "two places of a credential": (at(KEY, {"file": "/x"}), f"{KEY}: expected existingSecret alone"),
    "a credential in clear": (at(KEY, "sk-secret"), f"{KEY}: expected {{existingSecret: {{name: NAME, key: KEY}}}}"),
    "a variable that Envoy doesn't get": (
        at(KEY, {"existingSecret": None, "env": "OPENAI_API_KEY"}),
        f"{KEY}.env: this variable isn't in envoy.extraEnv",
    ),
    "another place of a credential": (at(KEY, {"existingSecret": None, "vault": "x"}), f"{KEY}: expected"),
    "a URL without a scheme": (
        at("config.providers.openai.base_url", "api.openai.com"),
        "config.providers.openai.base_url: expected a URL",
    ),
    "two stores": (
        merged(REDIS, at("store.sqlite.existingClaim", "spend")),
        "store: names two stores, sqlite.existingClaim and redis.existingSecret.name; keep one",
    ),
    "several pods, and keys with limits in SQLite": (
        at("replicaCount", 2),
        "replicaCount: 2 pods with limits need a Redis that they share: set store.redis.existingSecret.name",
    ),
    "several pods, and policies with limits in SQLite": (
        merged(
            at("replicaCount", 3),
            at("keys.limits", False),
            at("config.policies", [{"name": "a", "match": {}, "limits": {"usd_per_day": 1}}]),
        ),
        "replicaCount: 3 pods with limits need a Redis",
    ),
    "as many pods as the load wants, and limits in SQLite": (
        at("autoscaling", {"enabled": True, "minReplicas": 1, "maxReplicas": 5}),
        "autoscaling.maxReplicas: 5 pods with limits need a Redis",
    ),
    "several pods on one file": (
        merged(at("replicaCount", 2), at("keys.limits", False), at("store.sqlite.existingClaim", "spend")),
        "replicaCount: 2 pods can't share the SQLite file in store.sqlite.existingClaim",
    ),
    "a status port that is the public one": (at("status.port", 8080), "status.port: 8080 is listen.port too"),
    "the sidecar's port taken": (at("status.sidecarPort", 8081), "status.sidecarPort: 8081 is status.port too"),
    "the sidecar's gRPC port taken": (
        merged(SIDECAR_ONLY, at("sidecarOnly.port", 8082)),
        "status.sidecarPort: 8082 is sidecarOnly.port too",
    ),
    "a privileged port": (at("listen.port", 443), "listen.port: 443 needs a privilege that pods don't have"),
    "a port that is none": (at("listen.port", 80800), "port"),
    "scaling without requests of Envoy": (
        merged(REDIS, at("autoscaling.enabled", True), at("envoy.resources.requests.cpu", None)),
        "envoy.resources.requests.cpu: missing; autoscaling measures CPU in percent of it",
    ),
    "scaling without resources of the sidecar": (
        merged(REDIS, at("autoscaling.enabled", True), at("sidecar.resources", None)),
        "sidecar.resources.requests.cpu: missing",
    ),
    "less at most than at least": (
        merged(REDIS, at("autoscaling", {"enabled": True, "minReplicas": 5, "maxReplicas": 3})),
        "autoscaling.minReplicas: 5 is over maxReplicas, 3",
    ),
    "no bound of Envoy's memory": (
        at("envoy.resources.limits", None),
        "envoy.resources.limits.memory: missing; Envoy's heap is bounded at four fifths of it",
    ),
    "two bounds of evictions": (
        at("podDisruptionBudget.minAvailable", 1),
        "podDisruptionBudget: has minAvailable and maxUnavailable; keep one",
    ),
    "no way to replace a pod": (at("strategy.maxSurge", 0), "strategy.maxSurge: 0 with maxUnavailable 0"),
    "anyone may call": (at("config.auth.require", "none"), "config.auth.require: none lets anyone who reaches"),
    "workloads without identity": (
        at("config.auth.require", "workload"),
        "config.auth.require: workload needs config.identity.mode mtls or forwarded, or mesh.istio.enabled",
    ),
    "certificates without a Secret": (
        at("config.identity", {"mode": "mtls", "trust_domain": "example.org"}),
        "listen.tls.existingSecret.name: missing; config.identity.mode mtls needs certificate, key and authority",
    ),
    "a listener in the configuration": (
        at("config.listen", {"port": 9000}),
        "config.listen: is the chart's to write; set listen.port",
    ),
    "a store in the configuration": (
        at("config.store", {"redis": "redis://:pw@r"}),
        "config.store: is the chart's to write; set store.sqlite or store.redis",
    ),
    "a status listener in the configuration": (at("config.status", {}), "config.status: is the chart's to write"),
    "workers in the configuration": (at("config.workers", 4), "config.workers: is the chart's to write; set workers"),
    "keys in the configuration": (
        at("config.auth.keys", "k.yaml"),
        "config.auth.keys: is the chart's to write; set keys.existingSecret.name",
    ),
    "certificates in the configuration": (
        at("config.identity.cert", "/x"),
        "config.identity.cert: is the chart's to write; set listen.tls.existingSecret.name",
    ),
    "a mesh that lets no one in": (
        at("mesh.istio.enabled", True),
        "callers.namespaces: names no one",
    ),
    "a mesh and certificates of one's own": (
        merged(ISTIO, at("config.identity", {"mode": "mtls", "trust_domain": "a"})),
        "config.identity.mode: mtls doesn't go with mesh.istio",
    ),
    "a mesh and TLS": (
        merged(ISTIO, at("listen.tls.existingSecret.name", "tls")),
        "listen.tls.existingSecret.name: doesn't go with mesh.istio",
    ),
    "an Ingress without hosts": (at("ingress.enabled", True), "ingress.hosts: no host"),
    "a route without a Gateway": (at("httpRoute.enabled", True), "httpRoute.parentRefs: no Gateway"),
    "a name that begins with a digit": (at("fullnameOverride", "1gate"), "fullnameOverride: 1gate is no name of a"),
    "a label that selects": (
        at("podLabels", {"app.kubernetes.io/name": "x"}),
        "podLabels: app.kubernetes.io/name is what the Service finds its pods by",
    ),
    "a sidecar alone without Envoy's place": (
        merged(SIDECAR_ONLY, at("sidecarOnly.egress", "envoy")),
        "sidecarOnly.egress: expected HOST:PORT",
    ),
    "a sidecar alone without a token": (
        merged(SIDECAR_ONLY, at("sidecarOnly.egressToken.existingSecret.name", "")),
        "sidecarOnly.egressToken.existingSecret.name: missing",
    ),
    "a sidecar alone with an Ingress": (
        merged(SIDECAR_ONLY, at("ingress", {"enabled": True, "hosts": ["a"]})),
        "ingress.enabled: has no use with mode sidecar-only",
    ),
    "a sidecar alone in a mesh": (merged(SIDECAR_ONLY, ISTIO), "mesh.istio.enabled: has no use with mode"),
    "a sidecar alone with a provider's Secret": (
        merged(SIDECAR_ONLY, at(KEY, {"file": None, "existingSecret": {"name": "a", "key": "b"}})),
        f"{KEY}: has no use with mode sidecar-only",
    ),
    "a route to a provider that isn't there": (
        at("config.models.gpt-6-sol.routes", [{"provider": "opnai", "model": "m"}]),
        "config.models.gpt-6-sol.routes[0].provider: expected one of config.providers: openai",
    ),
    "a model without routes": (
        at("config.models.gpt-6-sol.routes", []),
        "config.models.gpt-6-sol.routes: a model needs at least one",
    ),
    "a collector without a scheme": (at("config.telemetry.otlp", "c:4317"), "config.telemetry.otlp: expected a URL"),
    "a collector's port alone": (at("config.telemetry.otlp", 4317), "config.telemetry.otlp: expected a URL"),
    "a word for who may call": (at("config.auth.require", "keys"), "config.auth.require: expected one of key,"),
    "a word for identity": (at("config.identity.mode", "tls"), "config.identity.mode: expected one of mtls,"),
    "a Secret's name that can't be one": (
        at(f"{KEY}.existingSecret.name", "My Secret"),
        f"{KEY}.existingSecret.name: can't be a Secret's name",
    ),
    "a Secret's key that can't be one": (
        at(f"{KEY}.existingSecret.key", "a/b"),
        f"{KEY}.existingSecret.key: can't be a key of a Secret",
    ),
    "neither bound of evictions": (
        at("podDisruptionBudget.maxUnavailable", None),
        "podDisruptionBudget: has neither minAvailable nor maxUnavailable",
    ),
    "no way to replace a pod, in percent": (
        at("strategy", {"maxSurge": "0%", "maxUnavailable": "0%"}),
        "strategy.maxSurge: 0 with maxUnavailable 0",
    ),
    "a listener that no one reaches": (at("listen.host", "127.0.0.1"), "listen.host: 127.0.0.1 is reached from inside"),
    "a node's port without nodes": (at("service.nodePort", 30080), "service.nodePort: has no use with service.type"),
    "a volume of the chart's": (
        at("extraVolumes", [{"name": "run", "emptyDir": {}}]),
        "extraVolumes: run is a volume of the chart's",
    ),
    "a URL for Envoy's place": (
        merged(SIDECAR_ONLY, at("sidecarOnly.egress", "http://envoy:10001")),
        "sidecarOnly.egress: expected HOST:PORT",
    ),
    "a port of Envoy's that is none": (
        merged(SIDECAR_ONLY, at("sidecarOnly.egress", "envoy:99999")),
        "sidecarOnly.egress: expected HOST:PORT",
    ),
    "a host with a scheme": (at("ingress", {"enabled": True, "hosts": ["https://a.example"]}), "ingress/hosts/0"),
    "a section of which nothing is left": (at("autoscaling", None), "missing property 'autoscaling'"),
    "a part of which nothing is left": (at("listen.tls", None), "missing property 'tls'"),
    "an unknown key": (at("replicas", 2), "replicas"),
    "a word for a number": (at("replicaCount", "two"), "replicaCount"),
    "no such mode": (at("mode", "sidecar"), "mode"),
    "a digest that is none": (at("envoy.image.digest", "latest"), "digest"),
    "a Secret's name that is none": (at("keys.existingSecret.name", "My_Keys"), "keys"),
}


@pytest.mark.parametrize(("values", "said"), WRONG.values(), ids=WRONG)
def test_it_is_told(values: Values, said: str) -> None:
    text, complaint = template(values)
    assert not text
    assert said in " ".join(complaint.split())
    assert "sk-secret" not in complaint
    assert ":pw@" not in complaint


@pytest.mark.parametrize("major", helm.MAJORS)
def test_all_of_it_is_told_at_once(major: int) -> None:
    _, complaint = template(at("replicaCount", 2), at("status.port", 8080), at("ingress.enabled", True), major=major)
    for path in ("replicaCount", "status.port", "ingress.hosts"):
        assert f"\n  {path}: " in complaint


RIGHT: dict[str, Any] = {
    "a variable that Envoy gets": merged(
        at(KEY, {"existingSecret": None, "env": "K"}), at("envoy.extraEnv", [{"name": "K", "value": "x"}])
    ),
    "variables that Envoy gets from a Secret": merged(
        at(KEY, {"existingSecret": None, "env": "K"}), at("envoy.extraEnvFrom", [{"secretRef": {"name": "s"}}])
    ),
    "a file of a volume of one's own": at(KEY, {"existingSecret": None, "file": "/vault/key"}),
    "no credential": at(KEY, None),
    "a place of a credential that is left out": at(KEY, {"existingSecret": None, "file": "/vault/key", "env": None}),
    "several pods without limits": merged(at("replicaCount", 2), at("keys.limits", False)),
    "several pods, policies without limits": merged(
        at("replicaCount", 2), at("keys.limits", False), at("config.policies", [{"name": "a", "match": {}}])
    ),
    "anyone may call, said twice": merged(
        at("config.auth", {"require": "none", "allow_open": True}), at("keys.existingSecret.name", "")
    ),
    "a part of a chart of charts": at("global", {"imageRegistry": "x"}),
    "a sidecar alone": SIDECAR_ONLY,
    "a mesh": ISTIO,
    "no pods for now": at("replicaCount", 0),
    "an address for Envoy's place": merged(SIDECAR_ONLY, at("sidecarOnly.egress", "[fd00::1]:10001")),
    "any host below one": at("ingress", {"enabled": True, "hosts": ["*.example.com"]}),
    "pods in percent": at("strategy", {"maxUnavailable": "25%", "maxSurge": 0}),
}


@pytest.mark.parametrize("values", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_rendered(values: Values) -> None:
    text, complaint = template(values)
    assert not complaint
    assert text
