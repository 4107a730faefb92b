"""Metrics as values: families with fixed labels, what was counted of each, sums over workers, and how both are written.

A family holds `MOST_SERIES` sets of label values at most; what comes beyond is counted under `other`, so that nothing
that a client or a provider makes up can grow it without end.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from zurelay import otlp

MOST_SERIES = 2_000
OTHER = "other"


class Kind(enum.Enum):
    """What a family's values mean."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. `name` and `labels` are OpenTelemetry's; `unit` is UCUM's; `bounds` are a histogram's, ascending."""

    name: str
    kind: Kind
    told: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name as Prometheus has it: https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/."""
        unit = "_seconds" if self.unit == "s" else ""
        return flat(self.name) + unit + ("_total" if self.kind is Kind.COUNTER else "")


def flat(name: str) -> str:
    """Write a name as Prometheus takes it."""
    return name.replace(".", "_")


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """What was counted of one series: one number, or a histogram's counts and, last, its sum."""

    family: str
    labels: tuple[str, ...]
    values: tuple[float, ...]


Labels = tuple[str, ...]
Totals = dict[tuple[str, Labels], tuple[float, ...]]


class Tally:
    """What one process has counted since it started."""

    __slots__ = ("_numbers", "_spreads")

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Labels, float]] = {}
        self._spreads: dict[str, dict[Labels, list[float]]] = {}

    def add(self, family: Family, labels: Labels, amount: float = 1) -> None:
        """Count; labels are values in the family's order."""
        series = self._numbers.setdefault(family.name, {})
        if labels not in series:
            labels = _admitted(series, labels)
        series[labels] = series.get(labels, 0) + amount

    def set(self, family: Family, labels: Labels, value: float) -> None:
        """Set a gauge."""
        series = self._numbers.setdefault(family.name, {})
        series[labels if labels in series else _admitted(series, labels)] = value

    def clear(self, family: Family) -> None:
        """Forget a gauge's series."""
        self._numbers.pop(family.name, None)

    def observe(self, family: Family, labels: Labels, value: float, times: int = 1) -> None:
        """Count a value in a histogram, `times` times."""
        spread = self._spread(family, labels)
        spread[bisect.bisect_left(family.bounds, value)] += times
        spread[-1] += value * times

    def merge(self, family: Family, labels: Labels, values: Sequence[float]) -> None:
        """Add a histogram's counts and sum that were gathered elsewhere."""
        spread = self._spread(family, labels)
        for place, value in enumerate(values):
            spread[place] += value

    def _spread(self, family: Family, labels: Labels) -> list[float]:
        series = self._spreads.setdefault(family.name, {})
        found = series.get(labels)
        if found is None:
            labels = _admitted(series, labels)
            found = series.setdefault(labels, [0.0] * (len(family.bounds) + 2))
        return found

    def samples(self) -> list[Sample]:
        """Give all that was counted."""
        numbers = [
            Sample(name, labels, (value,))
            for name, series in self._numbers.items()
            for labels, value in list(series.items())
        ]
        spreads = [
            Sample(name, labels, tuple(values))
            for name, series in self._spreads.items()
            for labels, values in list(series.items())
        ]
        return numbers + spreads


def _admitted(series: Mapping[Labels, object], labels: Labels) -> Labels:
    return labels if len(series) < MOST_SERIES else (OTHER,) * len(labels)


def total(reports: Iterable[Iterable[Sample]], gauges: frozenset[str] = frozenset()) -> Totals:
    """Put reports together: counts add up; of a gauge, the largest value counts."""
    found: Totals = {}
    for report in reports:
        for sample in report:
            key = (sample.family, sample.labels)
            before = found.get(key)
            if before is None:
                found[key] = sample.values
            elif sample.family in gauges:
                found[key] = max(before, sample.values)
            else:
                found[key] = tuple(map(sum, zip(before, sample.values, strict=True)))
    return found


def samples(totals: Totals) -> list[Sample]:
    """Give totals as a report."""
    return [Sample(name, labels, values) for (name, labels), values in totals.items()]


def _by_family(totals: Totals) -> dict[str, list[tuple[Labels, tuple[float, ...]]]]:
    found: dict[str, list[tuple[Labels, tuple[float, ...]]]] = {}
    for (name, labels), values in sorted(totals.items()):
        found.setdefault(name, []).append((labels, values))
    return found


def exposition(families: Iterable[Family], totals: Totals) -> str:
    """Write totals in Prometheus' text format; families that nothing was counted of are left out."""
    found = _by_family(totals)
    lines: list[str] = []
    for family in families:
        series = found.get(family.name)
        if series is None:
            continue
        name = family.prometheus
        lines.append(f"# HELP {name} {_escaped(family.told)}")
        lines.append(f"# TYPE {name} {family.kind.value}")
        for labels, values in series:
            lines += _series(family, name, labels, values)
    return "".join(f"{line}\n" for line in lines)


def _series(family: Family, name: str, labels: Labels, values: tuple[float, ...]) -> list[str]:
    pairs = [
        f'{flat(label)}="{_escaped(value, quote=True)}"' for label, value in zip(family.labels, labels, strict=True)
    ]
    shown = "{" + ",".join(pairs) + "}" if pairs else ""
    if family.kind is not Kind.HISTOGRAM:
        return [f"{name}{shown} {_number(values[0])}"]
    lines, count = [], 0.0
    for bound, in_bucket in zip((*map(_number, family.bounds), "+Inf"), values[:-1], strict=True):
        count += in_bucket
        joined = ",".join([*pairs, f'le="{bound}"'])
        lines.append(f"{name}_bucket{{{joined}}} {_number(count)}")
    return [*lines, f"{name}_sum{shown} {_number(values[-1])}", f"{name}_count{shown} {_number(count)}"]


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def written(families: Iterable[Family], totals: Totals, start: int, now: int) -> list[bytes]:
    """Write totals as OTLP's metrics, cumulative since `start`; times are nanoseconds since 1970."""
    found = _by_family(totals)
    out = []
    for family in families:
        series = found.get(family.name, [])
        points = [otlp.Point(dict(zip(family.labels, labels, strict=True)), values) for labels, values in series]
        if not points:
            continue
        if family.kind is Kind.HISTOGRAM:
            out.append(otlp.histogram(family.name, family.told, family.unit, family.bounds, points, (start, now)))
        elif family.kind is Kind.COUNTER:
            out.append(otlp.counter(family.name, family.told, family.unit, points, start, now))
        else:
            out.append(otlp.gauge(family.name, family.told, family.unit, points, now))
    return out
