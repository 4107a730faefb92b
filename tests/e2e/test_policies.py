"""SPEC 12 through the real Envoy: each effect of a policy, several together, and those in shadow."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from e2e.conftest import catalog
from e2e.harness import ZURELAY, Gateway, Provider, ask, until
from e2e.keys import bearer, write_keys

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
POLICIES: list[dict[str, Any]] = [
    {"name": "no-spare", "match": {"key": "lean-*"}, "models": {"deny": ["spare"]}},
    {"name": "only-p2", "match": {"key": "p2"}, "providers": {"allow": ["p2"]}},
    {"name": "calm", "match": {"key": "calm*"}, "effort": {"max": "medium"}},
    {"name": "calmer", "match": {"key": "calmer"}, "effort": {"max": "low"}},
    {"name": "blind", "match": {"key": "blind"}, "inputs": {"deny": ["image"]}},
    {"name": "fixed", "match": {"key": "fixed"}, "smart_routing": False},
    {"name": "slow", "match": {"key": "slow"}, "limits": {"requests_per_minute": 2}},
    {"name": "slower", "match": {"key": "slow"}, "limits": {"requests_per_minute": 1}},
    {"name": "no-auto", "match": {"key": "no-auto"}, "models": {"deny": ["zurelay-auto"]}},
    {
        "name": "someday",
        "match": {"key": "shadowed"},
        "models": {"deny": ["solo"]},
        "limits": {"requests_per_minute": 1},
        "shadow": True,
    },
]
KEYS = ("lean-a", "p2", "calm", "calmer", "blind", "fixed", "slow", "no-auto", "shadowed", "free")


@pytest.fixture(scope="module")
def ruled(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("ruled")
    auth = write_keys(directory, **{name: {} for name in KEYS})
    known = catalog(provider.port)
    known["models"]["solo"]["inputs"] = ["text", "image"]
    known["models"]["solo"]["fallbacks"] = ["spare", "trio"]
    settings = known | {
        "auth": auth,
        "workers": 2,
        "policies": POLICIES,
        "auto": {"simple": ["spare", "trio"], "standard": ["trio"], "complex": ["trio"]},
    }
    running = Gateway(directory, settings).wait_ready()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture(autouse=True)
def _fresh(provider: Provider) -> None:
    provider.reset()


def chat(gateway: Gateway, key: str, model: str = "solo", **more: Any) -> httpx.Response:
    header = more.pop("header", {})
    return gateway.chat(ask(model, **more), bearer(key) | header)


def denied(answer: httpx.Response, policy: str) -> None:
    error = answer.json()["error"]
    assert (403, "policy_denied", "permission_error") == (answer.status_code, error["code"], error["type"])
    assert f"policy {policy} " in error["message"]


def test_a_denied_model_is_a_403_that_names_the_policy_and_is_not_listed(ruled: Gateway) -> None:
    denied(chat(ruled, "lean-a", "spare"), "no-spare")
    assert 200 == chat(ruled, "free", "spare").status_code
    listed = httpx.get(ruled.url + "/v1/models", headers=bearer("lean-a")).json()["data"]
    assert ["zurelay-auto", "solo", "trio", "guarded"] == [model["id"] for model in listed]
    assert 404 == httpx.get(ruled.url + "/v1/models/spare", headers=bearer("lean-a")).status_code


@pytest.mark.parametrize("stream", [False, True])
def test_fallbacks_and_auto_leave_out_what_is_denied(ruled: Gateway, *, stream: bool) -> None:
    failing: dict[str, Any] = {"simulate": {"faults": {"m1": "status:500"}}, "stream": stream}
    assert "spare" == chat(ruled, "free", **failing).headers["x-zurelay-model"]
    assert "trio" == chat(ruled, "lean-a", **failing).headers["x-zurelay-model"]
    assert "spare" == chat(ruled, "free", "auto", stream=stream).headers["x-zurelay-model"]
    assert "trio" == chat(ruled, "lean-a", "auto", stream=stream).headers["x-zurelay-model"]


def test_auto_itself_may_be_denied(ruled: Gateway) -> None:
    denied(chat(ruled, "no-auto", "auto"), "no-auto")
    assert 200 == chat(ruled, "no-auto").status_code


def test_only_the_routes_of_allowed_providers_are_tried(ruled: Gateway, provider: Provider) -> None:
    assert 200 == chat(ruled, "p2", "trio").status_code
    assert ["/p2/v1/chat/completions"] == [record.path for record in provider.requests]
    denied(chat(ruled, "p2", "solo"), "only-p2")


@pytest.mark.parametrize(
    ("key", "asked", "ran", "sent"),
    [
        ("free", "high", "high", "high"),
        ("calm", "high", "medium", "medium"),
        ("calm", None, "medium", None),
        ("calmer", "high", "low", "low"),
        ("calmer", None, "low", "low"),
    ],
)
def test_effort_is_capped_by_the_strictest_also_when_none_was_asked(
    ruled: Gateway, provider: Provider, key: str, asked: str | None, ran: str, sent: str | None
) -> None:
    answer = chat(ruled, key, "trio", **({} if asked is None else {"reasoning_effort": asked}))
    assert ran == answer.headers["x-zurelay-reasoning-effort"]
    assert sent == msgspec.json.decode(provider.requests[0].body).get("reasoning_effort")


@pytest.mark.parametrize("stream", [False, True])
def test_other_words_for_effort_are_capped_too(ruled: Gateway, provider: Provider, stream: bool) -> None:
    asked: dict[str, Any] = {"reasoning": {"effort": "high"}, "thinking": {"type": "enabled", "budget_tokens": 60_000}}
    assert 200 == chat(ruled, "calm", stream=stream, **asked).status_code
    assert 200 == chat(ruled, "free", stream=stream, **asked).status_code
    capped, free = (msgspec.json.decode(request.body) for request in provider.requests)
    assert ({"effort": "medium"}, 8192) == (capped["reasoning"], capped["thinking"]["budget_tokens"])
    assert asked == {field: free[field] for field in asked}


@pytest.mark.parametrize(
    "part",
    [
        IMAGE,
        {"type": "image_url", "image_url": {"url": "https://x.test/a.pdf"}},
        {"type": "image_file", "image_file": {"file_id": "f"}},
        {"type": "IMAGE_URL", "image_url": {"url": "https://x.test/a"}},
        {"image_url": {"url": "https://x.test/a"}},
        {"type": "file", "file": {"filename": "a.txt", "file_id": "f"}},
    ],
    ids=["declared", "another ending", "unknown type", "capitals", "no type", "a file's id"],
)
def test_denied_inputs_are_a_403_under_whatever_name(ruled: Gateway, provider: Provider, part: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": [part]}]
    denied(chat(ruled, "blind", messages=messages), "blind")
    assert not provider.requests
    assert 200 == chat(ruled, "blind").status_code
    assert 200 == chat(ruled, "free", messages=messages).status_code


def test_a_policy_beats_the_header_about_smart_routing(ruled: Gateway) -> None:
    failing: dict[str, Any] = {"simulate": {"faults": {"m1": "status:500"}}, "header": {"x-zurelay-fallback": "on"}}
    assert 200 == chat(ruled, "free", **failing).status_code
    assert 503 == chat(ruled, "fixed", **failing).status_code


def test_of_two_limits_the_strictest_holds(ruled: Gateway) -> None:
    assert 200 == chat(ruled, "slow").status_code
    refused = chat(ruled, "slow")
    assert 429 == refused.status_code
    assert "The policy slower has a limit of 1 requests a minute" in refused.json()["error"]["message"]


def test_a_policy_in_shadow_is_counted_and_not_enforced(ruled: Gateway) -> None:
    assert [200, 200] == [chat(ruled, "shadowed").status_code for _ in range(2)]
    model = 'zurelay_policy_effects_total{policy="someday",effect="model",shadow="true"} 2'
    limit = 'zurelay_limits_hit_total{scope="policy:someday",limit="requests_per_minute",shadow="true"} 1'
    lines = httpx.get(ruled.status_url + "/metrics").text
    assert model in lines
    assert limit in lines
    until(lambda: any('"rule":"policy:someday"' in line and '"shadow":true' in line for line in ruled.log))


def explained(gateway: Gateway, model: str, *arguments: str) -> dict[str, Any]:
    command = [*ZURELAY, "explain", "--config", str(gateway.file), *arguments]
    done = subprocess.run(command, input=json.dumps(ask(model)), capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_explain_shows_which_policies_decided(ruled: Gateway) -> None:
    found = explained(ruled, "solo", "--key", "lean-a")
    assert ["no-spare"] == found["policies"]["matched"]
    assert [("no-spare", "model")] == [(one["policy"], one["effect"]) for one in found["policies"]["decided"]]
    assert "spare" in [one["model"] for one in found["left_out"]]
    found = explained(ruled, "spare", "--key", "lean-a")
    assert "policy_denied" == found["error"]["code"]
    assert ["no-spare"] == [one["policy"] for one in found["policies"]["decided"]]
    found = explained(ruled, "solo", "--key", "shadowed")
    assert ["someday"] == found["policies"]["in_shadow"]
    assert ["model"] == [one["effect"] for one in found["policies"]["would_have_decided"]]
    assert [("policy:someday key:shadowed", True)] == [(one["scope"], one["shadow"]) for one in found["limited_by"]]


def test_check_tells_of_policies_that_match_nothing(tmp_path: pathlib.Path) -> None:
    auth = write_keys(tmp_path, team={})
    config = catalog(9) | {
        "listen": {"port": 8080},
        "status": {"port": 8081},
        "auth": auth,
        "policies": [{"name": "idle", "match": {"key": "taem-*", "namespace": "x"}, "models": {"deny": ["gtp-*"]}}],
    }
    (tmp_path / "zurelay.yaml").write_text(json.dumps(config))
    command = [*ZURELAY, "check", str(tmp_path / "zurelay.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode
    assert "good" in done.stdout
    for told in ("taem-* matches none of the keys", "no caller has a workload", "gtp-* matches none of the models"):
        assert told in done.stderr
