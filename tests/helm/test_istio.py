"""Istio: providers are known to zurelay's namespace alone, callers by their certificates."""

from __future__ import annotations

import yaml

from helm.charts import at, config, golden, merged, of_kind, rendered, the

ISTIO = merged(at("mesh.istio.enabled", True), at("callers.namespaces", ["payments"]))
FOUND = golden("istio")


def test_each_provider_outside_is_exported_to_this_namespace_alone() -> None:
    entries = {entry["spec"]["hosts"][0]: entry["spec"] for entry in of_kind(FOUND, "ServiceEntry")}
    assert set(entries) == {"api.anthropic.com", "192-0-2-7.zurelay.internal"}
    assert all(entry["exportTo"] == ["."] and entry["location"] == "MESH_EXTERNAL" for entry in entries.values())
    named, numbered = entries["api.anthropic.com"], entries["192-0-2-7.zurelay.internal"]
    assert named["resolution"] == "DNS"
    assert sorted(port["number"] for port in named["ports"]) == [443, 8443]
    assert {port["protocol"] for port in named["ports"]} == {"TLS"}
    assert numbered["addresses"] == ["192.0.2.7"]
    assert numbered["resolution"] == "NONE"
    assert [port["protocol"] for port in numbered["ports"]] == ["HTTP"]


def test_identity_comes_from_the_proxy_in_the_pod() -> None:
    assert config(FOUND)["identity"] == {
        "mode": "forwarded",
        "trusted": ["127.0.0.6/32", "::6/128"],
        "trust_domain": "prod.example.com",
    }


def test_what_the_values_say_of_identity_is_kept() -> None:
    said = {"mode": "forwarded", "trusted": ["10.0.0.1/32"], "trust_domain": "a"}
    assert config(rendered(ISTIO, at("config.identity", said)))["identity"] == said


def test_clear_text_is_refused_where_the_certificate_is_looked_at() -> None:
    assert the(FOUND, "PeerAuthentication")["spec"]["mtls"] == {"mode": "STRICT"}


def test_named_callers_alone_get_in() -> None:
    spec = the(FOUND, "AuthorizationPolicy")["spec"]
    assert spec["action"] == "ALLOW"
    (rule,) = spec["rules"]
    assert rule["from"] == [
        {"source": {"namespaces": ["payments", "search", "zurelay"]}},
        {"source": {"principals": ["prod.example.com/ns/batch/sa/nightly"]}},
    ]
    assert rule["to"] == [{"operation": {"ports": ["8080"], "paths": ["/v1/*"]}}]


def test_the_policies_are_those_of_the_pods() -> None:
    labels = the(FOUND, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind in ("PeerAuthentication", "AuthorizationPolicy"):
        wanted = the(FOUND, kind)["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= labels.items()


def test_the_mesh_s_proxy_outlives_the_streams_and_leaves_probes_alone() -> None:
    metadata = the(FOUND, "Deployment")["spec"]["template"]["metadata"]
    assert metadata["labels"]["sidecar.istio.io/inject"] == "true"
    assert metadata["annotations"]["traffic.sidecar.istio.io/excludeInboundPorts"] == "8081,8082"
    assert yaml.safe_load(metadata["annotations"]["proxy.istio.io/config"]) == {
        "holdApplicationUntilProxyStarts": True,
        "proxyMetadata": {"EXIT_ON_ZERO_ACTIVE_CONNECTIONS": "true"},
    }


def test_the_mesh_sends_nothing_twice_that_arrived() -> None:
    spec = the(FOUND, "VirtualService")["spec"]
    assert spec["hosts"] == ["zurelay"]
    assert spec["http"][0]["retries"]["retryOn"] == "connect-failure,refused-stream"
