"""Puts requests on record: one line of JSON a request on standard error, and counters for the status page."""

from __future__ import annotations

import collections
import time
from decimal import Decimal

import msgspec

from zurelay import money
from zurelay.limits import Refused
from zurelay.loglines import LogLines
from zurelay.plan import Plan
from zurelay.ports import Record
from zurelay.rules import Finding
from zurelay.settlement import UNANSWERED
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
    workload: str = ""
    usd: str | None = None
    ours_usd: str | None = None
    why: str = ""


class _Rule(msgspec.Struct, kw_only=True):
    """A line about a policy or a limit."""

    time: float
    request_id: str
    rule: str
    effect: str
    why: str
    shadow: bool


class LogRecorder:
    """A Recorder that writes log lines and counts."""

    def __init__(self, lines: LogLines) -> None:
        self._counters: collections.Counter[str] = collections.Counter()
        self._costs: dict[str, Decimal] = collections.defaultdict(Decimal)
        self._encoder = msgspec.json.Encoder()
        self._lines = lines

    def counters(self) -> dict[str, float]:
        """Counts since the start, by metric line."""
        costs = {name: float(usd) for name, usd in self._costs.items()}
        return {**self._counters, **costs, "zurelay_log_lines_dropped_total": self._lines.dropped}

    def finished(self, record: Record) -> None:
        """Take note of a request that has ended."""
        plan = record.plan
        answering = record.attempt
        model = answering.model if answering is not None and record.outcome not in UNANSWERED else None
        self._counters[f'zurelay_requests_total{{model="{model or ""}",outcome="{record.outcome}"}}'] += 1
        spent = record.spent
        if spent is not None:
            self._count_cost("zurelay_cost_usd_total", model, spent.usd)
            self._count_cost("zurelay_own_cost_usd_total", model, spent.ours)
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
            workload=plan.workload,
            usd=_usd(spent.usd) if spent is not None else None,
            ours_usd=_usd(spent.ours) if spent is not None else None,
            why=record.why,
        )
        self._write(line)

    def _write(self, line: _Line | _Rule) -> None:
        self._lines.add(self._encoder.encode(line))

    def gave_up(self, plan: Plan, number: int, reason: str) -> None:
        """Take note of an attempt that failed."""
        cluster = plan.attempts[number - 1].cluster
        self._counters[f'zurelay_attempts_given_up_total{{route="{cluster}",reason="{reason}"}}'] += 1

    def limited(self, plan: Plan, refused: Refused, *, shadow: bool) -> None:
        """Take note of a request that a limit refused, or would have refused."""
        rule = refused.scope.name.partition(" ")[0]
        kind = refused.kind.value
        scope = "key" if rule.startswith("key:") else rule
        self._counters[f'zurelay_limits_hit_total{{scope="{scope}",limit="{kind}",shadow="{_word(shadow)}"}}'] += 1
        why = f"limit {refused.limit}, used {refused.used}, needed {refused.needed}"
        self._write(_Rule(time=time.time(), request_id=plan.request_id, rule=rule, effect=kind, why=why, shadow=shadow))

    def ruled(self, request_id: str, finding: Finding, *, shadow: bool) -> None:
        """Take note of what a policy had against a request, or would have had."""
        effect, rule = finding.effect.value, f"policy:{finding.policy}"
        name = f'zurelay_policy_effects_total{{policy="{finding.policy}",effect="{effect}",shadow="{_word(shadow)}"}}'
        self._counters[name] += 1
        self._write(
            _Rule(time=time.time(), request_id=request_id, rule=rule, effect=effect, why=finding.why, shadow=shadow)
        )

    def _count_cost(self, name: str, model: str | None, usd: Decimal | None) -> None:
        if usd:
            self._costs[f'{name}{{model="{model or ""}"}}'] += usd


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _usd(amount: Decimal | None) -> str | None:
    return money.written(amount) if amount else None
