"""Puts requests on record: a line of JSON on standard error, counts for the status page, spans for the collector."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from zurelay import counting, families, logline, otlp, semconv, spans
from zurelay.attributes import Place
from zurelay.limits import Refused
from zurelay.loglines import LogLines
from zurelay.model import Keep, Settings
from zurelay.otel import Signal
from zurelay.otlp import Span
from zurelay.plan import Plan
from zurelay.ports import Record, Unplanned
from zurelay.rules import Finding
from zurelay.spans import Rule, Scene
from zurelay.tally import Sample, Tally
from zurelay.trace_context import Context, Sampling, Trace, began
from zurelay.tried import tried

if TYPE_CHECKING:
    from zurelay.export import Exporter  # with gRPC, which takes longer to load than all the rest

Later = Callable[[Callable[[], None]], object]
"""Does something a moment later: what has gathered by then is made in one go, which takes a third of the time."""


def _at_once(do: Callable[[], None]) -> None:
    do()


_NOWHERE = Place("", "", 0)
_MOST_REASONS, _LONGEST_REASON = 128, 64  # as many choices as chat completions have at most
_SPAN_BYTES = 8
_INFO, _WARN = 9, 13  # severity numbers


class LogRecorder:
    """A Recorder that writes log lines, counts and traces. `configure` says how, and may come again."""

    def __init__(self, lines: LogLines, later: Later = _at_once) -> None:
        self.tally = Tally()
        self._lines = lines
        self._later = later
        self._exporter: Exporter | None = None
        self._sampling: Sampling | None = None
        self._places: dict[str, Place] = {}
        self._scene = Scene(lambda name: self._places.get(name, _NOWHERE), lambda: _fresh(_SPAN_BYTES))
        self._rule = Rule()
        self._waiting: list[Callable[[], list[Span]]] = []

    def configure(self, settings: Settings, exporter: Exporter | None) -> None:
        """Put a configuration in force; the exporter of the one before is the caller's to close."""
        if self._exporter is not None and self._exporter is not exporter:
            for signal, dropped in self._exporter.dropped.items():
                self.tally.add(families.TELEMETRY_DROPPED, (signal.value,), dropped)
        self._exporter = exporter
        traces = exporter is not None and exporter.sends(Signal.TRACES)
        self._sampling = exporter.export.sampling if exporter is not None and traces else None
        keep = settings.telemetry.keep
        self._rule = Rule(errors=Keep.ERRORS in keep, fallbacks=Keep.FALLBACKS in keep)
        for name, provider in settings.providers.items():  # those that went have attempts under way
            url = provider.base_url
            self._places[name] = Place(semconv.provider(name, url.host), url.host, url.port)

    def samples(self) -> Sequence[Sample]:
        """Give what was counted since the start."""
        own = Tally()
        own.add(families.LOG_LINES_DROPPED, (), self._lines.dropped)
        if self._exporter is not None:
            for signal, dropped in self._exporter.dropped.items():
                own.add(families.TELEMETRY_DROPPED, (signal.value,), dropped)
        return [*self.tally.samples(), *own.samples()]

    def trace(self, marked: str, sent: Context | None, *, stream: bool = False) -> Trace | None:
        """Begin the trace of a request, as `trace_context.began` says; None where nothing is traced."""
        if self._sampling is None:
            return None
        return began(marked, sent, self._sampling, _fresh, relayed=stream)

    def may_keep(self, trace: Trace) -> bool:
        """Tell whether a request that is under way may come to have spans."""
        return trace.kept or self._rule.errors or self._rule.fallbacks

    def decided(self, plan: Plan, took: float) -> None:
        """Take note of a plan; `took` is the sidecar's time for it in seconds."""
        counting.decided(self.tally, plan, took)

    def finished(self, record: Record) -> None:
        """Take note of a request that has ended."""
        record = _bounded(record)
        made = tried(record)
        counting.finished(self.tally, record, made, self._scene.place)
        trace = record.plan.trace
        self._write(logline.request(record, made, time.time_ns()), "request", trace)
        if trace is not None and (trace.kept or self._rule.keeps(record)):
            self._send(lambda: spans.of(record, made, self._scene, self._rule))

    def unplanned(self, given: Unplanned) -> None:
        """Take note of a request that has ended without a plan."""
        counting.unplanned(self.tally, given)
        self._write(logline.unplanned(given, time.time_ns()), "request", given.trace)
        if given.trace is not None and (given.trace.kept or self._rule.keeps_unplanned(given)):
            self._send(lambda: spans.of_unplanned(given, self._scene, self._rule))

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        """Take note of an attempt that failed."""
        counting.gave_up(self.tally, plan, number, reason)

    def limited(self, plan: Plan, refused: Refused, *, shadow: bool) -> None:
        """Take note of a request that a limit refused, or would have refused."""
        counting.limited(self.tally, refused, shadow=shadow)
        line = logline.limited(plan.request_id, refused, time.time_ns(), shadow=shadow)
        self._write(line, "limit", plan.trace, _WARN)

    def ruled(self, request_id: str, finding: Finding, *, shadow: bool) -> None:
        """Take note of what a policy had against a request, or would have had."""
        counting.ruled(self.tally, finding, shadow=shadow)
        self._write(logline.ruled(request_id, finding, time.time_ns(), shadow=shadow), "policy", None, _WARN)

    def _write(self, line: bytes, event: str, trace: Trace | None, severity: int = _INFO) -> None:
        self._lines.add(line)
        exporter = self._exporter
        if exporter is not None and exporter.sends(Signal.LOGS):
            record = otlp.Log(
                at=time.time_ns(),
                body=line.decode(),
                severity=severity,
                event=f"zurelay.{event}",
                trace=trace.id if trace is not None else "",
                span=trace.server if trace is not None else "",
            )
            exporter.add(Signal.LOGS, [otlp.log(record)])

    def _send(self, make: Callable[[], list[Span]]) -> None:
        """Make spans and send them, but later: no answer should wait for them."""
        self._waiting.append(make)
        if len(self._waiting) == 1:
            self._later(self.send_waiting)

    def send_waiting(self) -> None:
        """Make the spans that wait, and send them."""
        waiting, self._waiting = self._waiting, []
        if self._exporter is not None:
            self._exporter.add(Signal.TRACES, [otlp.span(span) for make in waiting for span in make()])


_random = random.Random()  # noqa: S311  # names, not secrets; every process seeds its own


def _bounded(record: Record) -> Record:
    """Cut short what a provider may write at any length."""
    told = record.finish_reasons
    if len(told) <= _MOST_REASONS and all(len(one) <= _LONGEST_REASON for one in told):
        return record
    return msgspec.structs.replace(record, finish_reasons=tuple(one[:_LONGEST_REASON] for one in told[:_MOST_REASONS]))


def _fresh(size: int) -> str:
    return f"{_random.getrandbits(8 * size) or 1:0{2 * size}x}"
