"""Renders the chart with values of a test's own, and finds what is in a render."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools import chart, helm

Document = dict[str, Any]
Values = dict[str, Any]

# The least that installs: ci/default-values.yaml.
LEAST: Values = yaml.safe_load((chart.CHART / "ci" / "default-values.yaml").read_text())


def merged(*layers: Values) -> Values:
    """Lay values over values, as helm does: a later null takes a key away."""
    found: Values = {}
    for layer in layers:
        for key, value in copy.deepcopy(layer).items():
            if isinstance(value, dict) and isinstance(found.get(key), dict):
                found[key] = merged(found[key], value)
            elif value is None and key in found:
                del found[key]
            else:
                found[key] = value
    return found


def at(path: str, value: Any) -> Values:
    """Write one value by its path: `a.b` is {a: {b: value}}."""
    for step in reversed(path.split(".")):
        value = {step: value}
    found: Values = value
    return found


def template(
    *layers: Values,
    major: int = helm.MAJORS[-1],
    version: str = chart.NEW,
    source: Path = chart.CHART,
    release: str = "zurelay",
) -> tuple[str, str]:
    """Run `helm template` over the least values and these; its output, and what it says of them instead."""
    # JSON: what PyYAML leaves without quotes may be a number to others.
    return _template(json.dumps(merged(LEAST, *layers)), major, version, source, release)


@functools.cache
def _template(values: str, major: int, version: str, source: Path, release: str) -> tuple[str, str]:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(values)
        file.flush()
        arguments = ("--namespace", "zurelay", "--values", file.name, "--kube-version", version)
        done = helm.run(major, "template", release, str(source), *arguments)
    return done.stdout, done.stderr if done.returncode else ""


def rendered(*layers: Values, **how: Any) -> list[Document]:
    """Render with values that can be used."""
    text, complaint = template(*layers, **how)
    assert not complaint
    return documents(text)


def documents(text: str) -> list[Document]:
    """Take a render apart."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def golden(name: str) -> list[Document]:
    """Read one of the golden renders."""
    return documents((chart.GOLDEN / f"{name}.yaml").read_text())


def of_kind(found: list[Document], kind: str) -> list[Document]:
    """Find all of a kind."""
    return [document for document in found if document["kind"] == kind]


def the(found: list[Document], kind: str) -> Document:
    """Find the one of a kind."""
    (document,) = of_kind(found, kind)
    return document


def pod(found: list[Document]) -> Document:
    """Find the Deployment's pod."""
    spec: Document = the(found, "Deployment")["spec"]["template"]["spec"]
    return spec


def containers(found: list[Document]) -> dict[str, Document]:
    """Find all containers of the Deployment by name, those that run before the others too."""
    spec = pod(found)
    return {each["name"]: each for each in (*spec.get("initContainers", ()), *spec["containers"])}


def config(found: list[Document]) -> Document:
    """Read the product's configuration out of the ConfigMap."""
    read: Document = yaml.safe_load(config_text(found))
    return read


def config_text(found: list[Document]) -> str:
    """Give zurelay.yaml as it is mounted."""
    (text,) = (each["data"]["zurelay.yaml"] for each in of_kind(found, "ConfigMap") if "zurelay.yaml" in each["data"])
    return str(text)


def everything(value: Any) -> Iterator[Any]:
    """Walk all mappings in a document."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from everything(child)
    elif isinstance(value, list):
        for child in value:
            yield from everything(child)
