"""What `zurelay explain` decides by: the configuration's own catalog and keys, secrets apart."""

from __future__ import annotations

import json
import pathlib

import pytest

from zurelay.identity import Workload
from zurelay.supervise import loading, offline

CONFIG = """
listen: {port: 8080}
status: {port: 8081}
auth: {require: key, keys: keys.yaml}
providers: {p: {base_url: "https://a.example/v1", format: openai, api_key: {env: ZURELAY_TEST_ABSENT}}}
models:
  one: {routes: [{provider: p, model: e}], context_window: 1000}
"""
BODY = json.dumps({"model": "one", "messages": [{"role": "user", "content": "hi"}]}).encode()


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    digest = "ab" * 32
    keys = f'keys:\n- {{name: narrow, digest: "sha256:{digest}", models: ["two*"]}}\n'
    (tmp_path / "keys.yaml").write_text(keys)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path / "c.yaml"


def test_without_a_key_nobodys_rules_bind(config: pathlib.Path) -> None:
    assert offline.decider(config, None)(BODY)["model"] == "one"


def test_a_keys_rules_bind(config: pathlib.Path) -> None:
    assert offline.decider(config, "narrow")(BODY)["error"]["code"] == "model_not_allowed"


def test_a_key_that_is_not_there_is_said_so(config: pathlib.Path) -> None:
    with pytest.raises(offline.NoSuchKeyError, match="nobody"):
        offline.decider(config, "nobody")


def test_a_bad_configuration_is_refused(config: pathlib.Path) -> None:
    config.write_text("nonsense")
    with pytest.raises(loading.LoadError):
        offline.decider(config, None)


def test_a_workloads_policies_bind(config: pathlib.Path) -> None:
    rules = "policies: [{name: p, match: {namespace: pay}, models: {deny: [one]}}]\n"
    config.write_text(CONFIG + rules)
    assert offline.decider(config, None, Workload("pay", "api"))(BODY)["error"]["code"] == "policy_denied"
    assert offline.decider(config, None, Workload("web", "api"))(BODY)["model"] == "one"
