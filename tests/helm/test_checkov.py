"""Checkov's rules for Kubernetes: all kept, but for a few that are broken on purpose."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from helm.conftest import without
from tools import chart, helm

pytestmark = pytest.mark.timeout(600)  # the first time it is installed: 300 MB

# By rule, whose it is, and why.
SKIPPED = {
    ("CKV_K8S_11", "Deployment"): "no CPU limit: throttled milliseconds are added to every answer",
    ("CKV_K8S_11", "Pod"): "the test's pod, which lives for seconds",
    ("CKV_K8S_43", "Deployment"): "a tag by default, a digest where the operator pins one (ci/locked-down)",
    ("CKV_K8S_43", "Pod"): "the same",
    (
        "CKV_K8S_15",
        "Deployment",
    ): "IfNotPresent: tags are never moved, and a registry that is away stops no restart",
    ("CKV_K8S_15", "Pod"): "the same",
    ("CKV_K8S_8", "Pod"): "the test's pod ends by itself: nothing to probe",
    ("CKV_K8S_9", "Pod"): "the same",
    ("CKV_K8S_35", "Deployment"): "sidecar-only: the egress token is no provider's, and comes as a variable",
}


@pytest.fixture(scope="module")
def broken() -> set[tuple[str, str]]:
    """Every rule that a golden render breaks, with the kind of what breaks it."""
    try:
        tool = helm.virtual_environment("checkov", "checkov==3.3.30") / "checkov"
    except helm.UnavailableError as error:
        without(error)
    options = ("--framework", "kubernetes", "--compact", "--quiet", "--skip-download", "--output", "json")
    done = subprocess.run(
        [tool, "--directory", chart.GOLDEN, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ | {"LOG_LEVEL": "ERROR"},
    )
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 500
    return {(each["check_id"], each["resource"].split(".")[0]) for each in report["results"]["failed_checks"]}


def test_no_other_rule_is_broken(broken: set[tuple[str, str]]) -> None:
    assert broken <= set(SKIPPED)


def test_every_exception_is_still_needed(broken: set[tuple[str, str]]) -> None:
    assert set(SKIPPED) <= broken
