"""docs/performance.md: the part between its marks is written by a run, the words around it by people."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.console import Console

from bench import table
from bench.figures import Figure
from bench.running import BenchError

_BEGIN = "<!-- figures of `python -m bench --document`: written by the command -->"
_END = "<!-- end of the figures -->"
_WIDTH = 400  # no cell is ever cut


def updated(text: str, told: Mapping[str, str], measured: Sequence[Figure]) -> str:
    """Put facts and table between the marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise BenchError(f"The document has no place for the figures: it needs a line {_BEGIN} and a line {_END}")
    return f"{before}{_BEGIN}\n\n{_facts(told)}\n\n{_drawn(measured)}\n{_END}{after}"


def _facts(told: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in told.items())


def _drawn(measured: Sequence[Figure]) -> str:
    out = io.StringIO()
    Console(file=out, width=_WIDTH).print(table.table(measured))
    return "".join(f"{line.strip()}\n" for line in out.getvalue().splitlines() if line.strip())
