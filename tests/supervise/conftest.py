"""What tests of whole lives start with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import Provider
from supervise.lives import Config, Start, Zurelay


@pytest.fixture(name="start")
def _start() -> Iterator[Start]:
    started: list[Zurelay] = []

    def start(*arguments: str, env: dict[str, str] | None = None) -> Zurelay:
        started.append(Zurelay(*arguments, env=env))
        return started[-1]

    yield start
    for each in started:
        each.clear()


@pytest.fixture(scope="module", name="provider")
def _provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.stop()


@pytest.fixture(name="config")
def _config(tmp_path: Path, provider: Provider) -> Config:
    return Config(tmp_path, provider)
