"""Tests of the chart fetch helm themselves; where that can't be, they are left out with the reason."""

from __future__ import annotations

import os

import pytest

from tools import helm


def without(reason: helm.UnavailableError) -> None:
    """Leave the tests out, unless ZURELAY_REQUIRE_HELM says that they must run."""
    if os.environ.get("ZURELAY_REQUIRE_HELM"):
        raise reason
    pytest.skip(str(reason))


@pytest.fixture(scope="session", autouse=True)
def helm_is_here() -> None:
    """Both majors."""
    try:
        for major in helm.MAJORS:
            helm.binary(major)
    except helm.UnavailableError as error:
        without(error)
