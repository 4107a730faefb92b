from __future__ import annotations

from bench import figures, telemetry


def test_ratios_are_to_the_figure_without_by_quantity_and_share() -> None:
    found = figures.Figures()
    rate = figures.Quantity(title=telemetry.TITLE, name="whole answers", unit="/s")
    cpu = figures.Quantity(title=telemetry.TITLE, name="whole answers, CPU of sidecar", unit="us")
    for target, value in {telemetry.OFF: 1_000, telemetry.FEW: 990, telemetry.ALL: 900}.items():
        found.add(rate, target, value)
        found.add(cpu, target, value)
    assert {
        "whole answers, a hundredth": 0.99,
        "whole answers, all": 0.9,
        "whole answers, CPU of sidecar, a hundredth": 0.99,
        "whole answers, CPU of sidecar, all": 0.9,
    } == telemetry.ratios(found.all())
