import json
from typing import Any

import pytest

from envoy_testbed import key, provider, runtime, settings
from zurelay import envoy
from zurelay.envoy import sds
from zurelay.envoy.clusters import provider_cluster
from zurelay.model import Format, Http, Model, Provider, Route, Secret, Settings

OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def rendered(given: Settings) -> dict[str, Any]:
    return {cluster["name"]: cluster for cluster in json.loads(envoy.clusters(given, runtime()))["resources"]}


def one(given: Provider) -> dict[str, Any]:
    cluster: dict[str, Any] = rendered(settings(given))[provider_cluster(given)]
    return cluster


def filters(cluster: dict[str, Any]) -> dict[str, Any]:
    listed = cluster["typed_extension_protocol_options"][OPTIONS]["http_filters"]
    return {each["name"].rpartition(".")[2]: each["typed_config"] for each in listed}


def test_a_route_has_three_clusters_in_front_of_its_providers() -> None:
    p = provider("p", "http://127.0.0.1:1")
    models = {
        "m": Model(
            id="m",
            routes=(Route(name="m/1", provider="p", model="x"), Route(name="m/2", provider="p", model="y")),
            context_window=1,
        )
    }

    found = rendered(settings(p, provider("unused", "http://127.0.0.1:2"), models=models))

    behind = {name: each["cluster_type"]["typed_config"]["clusters"] for name, each in found.items() if "/" in name}
    assert list(found) == [provider_cluster(p), *behind]
    assert behind == {f"m/{n}.{kind}": [provider_cluster(p), "refuse"] for n in (1, 2) for kind in envoy.KINDS}


@pytest.mark.parametrize(
    ("base", "address", "host", "resolved"),
    [
        ("https://api.example:443/v1", ("api.example", 443), "api.example", True),
        ("https://api.example:8443", ("api.example", 8443), "api.example:8443", True),
        ("http://vllm.models:80", ("vllm.models", 80), "vllm.models", True),
        ("http://127.0.0.1:8000/x/v1", ("127.0.0.1", 8000), "127.0.0.1:8000", False),
        ("http://[::1]:8000", ("::1", 8000), "[::1]:8000", False),
        ("https://[2001:db8::1]:443", ("2001:db8::1", 443), "[2001:db8::1]", False),
    ],
)
def test_a_provider_is_where_its_base_url_says(base: str, address: tuple[str, int], host: str, resolved: bool) -> None:
    cluster = one(provider("p", base))

    (group,) = cluster["load_assignment"]["endpoints"]
    (endpoint,) = group["lb_endpoints"]
    found = endpoint["endpoint"]["address"]["socket_address"]
    assert (found["address"], found["port_value"]) == address
    assert endpoint["endpoint"]["hostname"] == host
    assert ("cluster_type" in cluster, cluster.get("type")) == ((True, None) if resolved else (False, "STATIC"))


@pytest.mark.parametrize(
    ("base", "http", "expected"),
    [
        ("https://a.example:443", Http.AUTO, ("auto_config", ["http_protocol_options", "http2_protocol_options"])),
        ("https://a.example:443", Http.HTTP1, ("explicit_http_config", ["http_protocol_options"])),
        ("https://a.example:443", Http.HTTP2, ("explicit_http_config", ["http2_protocol_options"])),
        ("http://a.example:80", Http.AUTO, ("explicit_http_config", ["http_protocol_options"])),
        ("http://a.example:80", Http.HTTP2, ("explicit_http_config", ["http2_protocol_options"])),
    ],
)
def test_the_http_version_is_the_providers(base: str, http: Http, expected: tuple[str, list[str]]) -> None:
    options = one(provider("p", base, http=http))["typed_extension_protocol_options"][OPTIONS]

    (kind,) = {"auto_config", "explicit_http_config"} & set(options)
    assert (kind, list(options[kind])) == expected


