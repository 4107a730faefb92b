"""The table of metrics is fit to be written out."""

from __future__ import annotations

import pathlib
import re

from zurelay.families import FAMILIES, GAUGES
from zurelay.tally import Kind


def test_names_and_labels_are_as_prometheus_wants_them() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.prometheus)
        assert all(re.fullmatch(r"[a-z][a-z0-9_.]*", label) for label in family.labels)
        assert len(set(family.labels)) == len(family.labels)


def test_no_name_stands_twice() -> None:
    assert len(FAMILIES) == len({family.prometheus for family in FAMILIES}) == len({family.name for family in FAMILIES})


def test_histograms_alone_have_bounds_and_they_ascend() -> None:
    for family in FAMILIES:
        assert (family.kind is Kind.HISTOGRAM) == bool(family.bounds)
        assert list(family.bounds) == sorted(set(family.bounds))


def test_gauges_are_known_by_name() -> None:
    assert {family.name for family in FAMILIES if family.kind is Kind.GAUGE} == GAUGES


def test_the_guide_lists_them_all() -> None:
    guide = (pathlib.Path(__file__).parent.parent / "docs" / "telemetry.md").read_text()
    assert [] == [family.name for family in FAMILIES if f"| `{family.prometheus}` | {family.kind.value} |" not in guide]
