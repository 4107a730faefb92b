"""The metrics of an instance on their way to a collector."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from otlp_receiver import Receiver
from zurelay.families import REQUESTS
from zurelay.model import Telemetry
from zurelay.supervise.reporting import Reporting
from zurelay.tally import Totals


class Counted:
    async def totals(self) -> Totals:
        return {(REQUESTS.name, ("m", "answered")): (5.0,)}


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def values(receiver: Receiver) -> list[float]:
    metrics = [metric for each in receiver.metrics for scope in each.scope_metrics for metric in scope.metrics]
    return [point.as_double for metric in metrics for point in metric.sum.data_points]


async def test_they_are_reported_again_and_again(receiver: Receiver) -> None:
    reporting = Reporting(Counted(), lambda: Telemetry(otlp=receiver.endpoint), {"OTEL_METRIC_EXPORT_INTERVAL": "20"})
    task = asyncio.create_task(reporting.run())
    await asyncio.to_thread(receiver.until, lambda r: len(values(r)) >= 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await reporting.close()
    assert {5.0} == set(values(receiver))


async def test_the_last_figures_are_sent_at_the_end(receiver: Receiver) -> None:
    reporting = Reporting(Counted(), lambda: Telemetry(otlp=receiver.endpoint), {})
    task = asyncio.create_task(reporting.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await reporting.close()
    assert [5.0] == values(receiver)


async def test_nothing_is_reported_where_nobody_says_where(receiver: Receiver) -> None:
    reporting = Reporting(Counted(), Telemetry, {})
    await reporting.report()
    await reporting.close()
    assert [] == values(receiver)


async def test_a_variable_that_cannot_be_obeyed_is_said(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    given = Telemetry(otlp=receiver.endpoint)
    reporting = Reporting(Counted(), lambda: given, {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    task = asyncio.create_task(reporting.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "metrics are not sent: OTEL_EXPORTER_OTLP_PROTOCOL" in caplog.text
