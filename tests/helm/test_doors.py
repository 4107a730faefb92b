"""Ways in: the Service, an Ingress, a Gateway's route, Prometheus."""

from __future__ import annotations

import pytest

from helm.charts import Values, at, golden, merged, of_kind, rendered, the

TLS = at("listen.tls.existingSecret.name", "tls")


@pytest.mark.parametrize(
    ("values", "name", "port"),
    [({}, "http", 80), (TLS, "https", 443), (merged(TLS, at("service.port", 8443)), "https", 8443)],
    ids=["plain", "TLS", "as said"],
)
def test_the_service_leads_to_the_listener_and_nowhere_else(values: Values, name: str, port: int) -> None:
    (found,) = the(rendered(values), "Service")["spec"]["ports"]
    assert found == {"name": name, "port": port, "targetPort": name, "protocol": "TCP", "appProtocol": name}


def test_a_load_balancer_can_be_asked_for() -> None:
    values = {
        "type": "LoadBalancer",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "externalTrafficPolicy": "Local",
        "ipFamilyPolicy": "PreferDualStack",
        "loadBalancerClass": "internal",
        "nodePort": 30080,
        "annotations": {"a": "b"},
    }
    found = the(rendered(at("service", values)), "Service")
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["spec"]["ports"][0]["nodePort"] == 30080
    for key in ("type", "loadBalancerSourceRanges", "externalTrafficPolicy", "ipFamilyPolicy", "loadBalancerClass"):
        assert found["spec"][key] == values[key]


def test_an_ingress_lets_the_api_through_and_nothing_else() -> None:
    (rule,) = the(golden("high-availability"), "Ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert (rule["host"], path["path"], path["pathType"]) == ("ai.example.com", "/v1", "Prefix")
    assert path["backend"]["service"] == {"name": "zurelay", "port": {"name": "http"}}


def test_a_gateway_s_route_cuts_no_stream() -> None:
    (rule,) = the(golden("high-availability"), "HTTPRoute")["spec"]["rules"]
    assert rule["timeouts"] == {"request": "0s"}
    assert rule["backendRefs"] == [{"name": "zurelay", "port": 80}]


def test_metrics_are_at_a_service_of_their_own() -> None:
    found = golden("high-availability")
    monitor = the(found, "ServiceMonitor")
    public, status = sorted(of_kind(found, "Service"), key=lambda each: str(each["metadata"]["name"]))
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= status["metadata"]["labels"].items()
    assert not wanted <= public["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"][0]["port"] == status["spec"]["ports"][0]["name"]
    assert status["spec"]["ports"][0]["port"] == 8081


def test_none_of_them_is_there_unasked() -> None:
    kinds = {document["kind"] for document in rendered()}
    assert kinds == {"ConfigMap", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"}


def test_an_account_of_one_s_own_can_be_used() -> None:
    found = rendered(at("serviceAccount", {"create": False, "name": "there"}))
    assert not of_kind(found, "ServiceAccount")
    assert the(found, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "there"
