"""zurelay beside itself: gateways that differ in one setting, all up at once and loaded in turn."""

from __future__ import annotations

from collections.abc import Mapping

from bench import requests, servers, targets
from bench.figures import Figures
from bench.requests import Load
from bench.targets import Target

WORKERS = "by workers"
_WORKERS: Mapping[str, Mapping[str, object]] = {"1 worker": {"workers": 1}, "2 workers": {"workers": 2}}


async def workers(load: Load, stub: Target, figures: Figures) -> None:
    """Measure what a second worker brings, and how evenly the two share the work."""
    await compare(load, WORKERS, stub, _WORKERS, figures)


async def compare(
    load: Load, title: str, stub: Target, settings: Mapping[str, Mapping[str, object]], figures: Figures
) -> None:
    """Start a gateway for each of the settings, and load each in turn with requests for whole answers."""
    made = [servers.zurelay(load.directory, stub.port, name, some) for name, some in settings.items()]
    async with targets.running(made, load.directory) as started:
        await requests.compare(load, title, started, figures)
