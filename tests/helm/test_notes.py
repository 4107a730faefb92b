"""What is said after an installation: the next command, and what to mind."""

from __future__ import annotations

import json
import tempfile

import pytest
import yaml

from helm.charts import LEAST, Values, at, merged
from helm.commands import unknown
from tools import chart, helm


def notes(*values: Values) -> str:
    """A dry run tells them, which needs no cluster with helm 4."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(merged(LEAST, *values), file)
        file.flush()
        dry = ("install", "--dry-run=client", "zurelay", str(chart.CHART), "--namespace", "zurelay")
        done = helm.run(4, *dry, "--values", file.name)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def test_the_next_command_is_there() -> None:
    said = notes()
    assert "zurelay is at http://zurelay.zurelay:80/v1" in said
    assert "kubectl --namespace zurelay rollout status deployment/zurelay" in said
    assert "port-forward service/zurelay 8080:80" in said


def test_the_test_is_named_where_there_is_one() -> None:
    assert "helm --namespace zurelay test zurelay --logs" in notes(at("test.existingSecret.name", "k"))


OPEN = merged(at("config.auth", {"require": "none", "allow_open": True}), at("keys.existingSecret.name", ""))
WARNINGS = {
    "no keys": (OPEN, "anyone who reaches the Service uses your accounts"),
    "a store that goes": ({}, "what is spent is forgotten when a pod goes"),
    "one pod": ({}, "one pod serves"),
    "no policy": (at("networkPolicy.enabled", False), "no NetworkPolicy"),
    "no callers": ({}, "pods of this namespace alone may call"),
    "clear text": (at("service.type", "LoadBalancer"), "keys and prompts pass the LoadBalancer in clear"),
    "a controller kept out": (at("ingress", {"enabled": True, "hosts": ["a"]}), "the NetworkPolicy keeps out"),
    "latest": (at("sidecar.image.tag", "latest"), "an image that is `latest`"),
}
GOOD = merged(at("replicaCount", 2), at("store.redis.existingSecret.name", "r"), at("callers.namespaces", ["payments"]))


@pytest.mark.parametrize(("values", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_a_risk_is_told(values: Values, warning: str) -> None:
    assert f"WARNING: {warning}" in notes(values)


def test_nothing_is_told_where_all_is_well() -> None:
    assert "WARNING" not in notes(GOOD)


def test_a_sidecar_alone_says_where_it_is() -> None:
    values = yaml.safe_load((chart.CHART / "ci" / "sidecar-only-values.yaml").read_text())
    credential = at("config.providers.openai.api_key", {"existingSecret": None})
    said = notes(values, credential)
    assert "zurelay.zurelay:9000 (gRPC)" in said
    (command,) = (line.split() for line in said.splitlines() if line.strip().startswith("zurelay "))
    assert command[2:] == ["--config", "zurelay.yaml", "--sidecar", "zurelay.zurelay:9000", "--egress", "0.0.0.0:10001"]
    assert unknown(command[1:]) == []
