"""Where helm can't be had, the reason is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import helm


@pytest.fixture(autouse=True)
def nothing_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and no index to fetch from."""
    monkeypatch.setattr(helm, "CACHE", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def test_a_wheel_that_can_t_be_fetched_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(helm.UnavailableError, match=r"v37==2\.0\.0 can't be fetched: ERROR: No matching"):
        helm.binary(4)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_tool_that_can_t_be_installed_is_told_and_tried_again() -> None:
    for _ in range(2):
        with pytest.raises(helm.UnavailableError, match="checkov can't be fetched"):
            helm.virtual_environment("checkov", "checkov")


def test_another_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(helm.UnavailableError, match="for Linux on x86_64 alone"):
        helm.binary(3)