def test_a_certificate_must_be_for_the_host_and_signed_by_whom_we_trust() -> None:
    named = one(provider("p", "https://a.example:443"))["transport_socket"]["typed_config"]
    own = provider("p", "https://192.0.2.1:443", ca="/own.pem")
    address = one(own)["transport_socket"]["typed_config"]

    assert (named["sni"], named["auto_sni_san_validation"]) == ("a.example", True)
    assert named["common_tls_context"]["validation_context"] == {
        "trusted_ca": {"filename": "/etc/ssl/certs/ca-certificates.crt"}
    }
    assert "sni" not in address
    combined = address["common_tls_context"]["combined_validation_context"]
    assert combined["validation_context_sds_secret_config"]["name"] == sds.authority_secret(own)
    assert combined["default_validation_context"] == {
        "match_typed_subject_alt_names": [{"san_type": "IP_ADDRESS", "matcher": {"exact": "192.0.2.1"}}]
    }


def test_plain_http_has_no_tls() -> None:
    assert "transport_socket" not in one(provider("p", "http://a.example:80"))


@pytest.mark.parametrize(
    ("facts", "header", "prefix"),
    [
        ({}, "authorization", "Bearer "),
        ({"format": Format.ANTHROPIC}, "x-api-key", None),
        ({"auth_header": "Api-Key"}, "api-key", None),
        ({"auth_header": "authorization"}, "authorization", None),
    ],
)
def test_a_credential_goes_where_the_format_or_the_setting_says(
    facts: dict[str, Any], header: str, prefix: str | None
) -> None:
    given = provider("p", "http://a.example:80", api_key=key("p"), **facts)
    found = rendered(settings(given))

    for kind in envoy.KINDS:
        generic = filters(found[f"p.{kind}"])["credential_injector"]["credential"]["typed_config"]
        assert (generic["header"], generic.get("header_value_prefix")) == (header, prefix)
        assert generic["credential"]["name"] == sds.provider_secret(given)


def test_without_a_key_nothing_is_injected() -> None:
    assert "credential_injector" not in filters(rendered(settings(provider("p", "http://a.example:80")))["p.first"])


def test_each_kind_sees_what_it_needs() -> None:
    found = rendered(settings(provider("p", "http://a.example:80")))

    modes = {kind: filters(found[f"p.{kind}"])["ext_proc"]["processing_mode"] for kind in envoy.KINDS}
    phases = [filters(found[f"p.{kind}"])["ext_proc"]["grpc_service"]["initial_metadata"] for kind in envoy.KINDS]
    assert {kind: (mode["request_body_mode"], mode["response_body_mode"]) for kind, mode in modes.items()} == {
        "first": ("NONE", "BUFFERED"),
        "whole": ("BUFFERED", "BUFFERED"),
        "stream": ("BUFFERED", "STREAMED"),
    }
    assert phases == [[{"key": "phase", "value": kind}] for kind in envoy.KINDS]


def test_every_header_that_some_provider_adds_is_hidden_and_removed_everywhere() -> None:
    found = rendered(
        settings(
            provider(
                "a", "http://a.example:80", headers={"X-Own": "1", "anthropic-version": "x", "X-Stainless-Y": "2"}
            ),
            provider("b", "http://b.example:80", auth_header="X-Key", api_key=Secret(env="B")),
        )
    )

    for name in ("a.first", "b.first"):
        parts = filters(found[name])
        hidden = [pattern["exact"] for pattern in parts["ext_proc"]["forward_rules"]["disallowed_headers"]["patterns"]]
        removed = [each.get("remove") for each in parts["header_mutation"]["mutations"]["request_mutations"]]
        assert hidden == ["authorization", "x-api-key", "api-key", "x-key", "x-own"]
        assert {"x-key", "x-own"} <= set(removed)
        assert not {"anthropic-version", "x-stainless-y"} & set(removed)


def test_a_header_of_the_settings_is_no_format_string() -> None:
    found = rendered(settings(provider("p", "http://a.example:80", headers={"x-own": "100%"})))

    last = filters(found["p.first"])["header_mutation"]["mutations"]["request_mutations"][-1]
    assert last["append"]["header"] == {"key": "x-own", "value": "100%%"}


def test_nothing_is_left_to_be_set() -> None:
    given = settings(
        provider("p", "http://a.example:80", api_key=key("p")), provider("q", "https://192.0.2.1:443", http=Http.HTTP2)
    )

    assert "SET" not in envoy.clusters(given, runtime())
