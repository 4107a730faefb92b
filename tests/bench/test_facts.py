from __future__ import annotations

import pytest

from bench import facts, running


def test_the_processor_has_maker_and_name() -> None:
    cpuinfo = "processor\t: 0\nvendor_id\t: Maker\nmodel name\t: Fast 9\n\nprocessor\t: 1\nmodel name\t: Fast 9\n"
    assert facts.processor(cpuinfo) == "Maker Fast 9"


def test_memory_is_in_gibibytes() -> None:
    assert facts.memory("MemTotal:       25165824 kB\nMemFree: 1 kB\n") == 24


def test_envoys_version_is_found_behind_its_path() -> None:
    said = "\n/opt/a/b/envoy  version: 9e558093/1.40.0/Clean/RELEASE/BoringSSL\n\n"
    assert facts.envoy_version(said) == "1.40.0"


def test_an_envoy_without_a_version_is_shown() -> None:
    with pytest.raises(running.BenchError, match="nonsense"):
        facts.envoy_version("nonsense")
