"""Whoever brings their own Envoy gets a configuration that Envoy takes, and that leads where they said."""

import json
import pathlib

import pytest

from envoy_elsewhere import NAMES, made, place, validated
from zurelay.envoy import Elsewhere, elsewhere, whole


@pytest.mark.parametrize("name", NAMES)
def test_envoy_takes_it_and_nothing_points_into_a_run_directory(name: str, tmp_path: pathlib.Path) -> None:
    found = whole(made(name, tmp_path), place(tmp_path))

    assert validated(found, tmp_path) == ""
    assert "/run" not in json.dumps(found)


def test_everything_leads_where_it_was_said(tmp_path: pathlib.Path) -> None:
    found = whole(made("secrets", tmp_path), place(tmp_path))["static_resources"]

    named = {one["name"]: one for kind in ("listeners", "clusters", "secrets") for one in found[kind]}
    (endpoint,) = named["sidecar"]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert named["sidecar"]["type"] == "STRICT_DNS"
    assert endpoint["endpoint"]["address"]["socket_address"] == {"address": "zurelay.example", "port_value": 9000}
    assert named["egress"]["address"] == {"socket_address": {"address": "0.0.0.0", "port_value": 10001}}
    assert "status" not in named
    text = json.dumps(found)
    assert f"{tmp_path}/ca.pem" in text
    assert "sds_config" not in text
    assert [one["name"].split(".")[1] for one in found["secrets"]] == ["openai", "anthropic", "own"]


@pytest.mark.parametrize(("host", "kind"), [("10.0.0.1", "STATIC"), ("::1", "STATIC"), ("a.b", "STRICT_DNS")])
def test_a_sidecar_by_its_address_needs_no_name_server(host: str, kind: str, tmp_path: pathlib.Path) -> None:
    there = Elsewhere(sidecar=(host, 9000), egress=("127.0.0.1", 1))

    (sidecar,) = (one for one in elsewhere.parts(made("plain", tmp_path), there).clusters if one["name"] == "sidecar")

    assert sidecar["type"] == kind
