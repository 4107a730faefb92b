"""Istio's and Envoy Gateway's resources hold what Envoy takes, and so does the page that shows them."""

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from envoy_elsewhere import NAMES, made, place, validated
from zurelay.cli import main
from zurelay.envoy import envoy_gateway, istio, whole

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "bring-your-own-envoy.md"
CONFIG = """\
providers: {p: {base_url: "https://api.example.com/v1", format: openai, api_key: {env: A_KEY_THAT_IS_NOT_SET}}}
models: {m: {context_window: 1000, routes: [{provider: p, model: m}]}}
auth: {require: none}
"""


class Taken:
    """An Envoy's configuration, put together from what patches add to it."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {"static_resources": {"clusters": [], "listeners": []}}
        self.count = 0

    def take(self, document: dict[str, Any]) -> None:
        spec = document.get("spec", {})
        if document.get("kind") == "EnvoyFilter":
            for patch in spec["configPatches"]:
                self._istio(patch["applyTo"], patch["patch"]["operation"], patch["patch"]["value"])
        elif document.get("kind") == "EnvoyPatchPolicy":
            for patch in spec["jsonPatches"]:
                assert (patch["operation"]["op"], patch["operation"]["path"]) == ("add", "")
                assert patch["name"] == patch["operation"]["value"]["name"]
                self._add(patch["type"].rpartition(".")[2], patch["operation"]["value"])
        elif document.get("kind") == "EnvoyProxy":
            for patch in spec["bootstrap"]["jsonPatches"]:
                self._point(patch["path"], patch["value"])
        elif "layered_runtime" in document:
            self.count += 1
            self.config.update(document)

    def _istio(self, kind: str, operation: str, value: dict[str, Any]) -> None:
        if kind == "BOOTSTRAP":
            assert operation == "MERGE"
            self.count += 1
            self.config["layered_runtime"] = value["layered_runtime"]
            self.config["static_resources"]["secrets"] = value["static_resources"]["secrets"]
        else:
            assert operation == "ADD"
            self._add(kind.capitalize(), value)

    def _point(self, path: str, value: Any) -> None:
        self.count += 1
        if path == "/layered_runtime/layers/-":
            self.config["layered_runtime"] = {"layers": [value]}
        else:
            assert path == "/static_resources/secrets"
            self.config["static_resources"]["secrets"] = value

    def _add(self, kind: str, value: dict[str, Any]) -> None:
        self.count += 1
        self.config["static_resources"][f"{kind.lower()}s"].append(value)


@pytest.mark.parametrize("make", [istio, envoy_gateway])
@pytest.mark.parametrize("name", NAMES)
def test_what_they_add_is_the_whole_and_envoy_takes_it(make: Any, name: str, tmp_path: pathlib.Path) -> None:
    taken, given = Taken(), made(name, tmp_path)
    for document in make(given, place(tmp_path)):
        taken.take(document)

    wanted = whole(given, place(tmp_path))
    assert taken.config["static_resources"] == wanted["static_resources"]
    assert "grpc_side_stream_flow_control': False" in str(taken.config["layered_runtime"])
    assert validated(taken.config, tmp_path) == ""


def blocks() -> Iterator[dict[str, Any]]:
    """Every YAML block of the page."""
    for block in re.findall(r"^ *```yaml\n(.*?)^ *```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        yield from (document for document in yaml.safe_load_all(block) if document)


def test_envoy_takes_every_piece_on_the_page(tmp_path: pathlib.Path) -> None:
    counts = []
    for document in blocks():
        taken = Taken()
        taken.take(document)
        counts.append(taken.count)
        assert validated(taken.config, tmp_path) == "", document

    assert counts == [0, 1, 2, 1], "HTTPRoute, runtime, Istio, Envoy Gateway"


@pytest.mark.parametrize(
    ("kind", "kinds"), [("istio", ["EnvoyFilter"]), ("envoy-gateway", ["EnvoyProxy", "EnvoyPatchPolicy"])]
)
def test_the_command_prints_them_as_yaml(kind: str, kinds: list[str], tmp_path: pathlib.Path) -> None:
    file = tmp_path / "zurelay.yaml"
    file.write_text(CONFIG)
    arguments = ["envoy-config", "--config", str(file), "--sidecar", "z.ns:9000", "--egress", "[::]:10001"]

    done = CliRunner().invoke(main, [*arguments, "--format", kind])

    assert done.exit_code == 0, done.output
    assert [document["kind"] for document in yaml.safe_load_all(done.stdout)] == kinds
    assert "A_KEY_THAT_IS_NOT_SET" in done.stdout


def test_a_bad_configuration_is_told_as_ever(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "zurelay.yaml"
    file.write_text(CONFIG.replace("openai", "opnai"))

    done = CliRunner().invoke(main, ["envoy-config", "--config", str(file), "--sidecar", "z:9000", "--egress", "e:1"])

    assert (done.exit_code, done.stdout) == (1, "")
    assert "did you mean" in done.stderr
