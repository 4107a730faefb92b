"""The figures for people, in three tables: zurelay beside others, what it must reach, and zurelay beside itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from bench import figures as chosen
from bench.figures import DIRECT, ENVOY, LITELLM, PASSTHROUGH, PORTKEY, ZURELAY, Figure, quantities, ratio
from bench.goals import Bound, Judged

_COLUMNS = (DIRECT, ENVOY, ZURELAY, PASSTHROUGH, PORTKEY, LITELLM)
_COMPARED = (ENVOY, PORTKEY, LITELLM)


def tables(measured: Sequence[Figure], found: Sequence[Judged]) -> list[Table]:
    """Draw all that a run has to say."""
    drawn = [goals(found), servers(chosen.of_servers(measured))]
    others: dict[str, list[Figure]] = {}
    for figure in chosen.of_settings(measured):
        others.setdefault(figure.quantity.title, []).append(figure)
    return drawn + [settings(title, some) for title, some in others.items()]


def goals(found: Sequence[Judged]) -> Table:
    """What it must reach and aims at, and whether it did."""
    drawn = _table("what", "must", "aim", "found", "met")
    for one in found:
        goal = one.goal
        bounds = (_bound(goal.must, goal.unit), _bound(goal.aim, goal.unit))
        drawn.add_row(goal.what, *bounds, _cell(one.found, goal.unit), one.met.value)
    return drawn


def servers(measured: Sequence[Figure]) -> Table:
    """Beside others. A ratio is zurelay's figure by the other's: of times, small ones are good; of rates, large."""
    medians = {(figure.quantity, figure.target): figure.median for figure in measured}
    present = {figure.target for figure in measured}
    columns = [target for target in _COLUMNS if target in present]
    compared = [target for target in _COMPARED if target in present and ZURELAY in present]
    drawn = _table("what", *columns, *(f"zurelay / {target}" for target in compared))
    title = ""
    for quantity in quantities(measured):
        if quantity.title != title:
            title = quantity.title
            drawn.add_row(f"**{title}**")
        cells = [_cell(medians.get((quantity, target)), quantity.unit) for target in columns]
        ratios = [_cell(ratio(measured, quantity, target), "x") for target in compared]
        drawn.add_row(quantity.name, *cells, *ratios)
    return drawn


def settings(title: str, measured: Sequence[Figure]) -> Table:
    """Beside itself, under settings that differ in one thing."""
    medians = {(figure.quantity, figure.target): figure.median for figure in measured}
    columns = list(dict.fromkeys(figure.target for figure in measured))
    drawn = _table(title, *columns)
    for quantity in quantities(measured):
        drawn.add_row(quantity.name, *(_cell(medians.get((quantity, target)), quantity.unit) for target in columns))
    return drawn


def _table(first: str, *others: str) -> Table:
    drawn = Table(box=box.MARKDOWN)
    drawn.add_column(first)
    for name in others:
        drawn.add_column(name, justify="right")
    return drawn


def _bound(bound: Bound | None, unit: str) -> str:
    if bound is None:
        return ""
    return f"{'over' if bound.over else 'under'} {_plain(bound.value)}{'' if unit == 'x' else ' '}{unit}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{shown(value)}{unit}" if unit == "x" else f"{shown(value)} {unit}".strip()


def shown(value: float) -> str:
    """Write a number with three digits that count; whole ones from 100 on."""
    if value == 0:
        return "0"
    if abs(value) >= 100:  # noqa: PLR2004  # see above
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"  # noqa: PLR2004  # see above


def facts(found: Mapping[str, str]) -> str:
    """Write the facts on one line."""
    return ", ".join(f"{name} {value}" for name, value in found.items())
