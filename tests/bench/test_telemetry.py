from __future__ import annotations

from bench import figures, telemetry


def test_gateways_differ_in_the_share_that_is_traced() -> None:
    assert {
        figures.UNTRACED: {},
        figures.FEW_TRACED: {"telemetry": {"otlp": "http://c:1", "sample": 0.01}},
        figures.ALL_TRACED: {"telemetry": {"otlp": "http://c:1", "sample": 1.0}},
    } == telemetry.settings("http://c:1")
