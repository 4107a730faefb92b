"""One of two pods is ended under load, as in a rolling upgrade: no request is lost, no stream is cut (SPEC 15)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import httpx
import pytest

from e2e.harness import Provider, until
from supervise.lives import HELLO, Config, Pod, Zurelay, envoy_in

CLIENTS = 6
STREAM = {**HELLO, "stream": True, "simulate": "tokens:6+gap:0.1"}


class Service:
    """What Kubernetes' Service does: clients are sent to those that are ready."""

    def __init__(self, configs: list[Config]) -> None:
        self.ready = list(configs)
        self._configs = configs
        self.over = threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.wait(0.2):
            self.ready = [config for config in self._configs if not config.ready()]

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._watcher.join(30)


class Load:
    """Clients that send one request after the other, every second one a stream."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.served: dict[int, int] = {config.port: 0 for config in service.ready}
        self.lost: list[str] = []
        self.over = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(CLIENTS)]

    def _send(self, number: int) -> None:
        with httpx.Client(timeout=30) as client:
            for turn in itertools.count(number):
                if self.over.is_set():
                    return
                ready = self._service.ready
                self._one(client, ready[turn // 2 % len(ready)], streamed=turn % 2 == 0)

    def _one(self, client: httpx.Client, config: Config, *, streamed: bool) -> None:
        try:
            answer = client.post(config.chat, json=STREAM if streamed else HELLO)
        except httpx.TransportError as error:
            self.lost.append(repr(error))
            return
        self.served[config.port] += 1
        if answer.status_code != httpx.codes.OK or (streamed and not answer.text.endswith("data: [DONE]\n\n")):
            self.lost.append(f"{answer.status_code} {answer.text[-200:]}")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)


@pytest.fixture(name="start")
def _start() -> Iterator[list[Zurelay]]:
    started: list[Zurelay] = []
    yield started
    for each in started:
        each.clear()


def test_no_request_is_lost_and_no_stream_is_cut(start: list[Zurelay], provider: Provider, tmp_path: Path) -> None:
    def begin(*arguments: str, env: dict[str, str] | None = None) -> Zurelay:
        start.append(Zurelay(*arguments, env=env))
        return start[-1]

    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = (Config(tmp_path / name, provider) for name in ("old", "new"))
    pods = [Pod(begin, config, tmp_path / name / "run") for name, config in (("old", old), ("new", new))]
    with envoy_in(pods[0].run) as process, envoy_in(pods[1].run):
        until(lambda: not old.ready() and not new.ready(), 30)
        with Service([old, new]) as service, Load(service) as load:
            until(lambda: min(load.served.values()) > 2 * CLIENTS, 30)
            pods[0].sidecar.process.terminate()  # as the kubelet does, the hook at the same time
            assert pods[0].ask("/drain").json() == {"drained": True}
            process.terminate()
            assert pods[0].sidecar.ended() == 0
            after = load.served[new.port]
            until(lambda: load.served[new.port] > after + 2 * CLIENTS, 30)
    assert load.lost == []
