"""The figures for people: one table, a row a quantity, a column a target, and zurelay's ratios to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from bench.figures import DIRECT, ENVOY, LITELLM, PASSING, PORTKEY, ZURELAY, Figure, quantities, ratio

_COLUMNS = (DIRECT, ENVOY, ZURELAY, PASSING, PORTKEY, LITELLM)
_COMPARED = (ENVOY, PORTKEY, LITELLM)


def table(figures: Sequence[Figure]) -> Table:
    """Draw the table. A ratio is zurelay's figure by the other's: of times, small ones are good; of rates, large."""
    medians = {(figure.quantity, figure.target): figure.median for figure in figures}
    present = {figure.target for figure in figures}
    columns = [target for target in _COLUMNS if target in present]
    compared = [target for target in _COMPARED if target in present and ZURELAY in present]
    drawn = Table(box=box.MARKDOWN)
    drawn.add_column("what")
    for target in columns:
        drawn.add_column(target, justify="right")
    for target in compared:
        drawn.add_column(f"zurelay / {target}", justify="right")
    title = ""
    for quantity in quantities(figures):
        if quantity.title != title:
            title = quantity.title
            drawn.add_row(f"**{title}**")
        cells = [_cell(medians.get((quantity, target)), quantity.unit) for target in columns]
        ratios = [_ratio(ratio(figures, quantity, target)) for target in compared]
        drawn.add_row(quantity.name, *cells, *ratios)
    return drawn


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{shown(value)} {unit}".strip()


def shown(value: float) -> str:
    """Write a number with three digits that count; whole ones from 100 on."""
    if value == 0:
        return "0"
    if abs(value) >= 100:  # noqa: PLR2004  # see above
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"  # noqa: PLR2004  # see above


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{shown(value)}x"


def facts(found: Mapping[str, str]) -> str:
    """Write the facts on one line."""
    return ", ".join(f"{name} {value}" for name, value in found.items())
