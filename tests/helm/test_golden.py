"""What the chart renders: the same with helm 3 and 4, as the golden files have it, and fit for old clusters and new."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]  # it has no stubs
import pytest

from helm.charts import at, documents, everything, golden, template
from tools import chart, helm

# What Kubernetes' own schemas don't know; their own were looked at when the golden files were made.
OF_OTHERS = {
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ServiceEntry": "networking.istio.io/v1",
    "VirtualService": "networking.istio.io/v1",
    "PeerAuthentication": "security.istio.io/v1",
    "AuthorizationPolicy": "security.istio.io/v1",
}
TEST = at("test.existingSecret.name", "k")
VERSIONS = ("1.27", kubernetes_validate.latest_version())


@pytest.mark.parametrize("major", helm.MAJORS)
@pytest.mark.parametrize("name", chart.RENDERS)
def test_a_render_is_the_golden_one(name: str, major: int) -> None:
    assert (chart.GOLDEN / f"{name}.yaml").read_text() == chart.render(name, major), "make chart writes it again"


def test_every_file_of_values_has_a_golden_render() -> None:
    files = {path.name.removesuffix("-values.yaml") for path in (chart.CHART / "ci").iterdir()}
    assert files == {file for file, _ in chart.RENDERS.values()}
    assert set(chart.RENDERS) == {path.stem for path in chart.GOLDEN.iterdir()}


@pytest.mark.parametrize("major", helm.MAJORS)
def test_lint_finds_nothing(major: int) -> None:
    for values in sorted((chart.CHART / "ci").iterdir()):
        done = helm.run(major, "lint", "--strict", str(chart.CHART), "--values", str(values))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("major", helm.MAJORS)
def test_a_package_has_all_that_is_rendered(major: int, tmp_path: Path) -> None:
    assert helm.run(major, "package", str(chart.CHART), "--destination", str(tmp_path)).returncode == 0
    (package,) = tmp_path.iterdir()
    assert template(TEST, major=major) == template(TEST, major=major, source=package)


@pytest.mark.parametrize("name", chart.RENDERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(name: str, version: str) -> None:
    for document in documents(chart.render(name, helm.MAJORS[-1], version)):
        if OF_OTHERS.get(document["kind"]) == document["apiVersion"]:
            with pytest.raises(kubernetes_validate.SchemaNotFoundError):
                kubernetes_validate.validate(document, version, strict=True)
        else:
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("name", chart.RENDERS)
def test_every_port_says_its_protocol(name: str) -> None:
    """Old servers default it in silence, and server-side apply then finds a port twice."""
    kinds = ("Deployment", "Service", "NetworkPolicy")
    found = [each for each in golden(name) if each["kind"] in kinds for each in everything(each["spec"])]
    ports = [port for each in found for port in each.get("ports", ())]
    assert ports
    assert all(port["protocol"] in ("TCP", "UDP") for port in ports)
