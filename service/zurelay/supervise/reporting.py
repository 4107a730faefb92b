"""Sends the metrics of one instance to a collector, all workers together, as often as the variables say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from zurelay import tally
from zurelay.families import FAMILIES
from zurelay.model import Telemetry
from zurelay.otel import OtelError, Signal
from zurelay.tally import Totals
from zurelay.telemetry import Sending

_log = logging.getLogger("zurelay")

_LOOK = 5.0  # seconds between two looks whether there is a collector by now


class Counted(Protocol):
    """Who knows the figures."""

    async def totals(self) -> Totals:
        """Give what all workers have counted."""


class Reporting:
    """Reports from `run` on. `telemetry` gives the settings in force, which may change."""

    def __init__(self, counted: Counted, telemetry: Callable[[], Telemetry], environ: Mapping[str, str]) -> None:
        self._counted = counted
        self._telemetry = telemetry
        self._sending = Sending(environ, frozenset({Signal.METRICS}))
        self._began = time.time_ns()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            try:
                exporter = self._sending.configure(self._telemetry())
            except OtelError as error:  # a start or reload has said so; what was in force stays
                _log.warning("metrics are not sent: %s", error)
                exporter = None
            await asyncio.sleep(exporter.export.interval if exporter is not None else _LOOK)
            await self.report()

    async def report(self) -> None:
        """Send one report, where there is a collector."""
        exporter = self._sending.exporter
        if exporter is not None:
            totals = await self._counted.totals()
            exporter.add(Signal.METRICS, tally.written(FAMILIES, totals, self._began, time.time_ns()))

    async def close(self) -> None:
        """Send the last figures, for a second at most."""
        await self.report()
        await asyncio.to_thread(self._sending.close)
