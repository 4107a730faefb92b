from __future__ import annotations

import io

import pytest
from rich.console import Console

from bench import figures, table


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.127, "0.13"), (1.289, "1.29"), (23.44, "23.4"), (99.96, "100.0"), (229788.28, "229,788")],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert text == table.shown(value)


def drawn(found: figures.Figures) -> list[list[str]]:
    out = io.StringIO()
    Console(file=out, width=200).print(table.table(found.all()))
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in out.getvalue().splitlines()]


def test_targets_are_columns_and_quantities_rows_with_ratios_at_the_end() -> None:
    found = figures.Figures()
    rate = figures.Quantity(title=figures.WHOLE, name="a second", unit="/s")
    found.add(rate, figures.ZURELAY, 1000)
    found.add(rate, figures.ENVOY, 8000)
    rows = drawn(found)
    assert ["what", figures.ENVOY, figures.ZURELAY, f"zurelay / {figures.ENVOY}"] in rows
    assert ["**whole answers**", "", "", ""] in rows
    assert ["a second", "8,000 /s", "1,000 /s", "0.12x"] in rows


def test_what_a_target_lacks_is_empty() -> None:
    found = figures.Figures()
    found.add(figures.Quantity(title=figures.WHOLE, name="median", unit="ms"), figures.ZURELAY, 1.5)
    found.add(figures.Quantity(title=figures.WHOLE, name="p99", unit="ms"), figures.LITELLM, 30)
    rows = drawn(found)
    assert ["median", "1.50 ms", "", ""] in rows
    assert ["p99", "", "30.0 ms", ""] in rows


def test_facts_are_one_line() -> None:
    assert table.facts({"cores": "2", "kernel": "6.1"}) == "cores 2, kernel 6.1"
