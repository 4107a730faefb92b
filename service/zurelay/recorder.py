"""Puts requests on record: one line of JSON a request on standard error, and counters for the status page."""

from __future__ import annotations

import collections
import time

import msgspec

from zurelay.loglines import LogLines
from zurelay.plan import Plan
from zurelay.ports import Record
from zurelay.usage import Usage


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    time: float
    request_id: str
    key: str | None
    asked: str
    model: str | None
    provider: str | None
    stream: bool
    outcome: str
    attempts: int
    given_up: list[str] = []
    finish_reasons: tuple[str, ...] = ()
    usage: Usage | None = None


class LogRecorder:
    """A Recorder that writes log lines and counts."""

    def __init__(self, lines: LogLines) -> None:
        self._counters: collections.Counter[str] = collections.Counter()
        self._encoder = msgspec.json.Encoder()
        self._lines = lines

    def counters(self) -> dict[str, float]:
        """Counts since the start, by metric line."""
        return {**self._counters, "zurelay_log_lines_dropped_total": self._lines.dropped}

    def finished(self, record: Record) -> None:
        """Take note of a request that has ended."""
        plan = record.plan
        answering = record.attempt
        model = answering.model if answering is not None and record.outcome != "refused" else None
        self._counters[f'zurelay_requests_total{{model="{model or ""}",outcome="{record.outcome}"}}'] += 1
        line = _Line(
            time=time.time(),
            request_id=plan.request_id,
            key=plan.key,
            asked=plan.asked,
            model=model,
            provider=answering.provider if answering is not None else None,
            stream=plan.stream,
            outcome=record.outcome,
            attempts=record.number,
            given_up=[f"{past.cluster}: {past.reason.value}" for past in plan.past],
            finish_reasons=record.finish_reasons,
            usage=record.usage,
        )
        self._lines.add(self._encoder.encode(line))

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        """Take note of an attempt that failed."""
        cluster = plan.attempts[number - 1].cluster
        self._counters[f'zurelay_attempts_given_up_total{{route="{cluster}",reason="{reason}"}}'] += 1
