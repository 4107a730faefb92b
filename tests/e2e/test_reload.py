"""A change of the file is in force within seconds and costs no request; a bad one is refused (SPEC 13)."""

from __future__ import annotations

import copy
import hashlib
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, until


@pytest.fixture
def own(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway of this test's own, whose file it may change."""
    directory: pathlib.Path = tmp_path_factory.mktemp("own")
    provider.reset()
    running = Gateway(directory, catalog(provider.port)).wait_ready()
    yield running
    assert running.stop() == 0


def changed(gateway: Gateway, **models: Any) -> dict[str, Any]:
    """The gateway's configuration with models added, replaced, or (None) removed."""
    config = copy.deepcopy(gateway.config)
    config["models"].update(models)
    config["models"] = {name: model for name, model in config["models"].items() if model is not None}
    return config


def status(gateway: Gateway, model: str) -> int:
    """Ask a model and give the status."""
    return gateway.chat(ask(model)).status_code


def test_models_come_change_and_go_under_load_without_a_failed_request(own: Gateway, provider: Provider) -> None:
    stop = threading.Event()
    answers: list[int] = []

    def load() -> None:
        with httpx.Client(timeout=30) as client:
            while not stop.is_set():
                for stream in (False, True):
                    response = client.post(own.url + "/v1/chat/completions", json=ask("trio", stream=stream))
                    answers.append(response.status_code)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        extra = {"routes": [{"provider": "p3", "model": "extra"}], "context_window": 1000}
        own.write(changed(own, extra=extra))
        until(lambda: status(own, "extra") == 200, 5)
        moved = {"routes": [{"provider": "p2", "model": "moved"}], "context_window": 1000}
        own.write(changed(own, solo=moved))
        until(lambda: status(own, "solo") == 200 and b'"moved"' in provider.requests[-1].body, 5)
        own.write(changed(own, extra=None))
        until(lambda: status(own, "extra") == 404, 5)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert len(answers) > 20
    assert set(answers) == {200}


def test_a_bad_change_is_refused_named_and_counted_and_the_old_one_stays(own: Gateway) -> None:
    own.write(changed(own, broken={"routes": [{"provider": "p9", "model": "x"}], "context_window": 1000}))
    until(lambda: any("p9" in line for line in own.log), 5)
    assert status(own, "solo") == 200
    assert 'zurelay_config_reloads_total{result="refused"} 1' in httpx.get(own.status_url + "/metrics").text
    assert httpx.get(own.status_url + "/readyz").status_code == 200
    own.write(changed(own, broken=None, fixed={"routes": [{"provider": "p1", "model": "x"}], "context_window": 1000}))
    until(lambda: status(own, "fixed") == 200, 5)


def test_a_revoked_key_stops_within_five_seconds(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory: pathlib.Path = tmp_path_factory.mktemp("keys")
    entry = '- {name: a, digest: "sha256:%s"%s}\n'
    digest = "04d43cc6c72ff6f8d4b3f3f3f6a3c1d1b9d4f4c0a5b0b6a4bb3b9b9c7d0f7e11"
    (directory / "keys.yaml").write_text("keys:\n" + entry % (digest, ""))
    config = catalog(provider.port) | {"auth": {"require": "key", "keys": "keys.yaml"}}
    running = Gateway(directory, config).wait_ready()
    try:
        fresh = hashlib.sha256(b"zk_test").hexdigest()
        headers = {"x-api-key": "zk_test"}
        assert running.chat(ask("solo"), headers=headers).status_code == 401
        (directory / "keys.yaml").write_text("keys:\n" + entry % (fresh, ""))
        until(lambda: running.chat(ask("solo"), headers=headers).status_code == 200, 5)
        (directory / "keys.yaml").write_text("keys:\n" + entry % (fresh, ", disabled: true"))
        until(lambda: running.chat(ask("solo"), headers=headers).status_code == 401, 5)
    finally:
        assert running.stop() == 0
