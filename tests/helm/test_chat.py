"""What `helm test` runs: it passes against a gateway that answers, and fails with what one says that doesn't."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import Gateway, Provider
from helm.charts import at, golden, merged, of_kind, rendered, the
from tools import chart

SCRIPT = (chart.CHART / "files" / "chat.py").read_text()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One model that answers, one whose provider is away."""
    provider = Provider()
    base = f"http://127.0.0.1:{provider.port}/v1"
    config = {
        "providers": {
            "here": {"base_url": base, "format": "openai"},
            "away": {"base_url": "http://127.0.0.1:1/v1", "format": "openai"},
        },
        "models": {
            "good": {"routes": [{"provider": "here", "model": "m1"}], "context_window": 100_000},
            "bad": {"routes": [{"provider": "away", "model": "m1"}], "context_window": 100_000},
        },
    }
    running = Gateway(tmp_path_factory.mktemp("gateway"), config).wait_ready()
    yield running
    running.stop()
    provider.stop()


def run(url: str, model: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it as the pod does: Python's own library alone, the text as an argument."""
    given = {"ZURELAY_URL": url, "ZURELAY_MODEL": model, "ZURELAY_TIMEOUT": "30", **env}
    command = [sys.executable, "-I", "-c", SCRIPT]
    return subprocess.run(command, env=os.environ | given, capture_output=True, text=True, timeout=60, check=False)


def test_an_answer_and_a_stream_pass(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("zk_any\n")
    done = run(gateway.url, "good", ZURELAY_KEY_FILE=str(tmp_path / "key"))
    assert done.returncode == 0, done.stderr
    assert "chat: answered by good\n" in done.stdout
    assert "chunks, whole\n" in done.stdout


def test_a_refusal_fails_with_what_it_says(gateway: Gateway) -> None:
    done = run(gateway.url, "bad")
    assert done.returncode == 1
    assert "chat: 503" in done.stderr
    assert "model_unavailable" in done.stderr


def test_the_pod_runs_it_with_what_it_needs() -> None:
    pod = the(golden("high-availability"), "Pod")
    (container,) = pod["spec"]["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert container["command"] == ["python", "-c"]
    assert env["ZURELAY_URL"] == "http://zurelay.zurelay:80"
    assert env["ZURELAY_MODEL"] == "zurelay-auto"
    assert env["ZURELAY_KEY_FILE"] == "/etc/zurelay/key/key"
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_the_pod_runs_the_script_as_it_stands() -> None:
    pod = the(rendered(at("test.existingSecret.name", "k")), "Pod")
    assert pod["spec"]["containers"][0]["args"] == [SCRIPT]


def test_it_is_left_out_where_it_could_not_call() -> None:
    key = at("test.existingSecret.name", "k")
    open_to_all = merged(at("config.auth", {"require": "none", "allow_open": True}), at("keys.existingSecret.name", ""))
    assert not of_kind(rendered(), "Pod")
    assert of_kind(rendered(key), "Pod")
    assert of_kind(rendered(open_to_all), "Pod")
    assert of_kind(golden("istio"), "Pod")
    assert not of_kind(rendered(key, at("test.enabled", False)), "Pod")
    assert not of_kind(golden("sidecar-only"), "Pod")


def test_the_first_model_is_asked_where_there_is_no_auto() -> None:
    found = the(rendered(at("test.existingSecret.name", "k")), "Pod")["spec"]["containers"][0]["env"]
    assert {"name": "ZURELAY_MODEL", "value": "gpt-6-sol"} in found
