"""The dashboard and the alerts come with the chart, as they are in docs/grafana."""

from __future__ import annotations

import json

import pytest
import yaml

from helm.charts import at, golden, of_kind, rendered, the
from tools import chart


@pytest.mark.parametrize("name", chart.watching())
def test_the_chart_has_what_the_docs_have(name: str) -> None:
    assert (chart.CHART / "files" / name).read_text() == chart.watching()[name], "make chart writes it again"


def test_grafana_gets_the_dashboard() -> None:
    (found,) = (each for each in of_kind(golden("high-availability"), "ConfigMap") if "zurelay.json" in each["data"])
    assert json.loads(found["data"]["zurelay.json"]) == json.loads((chart.GRAFANA / "dashboard.json").read_text())
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "AI"}


def test_prometheus_gets_the_alerts() -> None:
    found = the(golden("high-availability"), "PrometheusRule")
    assert found["spec"] == yaml.safe_load((chart.GRAFANA / "alerts.yaml").read_text())
    assert found["metadata"]["labels"]["release"] == "prometheus"


def test_neither_is_there_unasked() -> None:
    found = rendered()
    assert len(of_kind(found, "ConfigMap")) == 1
    assert not of_kind(found, "PrometheusRule")


def test_labels_of_one_s_own_select_them() -> None:
    labels = {"team": "ai", "app.kubernetes.io/name": "other"}
    found = rendered(at("prometheusRule", {"enabled": True, "labels": labels}))
    assert labels.items() <= the(found, "PrometheusRule")["metadata"]["labels"].items()
