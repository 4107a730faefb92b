from __future__ import annotations

from bench import figures

RATE = figures.Quantity(title=figures.WHOLE, name="a second", unit="/s")
FAILED = figures.Quantity(title=figures.WHOLE, name="that failed", unit="")


def measured() -> figures.Figures:
    found = figures.Figures()
    for target, values in {figures.ZURELAY: (900, 1000, 5000), figures.ENVOY: (8000, 10000, 9000)}.items():
        for value in values:
            found.add(RATE, target, value)
    found.add(FAILED, figures.ZURELAY, 0)
    found.add(FAILED, figures.ENVOY, 0)
    return found


def test_the_median_of_the_rounds_stands_for_a_figure() -> None:
    assert [1000, 9000, 0, 0] == [figure.median for figure in measured().all()]


def test_a_ratio_divides_ours_by_theirs() -> None:
    assert 1000 / 9000 == figures.ratio(measured().all(), RATE, figures.ENVOY)


def test_there_is_no_ratio_to_what_is_missing_or_zero() -> None:
    assert figures.ratio(measured().all(), RATE, figures.PORTKEY) is None
    assert figures.ratio(measured().all(), FAILED, figures.ENVOY) is None


def test_quantities_stand_once_by_title_however_they_were_measured() -> None:
    found = figures.Figures()
    idle, open_, chunk = (
        figures.Quantity(title=title, name=name, unit="")
        for title, name in ((figures.MEMORY, "idle"), (figures.MEMORY, "open"), (figures.STREAMS, "chunk"))
    )
    for quantity, target in (
        (idle, figures.ENVOY),
        (idle, figures.ZURELAY),
        (chunk, figures.ZURELAY),
        (open_, figures.ZURELAY),
        (RATE, figures.ENVOY),
    ):
        found.add(quantity, target, 1)
    assert [RATE, chunk, idle, open_] == figures.quantities(found.all())


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert (1.0, 51.0, 100.0) == tuple(figures.percentile(values, share) for share in (0, 0.5, 0.99))
    assert figures.percentile([7.0], 0.99) == 7.0


def test_settings_are_told_apart_from_servers() -> None:
    found = measured()
    found.add(figures.Quantity(title="by workers", name="a second", unit="/s"), "2 workers", 1700)
    assert {"by workers"} == {one.quantity.title for one in figures.of_settings(found.all())}
    assert {figures.WHOLE} == {one.quantity.title for one in figures.of_servers(found.all())}


def test_a_figure_is_found_by_its_words() -> None:
    assert 1000 == figures.median(measured().all(), figures.WHOLE, "a second", figures.ZURELAY)
    assert figures.median(measured().all(), figures.WHOLE, "a second", figures.PORTKEY) is None
