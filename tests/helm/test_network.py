"""NetworkPolicies: who reaches the pods, and where they reach."""

from __future__ import annotations

from typing import Any

import pytest

from helm.charts import Document, Values, at, golden, merged, of_kind, rendered, the

BASE_URL = "config.providers.openai.base_url"
CREDENTIAL = at("config.providers.openai.api_key", None)
DNS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]


def policy(*values: Values) -> Document:
    spec: Document = the(rendered(*values), "NetworkPolicy")["spec"]
    return spec


def exits(*values: Values) -> list[Any]:
    """The ports that pods may reach, by rule; DNS first."""
    return [[port["port"] for port in rule.get("ports", ())] for rule in policy(*values)["egress"]]


def test_its_own_namespace_and_chosen_ones_reach_the_listener_alone() -> None:
    rule, metrics = policy(at("callers.namespaces", ["payments"]))["ingress"]
    assert rule["ports"] == [{"port": 8080, "protocol": "TCP"}]
    own, chosen = rule["from"]
    assert own == {"podSelector": {}}
    (expression,) = chosen["namespaceSelector"]["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["payments"]}
    assert metrics["ports"] == [{"port": 8081, "protocol": "TCP"}]


def test_other_peers_can_be_let_in() -> None:
    peer = {"ipBlock": {"cidr": "10.1.0.0/16"}}
    rules = policy(at("networkPolicy.ingress", {"extraFrom": [peer], "metricsFrom": []}))["ingress"]
    assert [peer in rule["from"] for rule in rules] == [True]


EXITS = {
    "a provider by https": ({}, [[53, 53], [443]]),
    "a provider at a port": (at(BASE_URL, "https://a.example.com:8443/v1"), [[53, 53], [8443]]),
    "a provider by http": (at(BASE_URL, "http://a.example.com"), [[53, 53], [80]]),
    "two providers at one port": (
        at("config.providers.b", {"base_url": "https://b.example.com", "format": "openai"}),
        [[53, 53], [443]],
    ),
    "an IPv6 address": (at(BASE_URL, "http://[2001:db8::1]:8000/v1"), [[53, 53], [8000]]),
    "this pod itself": (at(BASE_URL, "http://127.0.0.1:8000/v1"), [[53, 53]]),
    "a model in the cluster": (at(BASE_URL, "http://vllm.models:8000"), [[53, 53], [8000]]),
    "a collector": (at("config.telemetry", {"otlp": "http://collector.obs:4317"}), [[53, 53], [443], [4317]]),
    "a collector at its usual port": (at("config.telemetry", {"otlp": "http://c.obs"}), [[53, 53], [443], [4317]]),
    "a collector without a port": (
        at("config.telemetry", {"otlp": "https://collector.obs/"}),
        [[53, 53], [443], [4317]],
    ),
    "a Redis": (at("store.redis", {"existingSecret": {"name": "r"}, "port": 6380}), [[53, 53], [443], [6380]]),
    "more": (
        at("networkPolicy.egress.extra", [{"ports": [{"port": 9, "protocol": "TCP"}]}]),
        [[53, 53], [443], [9]],
    ),
}


@pytest.mark.parametrize(("values", "ports"), EXITS.values(), ids=EXITS)
def test_pods_reach_what_the_values_name(values: Values, ports: list[list[int]]) -> None:
    assert ports == exits(values)


PLACES = {
    "https://api.openai.com/v1": "outside",
    "https://models.example.svc.example.com": "inside",
    "http://vllm": "inside",
    "http://vllm.models:8000": "inside",
    "https://example.com": "outside",
    "http://vllm.models.svc:8000": "inside",
    "http://vllm.models.svc.cluster.local:8000": "inside",
    "http://192.0.2.7:8000": "outside",
    "https://EXAMPLE.com": "outside",
}


@pytest.mark.parametrize(("url", "place"), PLACES.items(), ids=PLACES)
def test_a_provider_in_the_cluster_is_found_by_its_pods(url: str, place: str) -> None:
    rule = policy(at(BASE_URL, url))["egress"][1]
    assert ("outside" if "ipBlock" in rule["to"][0] else "inside") == place


def test_the_clouds_metadata_are_left_out() -> None:
    first, second = policy()["egress"][1]["to"]
    assert first["ipBlock"] == {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]}
    assert second["ipBlock"] == {"cidr": "::/0", "except": ["fd00:ec2::254/128"]}


def test_no_network_of_providers_is_none_and_not_all() -> None:
    extra = [{"to": [{"ipBlock": {"cidr": "10.0.0.7/32"}}]}]
    found = policy(at("networkPolicy.egress", {"providerCIDRs": [], "extra": extra}))["egress"]
    assert found == [{"ports": DNS}, *extra]


def test_names_are_resolved_anywhere() -> None:
    assert policy()["egress"][0] == {"ports": DNS}


def test_it_can_be_left_out() -> None:
    assert not of_kind(rendered(at("networkPolicy.enabled", False)), "NetworkPolicy")


def test_a_sidecar_alone_reaches_your_envoy() -> None:
    found = the(golden("sidecar-only"), "NetworkPolicy")["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in found["egress"]] == [[53, 53], [10001]]
    assert found["ingress"][0]["ports"] == [{"port": 9000, "protocol": "TCP"}]


def test_applications_are_kept_in_the_cluster() -> None:
    values = merged(CREDENTIAL, at("mesh.networkPolicy", {"namespaces": ["a", "b"], "allowedCIDRs": ["10.0.0.0/8"]}))
    found = [each for each in of_kind(rendered(values), "NetworkPolicy") if each["metadata"]["namespace"] != "zurelay"]
    assert [each["metadata"]["namespace"] for each in found] == ["a", "b"]
    for each in found:
        assert each["spec"] == {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {"ports": DNS},
                {"to": [{"namespaceSelector": {}}]},
                {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            ],
        }
