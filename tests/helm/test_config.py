"""The rendered zurelay.yaml is one that the product takes, and names the files that are mounted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from helm.charts import Document, at, config, config_text, containers, golden, pod, rendered
from tools import chart

KEYS = yaml.safe_dump({"keys": [{"name": "a", "digest": f"sha256:{hashlib.sha256(b'x').hexdigest()}"}]})
# What Secrets and ConfigMaps hold that are mounted whole.
WHOLE = ("tls.crt", "tls.key", "ca.crt", "ca.pem")


def mount(found: list[Document], root: Path) -> None:
    """Lay out under `root` what both containers together see."""
    volumes = {volume["name"]: volume for volume in pod(found)["volumes"]}
    for container in containers(found).values():
        for each in container["volumeMounts"]:
            directory = root / each["mountPath"].lstrip("/")
            directory.mkdir(parents=True, exist_ok=True)
            source = volumes[each["name"]]
            items = [item["path"] for item in source.get("secret", {}).get("items", ())]
            for name in items or (WHOLE if "emptyDir" not in source else ()):
                (directory / name).write_text(KEYS if name == "keys.yaml" else "redis://r")


def zurelay(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zurelay", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )


@pytest.mark.parametrize("name", chart.RENDERS)
def test_zurelay_check_finds_nothing_and_every_file_is_mounted(name: str, tmp_path: Path) -> None:
    found = golden(name)
    mount(found, tmp_path)
    file = tmp_path / "zurelay.yaml"
    file.write_text(config_text(found).replace("/etc/zurelay/", f"{tmp_path}/etc/zurelay/"))
    checked = zurelay("check", str(file), env={"OPENAI_API_KEY": "x"})  # that of the Envoy beside the sidecar alone
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_the_chart_can_t_see_is_told_by_the_sidecar_when_it_starts(tmp_path: Path) -> None:
    found = rendered(
        at("config.models.gpt-6-sol.fallbacks", ["gpt-6-moon"]),
        at("config.auth", {"require": "none", "allow_open": True}),
        at("keys.existingSecret.name", ""),
    )
    file = tmp_path / "zurelay.yaml"
    file.write_text(config_text(found))
    started = zurelay("sidecar", "--config", str(file), "--run-dir", str(tmp_path / "run"))
    assert started.returncode == 1
    assert "models.gpt-6-sol.fallbacks[0]: no model is called gpt-6-moon; did you mean gpt-6-sol?" in started.stderr


def test_numbers_and_words_reach_the_file_as_they_were_written() -> None:
    price = {"input": 0.025, "output": 17.5, "cached_input": 0.0001, "cache_write": 0}
    model = {"context_window": 1048576, "max_output": 999_999_999, "display_name": "on", "aliases": ["1e3", "0x1f"]}
    found = config(rendered(at("config.models.gpt-6-sol", {**model, "price": price})))["models"]["gpt-6-sol"]
    assert {key: found[key] for key in model} == model
    assert found["price"] == price


def test_numbers_that_helm_writes_its_own_way_are_taken(tmp_path: Path) -> None:
    price = {"input": 0.00001, "output": 0.5, "cached_input": 1.5e-7}
    found = rendered(at("config.models.gpt-6-sol", {"price": price, "context_window": 1_000_000}))
    assert "1e-05" in config_text(found)  # what is seen here is that it can be read
    mount(found, tmp_path)
    file = tmp_path / "zurelay.yaml"
    file.write_text(config_text(found).replace("/etc/zurelay/", f"{tmp_path}/etc/zurelay/"))
    checked = zurelay("check", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_only_the_chart_s_own_parts_are_added() -> None:
    found = config(rendered())
    assert found["listen"] == {"host": "0.0.0.0", "port": 8080}
    assert found["status"] == {"host": "0.0.0.0", "port": 8081}
    assert found["workers"] == 1
    assert found["store"] == {"on_failure": "allow", "sqlite": "/var/lib/zurelay/zurelay.db"}
    assert found["auth"] == {"require": "key", "keys": "/etc/zurelay/keys/keys.yaml"}
    assert set(found) == {"listen", "status", "workers", "store", "auth", "limits", "models", "providers"}


def test_a_redis_is_named_by_the_file_of_its_url() -> None:
    found = config(rendered(at("store.redis.existingSecret", {"name": "r", "key": "address"})))["store"]
    assert found == {"on_failure": "allow", "redis": {"file": "/etc/zurelay/redis/address"}}


@pytest.mark.parametrize(
    ("values", "workers"),
    [
        (at("sidecar.resources", {"requests": {"cpu": "250m"}}), 1),
        (at("sidecar.resources", {"requests": {"cpu": "1001m"}}), 2),
        (at("sidecar.resources", {"requests": {"cpu": 2}}), 2),
        (at("sidecar.resources", {"requests": {"cpu": "1"}, "limits": {"cpu": "3.5"}}), 4),
        (at("workers", 3), 3),
    ],
    ids=["a quarter", "a bit over one", "two", "the limit", "as said"],
)
def test_workers_follow_the_sidecar_s_cpu(values: Document, workers: int) -> None:
    assert workers == config(rendered(values))["workers"]


def test_a_client_s_certificate_is_checked_with_the_files_of_the_secret() -> None:
    found = config(golden("locked-down"))
    assert found["identity"] == {
        "mode": "mtls",
        "trust_domain": "example.org",
        "ca": "/etc/zurelay/tls/ca.crt",
        "cert": "/etc/zurelay/tls/tls.crt",
        "key": "/etc/zurelay/tls/tls.key",
    }
    assert "tls" not in found["listen"]


def test_a_listener_speaks_tls_with_the_files_of_the_secret() -> None:
    found = config(rendered(at("listen.tls.existingSecret.name", "tls")))
    assert found["listen"]["tls"] == {"cert": "/etc/zurelay/tls/tls.crt", "key": "/etc/zurelay/tls/tls.key"}
