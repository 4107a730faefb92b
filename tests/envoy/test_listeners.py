import json
from typing import Any

import pytest

from envoy_testbed import provider, runtime, settings
from zurelay import envoy
from zurelay.model import Identity, IdentityMode, Limits, Listen, Streaming, Telemetry, Timeouts, Tls

MIB = 1 << 20


def rendered(**facts: Any) -> dict[str, Any]:
    text = envoy.listeners(settings(provider("p", "http://127.0.0.1:1"), **facts), runtime())
    assert "SET" not in text
    return {listener["name"]: listener for listener in json.loads(text)["resources"]}


def manager(listener: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return found


def metadata(listener: dict[str, Any]) -> dict[str, str]:
    service = manager(listener)["http_filters"][0]["typed_config"]["grpc_service"]
    return {each["key"]: each["value"] for each in service["initial_metadata"]}


def test_each_listener_is_where_the_settings_say() -> None:
    found = rendered(listen=Listen(port=80, host="::"), status=Listen(port=81, host="0.0.0.0"))

    assert {name: listener["address"] for name, listener in found.items()} == {
        "ingress": {"socket_address": {"address": "::", "port_value": 80, "ipv4_compat": True}},
        "egress": {"pipe": {"path": "/run/zurelay/egress.sock", "mode": 0o600}},
        "status": {"socket_address": {"address": "0.0.0.0", "port_value": 81}},
    }


def test_only_the_ingress_drains_with_inboundonly() -> None:
    assert {name: each.get("traffic_direction") for name, each in rendered().items()} == {
        "ingress": "INBOUND",
        "egress": "OUTBOUND",
        "status": None,
    }


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), 65 * MIB),
        (Limits(request_body=8 * MIB, response_body=32 * MIB), 32 * MIB),
        (Limits(request_body=32 * MIB, response_body=8 * MIB), 33 * MIB),
    ],
)
def test_the_buffer_holds_the_largest_request_rewritten_and_the_largest_answer(limits: Limits, expected: int) -> None:
    found = rendered(limits=limits)

    for name in ("ingress", "egress"):
        (route,) = manager(found[name])["route_config"]["virtual_hosts"][0]["routes"]
        assert route["request_body_buffer_limit"] == expected


def test_envoys_patience_is_above_ours() -> None:
    found = rendered(timeouts=Timeouts(total=100, idle=7))

    assert manager(found["ingress"])["stream_idle_timeout"] == "130.000s"
    assert manager(found["egress"])["stream_idle_timeout"] == "130.000s"
    assert found["ingress"]["per_connection_buffer_high_watermark_timeout"] == "7.000s"


@pytest.mark.parametrize(
    ("identity", "told", "forwarded"),
    [
        (Identity(), {}, "SANITIZE"),
        (Identity(mode=IdentityMode.MTLS), {"peer-uris": "%DOWNSTREAM_PEER_URI_SAN%"}, "SANITIZE"),
        (
            Identity(mode=IdentityMode.FORWARDED),
            {"peer-address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"},
            "ALWAYS_FORWARD_ONLY",
        ),
    ],
    ids=["none", "mtls", "forwarded"],
)
def test_the_sidecar_is_told_of_the_peer_what_the_mode_needs(
    identity: Identity, told: dict[str, str], forwarded: str
) -> None:
    found = rendered(identity=identity)

    assert metadata(found["ingress"]) == {"phase": "ingress", **told}
    assert metadata(found["egress"]) == {"phase": "egress"}
    assert manager(found["ingress"])["forward_client_cert_details"] == forwarded


def test_a_client_certificate_is_required_of_clients_alone() -> None:
    identity = Identity(mode=IdentityMode.MTLS, ca="/ca", cert="/cert", key="/key")

    found = rendered(identity=identity)

    context = found["ingress"]["filter_chains"][0]["transport_socket"]["typed_config"]
    assert context["require_client_certificate"] is True
    assert context["common_tls_context"]["validation_context_sds_secret_config"]["name"] == "clients"
    assert "transport_socket" not in found["status"]["filter_chains"][0]


def test_server_tls_alone_asks_for_no_client_certificate() -> None:
    found = rendered(listen=Listen(port=1, tls=Tls(cert="/cert", key="/key")))

    context = found["ingress"]["filter_chains"][0]["transport_socket"]["typed_config"]
    assert "require_client_certificate" not in context
    assert "validation_context_sds_secret_config" not in context["common_tls_context"]


@pytest.mark.parametrize("wanted", [False, True])
def test_the_script_for_streams_that_pass_through_is_there_where_some_may(wanted: bool) -> None:
    found = rendered(streaming=Streaming(passthrough=wanted))
    names = {name: [each["name"] for each in manager(listener)["http_filters"]] for name, listener in found.items()}
    ext_proc, script, router = "envoy.filters.http.ext_proc", "envoy.filters.http.lua", "envoy.filters.http.router"
    assert {
        "ingress": [ext_proc, script, router] if wanted else [ext_proc, router],
        "egress": [ext_proc, router],
        "status": [router],
    } == names


def test_the_script_is_behind_the_sidecar_s_filter_where_requests_are_traced_too() -> None:
    found = rendered(streaming=Streaming(passthrough=True), telemetry=Telemetry(otlp="http://127.0.0.1:4317"))
    names = [each["name"].rpartition(".")[2] for each in manager(found["ingress"])["http_filters"]]
    assert names == ["header_mutation", "ext_proc", "lua", "router"]
