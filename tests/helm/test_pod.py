"""The pod: who sees which secret, what starts first, what a change replaces, how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from helm.charts import Document, Values, at, containers, golden, merged, pod, rendered, the
from tools import chart

GATEWAYS = [name for name in chart.RENDERS if name != "sidecar-only"]
SECRET = ("/etc/zurelay/credentials/", "/etc/zurelay/tls")
MODEL = at("config.models.another", {"routes": [{"provider": "openai", "model": "x"}], "context_window": 1000})


def mounts(container: Document) -> set[str]:
    return {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("name", GATEWAYS)
def test_providers_credentials_and_private_keys_are_envoys_alone(name: str) -> None:
    found = containers(golden(name))
    secret = {path for path in mounts(found["envoy"]) if path.startswith(SECRET)}
    assert secret
    for other in set(found) - {"envoy"}:
        assert not secret & mounts(found[other])
        assert not any("secretKeyRef" in str(each) for each in found[other].get("env", ()))


@pytest.mark.parametrize("name", GATEWAYS)
def test_keys_and_spend_are_the_sidecars_alone(name: str) -> None:
    found = containers(golden(name))
    assert mounts(found["envoy"]) & mounts(found["sidecar"]) == {"/run/zurelay"}


@pytest.mark.parametrize("name", chart.RENDERS)
def test_no_secret_is_in_what_is_rendered(name: str) -> None:
    assert not [each for each in golden(name) if each["kind"] == "Secret"]


@pytest.mark.parametrize("name", chart.RENDERS)
def test_what_changes_while_running_is_mounted_as_a_directory(name: str) -> None:
    assert not any("subPath" in mount for each in containers(golden(name)).values() for mount in each["volumeMounts"])


@pytest.mark.parametrize("name", chart.RENDERS)
def test_the_restricted_profile_is_kept(name: str) -> None:
    found = golden(name)
    specs = [pod(found)] + [each["spec"] for each in found if each["kind"] == "Pod"]
    for spec in specs:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 65532
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]


STARTS = {
    "a new cluster": ({}, "1.29.0", ["sidecar"], ["envoy"]),
    "a vendor's version": ({}, "1.31.4-gke.1500", ["sidecar"], ["envoy"]),
    "an old cluster": ({}, "1.28.9", ["prepare"], ["sidecar", "envoy"]),
    "an old cluster with the feature on": (at("nativeSidecar", "always"), "1.28.9", ["sidecar"], ["envoy"]),
    "a new cluster, not wanted": (at("nativeSidecar", "never"), "1.34.0", ["prepare"], ["sidecar", "envoy"]),
}


@pytest.mark.parametrize(("values", "version", "before", "beside"), STARTS.values(), ids=STARTS)
def test_the_sidecar_is_there_before_envoy(values: Values, version: str, before: list[str], beside: list[str]) -> None:
    spec = pod(rendered(values, version=version))
    assert before == [each["name"] for each in spec["initContainers"]]
    assert beside == [each["name"] for each in spec["containers"]]
    first = spec["initContainers"][0]
    if before == ["sidecar"]:
        assert first["restartPolicy"] == "Always"
        assert first["startupProbe"]["httpGet"]["path"] == "/livez"
    else:
        assert "restartPolicy" not in first
        assert first["args"][-1] == "--prepare"
        assert first["args"][:-1] == spec["containers"][0]["args"][:5]


def test_envoy_is_drained_before_it_ends() -> None:
    found = rendered(at("drainSeconds", 1200))
    envoy, sidecar = containers(found)["envoy"], containers(found)["sidecar"]
    assert envoy["lifecycle"]["preStop"]["httpGet"] == {"path": "/drain", "port": 8082}
    assert "lifecycle" not in sidecar
    assert sidecar["args"][-2:] == ["--drain-seconds", "1200"]
    assert pod(found)["terminationGracePeriodSeconds"] == 1230
    assert argument(envoy, "--drain-time-s") == "1260"


@pytest.mark.parametrize(
    ("total", "seconds"),
    [
        ("570s", "630"),
        ("20m", "1260"),
        ("0.5h", "1860"),
        ("900500ms", "961"),
        ("1h30m", "5460"),
        ("19m30s500ms", "1231"),
    ],
)
def test_a_replaced_listener_keeps_its_streams_longer_than_any_request_takes(total: str, seconds: str) -> None:
    found = rendered(at("drainSeconds", 30), at("config.timeouts", {"total": total}))
    assert seconds == argument(containers(found)["envoy"], "--drain-time-s")


def argument(container: Document, name: str) -> Any:
    return container["args"][container["args"].index(name) + 1]


RELOADED: dict[str, Values] = {
    "a model": MODEL,
    "a policy": at("config.policies", [{"name": "a", "match": {}}]),
    "times": at("config.timeouts", {"idle": "100s"}),
    "a provider": at("config.providers.vllm", {"base_url": "http://vllm:8000/v1", "format": "openai"}),
}
REPLACED: dict[str, Values] = {
    "telemetry": at("config.telemetry", {"otlp": "http://collector:4317"}),
    "workers": at("workers", 3),
}


@pytest.mark.parametrize("values", RELOADED.values(), ids=RELOADED)
def test_a_change_that_is_taken_up_replaces_no_pod(values: Values) -> None:
    assert the(rendered(), "Deployment") == the(rendered(values), "Deployment")
    assert the(rendered(), "ConfigMap") != the(rendered(values), "ConfigMap")


@pytest.mark.parametrize("values", REPLACED.values(), ids=REPLACED)
def test_a_change_that_needs_a_start_replaces_the_pods(values: Values) -> None:
    before, after = (the(rendered(each), "Deployment")["spec"]["template"]["metadata"] for each in ({}, values))
    assert before["annotations"]["checksum/restart"] != after["annotations"]["checksum/restart"]


def test_images_are_by_version_or_digest() -> None:
    images = {each["name"]: each["image"] for each in containers(golden("default")).values()}
    assert images == {"envoy": "envoyproxy/envoy:distroless-v1.40.0", "sidecar": "zurelay/zurelay:0.1.0"}
    images = {each["name"]: each["image"] for each in containers(golden("locked-down")).values()}
    assert images["envoy"] == f"mirror.example.com/envoyproxy/envoy@sha256:{'1' * 64}"
    assert images["sidecar"] == f"mirror.example.com/zurelay/zurelay@sha256:{'0' * 64}"


def test_addresses_of_both_families_can_be_listened_on() -> None:
    found = rendered(at("listen.host", "::"))
    assert argument(containers(found)["sidecar"], "--status-listen") == "[::]:8082"


def test_a_sidecar_alone_serves_grpc_and_shows_its_token() -> None:
    found = golden("sidecar-only")
    only = containers(found)
    assert set(only) == {"sidecar"}
    assert argument(only["sidecar"], "--listen") == "0.0.0.0:9000"
    assert argument(only["sidecar"], "--egress") == "zurelay-egress.gateways:10001"
    assert only["sidecar"]["readinessProbe"]["grpc"] == {"port": 9000}
    token = {"name": "zurelay-egress", "key": "token"}
    assert {"name": "ZURELAY_EGRESS_TOKEN", "valueFrom": {"secretKeyRef": token}} in only["sidecar"]["env"]
    service = the([each for each in found if each["metadata"]["name"] == "zurelay"], "Service")
    assert service["spec"]["clusterIP"] == "None"


MORE = merged(
    at("sidecar", {"extraEnv": [{"name": "A", "value": "1"}], "extraEnvFrom": [{"configMapRef": {"name": "c"}}]}),
    at("envoy", {"extraEnv": [{"name": "B", "value": "2"}], "extraArgs": ["--component-log-level", "http:debug"]}),
    at("extraVolumes", [{"name": "more", "emptyDir": {}}]),
    at("sidecar.extraVolumeMounts", [{"name": "more", "mountPath": "/more"}]),
    at("envoy.extraVolumeMounts", [{"name": "more", "mountPath": "/more"}]),
    at("extraContainers", [{"name": "beside", "image": "x"}]),
    at("extraInitContainers", [{"name": "before", "image": "x"}]),
    at("podLabels", {"team": "a"}),
    at("podAnnotations", {"note": "b"}),
    at("commonAnnotations", {"owner": "c"}),
    at("imagePullSecrets", [{"name": "pull"}]),
    at("priorityClassName", "high"),
    at("dnsConfig", {"options": [{"name": "ndots", "value": "2"}]}),
    at("affinity", {"nodeAffinity": {}}),
)


def test_more_of_everything_can_be_given() -> None:
    found = rendered(MORE)
    spec, each = pod(found), containers(found)
    assert each["sidecar"]["env"][-1] == {"name": "A", "value": "1"}
    assert each["sidecar"]["envFrom"] == [{"configMapRef": {"name": "c"}}]
    assert each["envoy"]["env"] == [{"name": "B", "value": "2"}]
    assert each["envoy"]["args"][-2:] == ["--component-log-level", "http:debug"]
    assert "/more" in mounts(each["envoy"]) & mounts(each["sidecar"])
    assert {"name": "more", "emptyDir": {}} in spec["volumes"]
    assert spec["initContainers"][0]["name"] == "before"
    assert spec["containers"][-1]["name"] == "beside"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["priorityClassName"] == "high"
    assert spec["dnsConfig"]
    assert spec["affinity"]
    metadata = the(found, "Deployment")["spec"]["template"]["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert {"note": "b", "owner": "c"}.items() <= metadata["annotations"].items()
    assert all(
        document["metadata"]["annotations"]["owner"] == "c"
        for document in found
        if document["kind"] in ("Deployment", "Service", "ConfigMap", "ServiceAccount", "NetworkPolicy")
    )
