"""Metrics: counted in workers, put together, written for Prometheus and OTLP; never without a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from zurelay import otlp, tally
from zurelay.tally import Family, Kind, Tally

COUNT = Family(name="z.asked", kind=Kind.COUNTER, told='Said "so"\nand \\ so.', unit="{request}", labels=("a.b", "c"))
PLAIN = Family(name="z.plain", kind=Kind.COUNTER, told="No labels.")
LEVEL = Family(name="z.level", kind=Kind.GAUGE, told="A level.", unit="1", labels=("a",))
TIMES = Family(name="z.times", kind=Kind.HISTOGRAM, told="Times.", unit="s", labels=("a",), bounds=(0.5, 1.0))
ALL = (COUNT, PLAIN, LEVEL, TIMES)
GAUGES = frozenset({LEVEL.name})
VALUES = st.floats(0, 1e6)


def of(counted: Tally) -> tally.Totals:
    return tally.total([counted.samples()], GAUGES)


def test_values_stand_under_their_names_and_types() -> None:
    counted = Tally()
    counted.add(COUNT, ("x", "y"))
    counted.add(COUNT, ("x", "y"), 2)
    counted.set(LEVEL, ("k",), 0.25)
    counted.observe(TIMES, ("k",), 0.5)
    counted.observe(TIMES, ("k",), 0.75, 2)
    counted.observe(TIMES, ("k",), 7)
    assert tally.exposition(ALL, of(counted)).splitlines() == [
        '# HELP z_asked_total Said "so"\\nand \\\\ so.',
        "# TYPE z_asked_total counter",
        'z_asked_total{a_b="x",c="y"} 3',
        "# HELP z_level A level.",
        "# TYPE z_level gauge",
        'z_level{a="k"} 0.25',
        "# HELP z_times_seconds Times.",
        "# TYPE z_times_seconds histogram",
        'z_times_seconds_bucket{a="k",le="0.5"} 1',
        'z_times_seconds_bucket{a="k",le="1"} 3',
        'z_times_seconds_bucket{a="k",le="+Inf"} 4',
        'z_times_seconds_sum{a="k"} 9',
        'z_times_seconds_count{a="k"} 4',
    ]


@given(st.dictionaries(st.tuples(st.text(), st.text()), VALUES))
def test_any_label_is_read_back_by_prometheus(series: dict[tuple[str, str], float]) -> None:
    counted = Tally()
    for labels, value in series.items():
        counted.add(COUNT, labels, value)
    families = list(text_string_to_metric_families(tally.exposition(ALL, of(counted))))
    found = {(s.labels["a_b"], s.labels["c"]): s.value for family in families for s in family.samples}
    assert series == found


@given(st.lists(st.lists(st.tuples(st.sampled_from("xy"), VALUES))))
def test_workers_together_are_as_one(workers: list[list[tuple[str, float]]]) -> None:
    one = Tally()
    several = [Tally() for _ in workers]
    for counted, values in zip(several, workers, strict=True):
        for label, value in values:
            for each in (counted, one):
                each.observe(TIMES, (label,), value)
                each.add(PLAIN, ())
    together = tally.total((counted.samples() for counted in several), GAUGES)
    alone = of(one)
    assert together.keys() == alone.keys()
    for key, values_ in together.items():
        assert values_[:-1] == alone[key][:-1]
        assert abs(values_[-1] - alone[key][-1]) <= 1e-6 * max(1, values_[-1])


def test_of_a_gauge_the_largest_counts() -> None:
    reports = []
    for level in (0.5, 0.75, 0.1):
        counted = Tally()
        counted.set(LEVEL, ("k",), level)
        reports.append(counted.samples())
    assert {("z.level", ("k",)): (0.75,)} == tally.total(reports, GAUGES)


def test_a_gauge_can_be_forgotten() -> None:
    counted = Tally()
    counted.set(LEVEL, ("k",), 1)
    counted.clear(LEVEL)
    assert [] == counted.samples()


def test_what_was_gathered_elsewhere_is_added() -> None:
    counted = Tally()
    counted.observe(TIMES, ("k",), 0.1)
    counted.merge(TIMES, ("k",), (1, 2, 3, 9.5))
    assert {("z.times", ("k",)): (2, 2, 3, 9.6)} == of(counted)


def test_labels_without_end_end_up_in_one_series() -> None:
    counted = Tally()
    for number in range(tally.MOST_SERIES + 500):
        counted.add(COUNT, (str(number), "x"))
        counted.observe(TIMES, (str(number),), 1)
    found = of(counted)
    assert 2 * (tally.MOST_SERIES + 1) == len(found)
    assert (500,) == found["z.asked", (tally.OTHER, tally.OTHER)]
    counted.add(COUNT, ("7", "x"))
    assert (2,) == of(counted)["z.asked", ("7", "x")]


def test_a_report_is_read_back() -> None:
    counted = Tally()
    counted.observe(TIMES, ("k",), 0.75)
    counted.add(COUNT, ("x", "y"))
    assert of(counted) == tally.total([tally.samples(of(counted))])


def test_otlp_has_the_same_values() -> None:
    counted = Tally()
    counted.add(COUNT, ("x", "y"), 3)
    counted.set(LEVEL, ("k",), 0.25)
    counted.observe(TIMES, ("k",), 0.75)
    written = tally.written(ALL, of(counted), 4, 9)
    data = otlp.request(otlp.resource({}), otlp.scope("s", "1"), written)
    metrics = ExportMetricsServiceRequest.FromString(data).resource_metrics[0].scope_metrics[0].metrics
    assert [("z.asked", "{request}"), ("z.level", "1"), ("z.times", "s")] == [(m.name, m.unit) for m in metrics]
    asked, level, times = metrics
    assert 3 == asked.sum.data_points[0].as_double
    assert 0.25 == level.gauge.data_points[0].as_double
    assert [0, 1, 0] == list(times.histogram.data_points[0].bucket_counts)
