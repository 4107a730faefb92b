import json

import pytest

from zurelay.envoy import templates


def test_a_template_is_a_fresh_copy_each_time() -> None:
    first = templates.template("bootstrap.yaml")
    first["node"]["id"] = "changed"

    assert templates.template("bootstrap.yaml")["node"]["id"] == "zurelay"


def test_anchors_are_written_out_and_shared_with_nothing() -> None:
    clusters = templates.template("bootstrap.yaml")["static_resources"]["clusters"]
    first, last = clusters[0], clusters[-1]
    first["circuit_breakers"]["thresholds"].clear()

    assert last["circuit_breakers"]["thresholds"] != []


def test_the_version_of_a_file_is_that_of_its_resources() -> None:
    versions = [
        json.loads(templates.discovery(given))["version_info"] for given in ([{"a": 1}], [{"a": 1}], [{"a": 2}])
    ]

    assert versions[0] == versions[1] != versions[2]


@pytest.mark.parametrize("value", ["", "100%", "%REQ(x)%", "no", "1e3", "\u2028", '"'])
def test_any_value_is_written_so_that_it_is_read_as_it_was(value: str) -> None:
    assert json.loads(templates.dump({"x": value})) == {"x": value}


@pytest.mark.parametrize(("value", "expected"), [("100%", "100%%"), ("%REQ(x)%", "%%REQ(x)%%"), ("plain", "plain")])
def test_a_literal_is_no_format_string(value: str, expected: str) -> None:
    assert templates.literal(value) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(570, "570.000s"), (0.25, "0.250s"), (1e7, "10000000.000s")])
def test_a_duration_is_written_without_exponent(seconds: float, expected: str) -> None:
    assert templates.duration(seconds) == expected


def test_a_script_is_as_it_stands() -> None:
    assert "function envoy_on_response(handle)" in templates.script("passthrough.lua")
