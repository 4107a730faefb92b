"""A later version can be installed over an earlier one, and back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from helm.charts import Document, at, golden, of_kind, rendered, the
from tools import chart

# What 0.1.0 selects by. A Deployment's selector can't be changed: another would make every upgrade fail.
SELECTOR = {
    "app.kubernetes.io/name": "zurelay",
    "app.kubernetes.io/instance": "zurelay",
    "app.kubernetes.io/component": "gateway",
}


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The chart as a later version."""
    copy = tmp_path / "zurelay"
    shutil.copytree(chart.CHART, copy)
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "9.0.0", "appVersion": "9.1.0"}))
    return copy


def selectors(found: list[Document]) -> list[Document]:
    return [
        the(found, "Deployment")["spec"]["selector"]["matchLabels"],
        *(each["spec"]["selector"] for each in of_kind(found, "Service")),
        *(each["spec"]["podSelector"]["matchLabels"] for each in of_kind(found, "NetworkPolicy")),
        *(each["spec"]["selector"]["matchLabels"] for each in of_kind(found, "PodDisruptionBudget")),
    ]


@pytest.mark.parametrize("name", [name for name in chart.RENDERS if name != "locked-down"])
def test_every_selector_is_the_first_version_s(name: str) -> None:
    assert all(selector == SELECTOR for selector in selectors(golden(name)))


def test_another_version_changes_no_selector_and_no_name(later: Path) -> None:
    before, after = rendered(), rendered(source=later)
    assert selectors(before) == selectors(after)
    names = [[(each["kind"], each["metadata"]["name"]) for each in found] for found in (before, after)]
    assert names[0] == names[1]
    labels = the(after, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert SELECTOR.items() <= labels.items()
    assert the(after, "Deployment")["metadata"]["labels"]["app.kubernetes.io/version"] == "9.1.0"


def test_labels_of_one_s_own_select_nothing() -> None:
    found = rendered(at("commonLabels", {"a": "b"}), at("podLabels", {"c": "d"}))
    assert all(selector == SELECTOR for selector in selectors(found))
    assert all(each["metadata"]["labels"]["a"] == "b" for each in found)


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("zurelay", {}, "zurelay"),
        ("ai", {}, "ai-zurelay"),
        ("zurelay-eu", {}, "zurelay-eu"),
        ("ai", at("fullnameOverride", "gate"), "gate"),
        ("x" * 53, {}, "x" * 52),
    ],
    ids=["the chart's", "another", "one with the chart's in it", "as said", "too long"],
)
def test_names_follow_the_release(release: str, values: Document, name: str) -> None:
    assert name == the(rendered(values, release=release), "Deployment")["metadata"]["name"]
