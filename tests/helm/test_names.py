"""Names that YAML would take for something else stay names: there are namespaces called 123, and Secrets called 1e3."""

from __future__ import annotations

from typing import Any

import pytest

from helm.charts import Document, Values, at, everything, merged, rendered, template
from helm.test_problems import ISTIO, KEY, SIDECAR_ONLY
from tools import chart, helm

# Where Kubernetes wants text, whatever it says.
TEXTS = (
    *("name", "namespace", "secretName", "claimName", "key", "path", "sizeLimit", "serviceAccountName"),
    *("priorityClassName", "runtimeClassName", "ingressClassName", "loadBalancerClass", "host"),
)
SECRET = {"name": "1e3", "key": "0123"}
ODD: dict[str, Values] = {
    "the whole name": at("fullnameOverride", "true"),
    "the chart's name": at("nameOverride", "1e3"),
    "Secrets of the pod": merged(
        at("keys.existingSecret", SECRET),
        at("store.redis.existingSecret", SECRET),
        at(f"{KEY}.existingSecret", SECRET),
        at("listen.tls.existingSecret.name", "123"),
    ),
    "a claim": merged(at("store.sqlite.existingClaim", "123")),
    "a size": at("store.sqlite.sizeLimit", "1e9"),
    "the test's Secret": at("test.existingSecret", SECRET),
    "the egress token": merged(SIDECAR_ONLY, at("sidecarOnly.egressToken.existingSecret", SECRET)),
    "classes": merged(
        at("priorityClassName", "123"),
        at("runtimeClassName", "true"),
        at("ingress", {"enabled": True, "hosts": ["a"], "className": "1e3"}),
        at("service", {"type": "LoadBalancer", "loadBalancerClass": "null"}),
    ),
    "an account": at("serviceAccount.name", "123"),
    "callers": merged(ISTIO, at("callers.namespaces", ["123", "true"])),
    "applications' namespaces": at("mesh.networkPolicy.namespaces", ["123", "true"]),
}


def not_text(found: list[Document]) -> list[tuple[str, Any]]:
    """Find what Kubernetes would refuse: a name, label or argument that isn't text."""
    wrong = []
    for each in everything(found):
        wrong += [(key, each[key]) for key in TEXTS if key in each and not isinstance(each[key], str | dict)]
        for group in ("labels", "matchLabels", "annotations"):
            pairs = each.get(group) or {}
            wrong += [(f"{group}.{key}", value) for key, value in pairs.items() if not isinstance(value, str)]
        wrong += [("args", value) for value in each.get("args", ()) if not isinstance(value, str)]
    return wrong


@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
def test_a_name_stays_text(values: Values) -> None:
    for major in helm.MAJORS:
        assert not_text(rendered(values, major=major)) == []


def test_so_do_the_release_and_a_log_level() -> None:
    assert not_text(rendered(at("envoy.logLevel", "off"), release="true")) == []


@pytest.mark.parametrize(
    "values",
    [
        *(at("nameOverride", name) for name in ("My_Gate", "my.gate")),
        *(at("fullnameOverride", name) for name in ("Gate", "my.gate", "1gate", "gate.")),
    ],
    ids=str,
)
def test_what_can_t_be_a_service_s_name_is_told(values: Values) -> None:
    text, complaint = template(values)
    assert not text
    assert "fullnameOverride: " in complaint
    assert "is no name of a Service" in complaint


def test_the_longest_names_render() -> None:
    found = rendered(ISTIO, at("serviceMonitor.enabled", True), release="a" * 53, version=chart.OLD)
    assert max(len(each["metadata"]["name"]) for each in found) <= 63
