from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from bench import figures, goals, table
from bench.figures import Quantity

RATE = Quantity(title=figures.WHOLE, name="a second, 32 connections", unit="/s")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.127, "0.13"), (1.289, "1.29"), (23.44, "23.4"), (99.96, "100.0"), (229788.28, "229,788")],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert text == table.shown(value)


def drawn(one: Table) -> list[list[str]]:
    out = io.StringIO()
    Console(file=out, width=200).print(one)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in out.getvalue().splitlines()]


def test_targets_are_columns_and_quantities_rows_with_ratios_at_the_end() -> None:
    found = figures.Figures()
    found.add(RATE, figures.ZURELAY, 1000)
    found.add(RATE, figures.ENVOY, 8000)
    rows = drawn(table.servers(found.all()))
    assert ["what", figures.ENVOY, figures.ZURELAY, f"zurelay / {figures.ENVOY}"] in rows
    assert ["**whole answers**", "", "", ""] in rows
    assert [RATE.name, "8,000 /s", "1,000 /s", "0.12x"] in rows


def test_what_a_target_lacks_is_empty() -> None:
    found = figures.Figures()
    found.add(Quantity(title=figures.WHOLE, name="median", unit="ms"), figures.ZURELAY, 1.5)
    found.add(Quantity(title=figures.WHOLE, name="p99", unit="ms"), figures.LITELLM, 30)
    rows = drawn(table.servers(found.all()))
    assert ["median", "1.50 ms", "", ""] in rows
    assert ["p99", "", "30.0 ms", ""] in rows


def test_goals_stand_with_what_was_found() -> None:
    found = figures.Figures()
    found.add(RATE, figures.ZURELAY, 1500)
    found.add(RATE, figures.PORTKEY, 500)
    rows = drawn(table.goals(goals.judged(found.all())))
    assert ["requests, 32 connections", "over 1,300 /s", "over 2,000 /s", "1,500 /s", "yes"] in rows
    assert ["requests by Portkey's", "over 2.5x", "", "3.00x", "yes"] in rows
    assert ["requests by LiteLLM's", "over 15x", "", "", "not measured"] in rows


def test_settings_have_a_table_of_their_own_beside_the_one_of_servers() -> None:
    found = figures.Figures()
    found.add(RATE, figures.ZURELAY, 1000)
    for workers, rate in (("1 worker", 900), ("2 workers", 1700)):
        found.add(Quantity(title="by workers", name="a second", unit="/s"), workers, rate)
    _, servers, workers_table = table.tables(found.all(), [])
    assert ["by workers", "1 worker", "2 workers"] in drawn(workers_table)
    assert ["a second", "900 /s", "1,700 /s"] in drawn(workers_table)
    assert not [row for row in drawn(servers) if "1 worker" in row]


def test_facts_are_one_line() -> None:
    assert table.facts({"cores": "2", "kernel": "6.1"}) == "cores 2, kernel 6.1"
