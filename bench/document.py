"""docs/performance.md: the part between its marks is written by a run, the words around it by people."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench import goals, table
from bench.figures import Figure
from bench.running import BenchError

_BEGIN = "<!-- figures of `python -m bench --document`: written by the command -->"
_END = "<!-- end of the figures -->"
_WIDTH = 400  # no cell is ever cut


def updated(text: str, told: Mapping[str, str], measured: Sequence[Figure], picture: str) -> str:
    """Put facts, picture and tables between the marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise BenchError(f"The document has no place for the figures: it needs a line {_BEGIN} and a line {_END}")
    shown = f"![The figures that count most, as bars]({picture})"
    drawn = [_drawn(one) for one in table.tables(measured, goals.judged(measured))]
    return "\n\n".join([f"{before}{_BEGIN}", _facts(told), shown, *drawn, f"{_END}{after}"])


def _facts(told: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in told.items())


def _drawn(one: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=_WIDTH).print(one)
    return "\n".join(line.strip() for line in out.getvalue().splitlines() if line.strip())
