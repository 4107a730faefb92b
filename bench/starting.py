"""Start: from the command to the first answer, and what a worker's imports take."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.figures import START, ZURELAY, Figures, Quantity
from bench.running import output
from bench.targets import Target

_IMPORTS = "import time; began = time.perf_counter(); import zurelay.server; print(time.perf_counter() - began)"


def first_answers(targets: Sequence[Target], figures: Figures) -> None:
    """Note how long each took from its start to its first answer."""
    for target in targets:
        figures.add(Quantity(title=START, name="first answer", unit="s"), target.name, target.started)


async def imports(rounds: int, figures: Figures) -> None:
    """Time what a worker imports, in a fresh interpreter."""
    for _ in range(rounds):
        said = await output(sys.executable, "-P", "-c", _IMPORTS)
        figures.add(Quantity(title=START, name="a worker's imports", unit="s"), ZURELAY, float(said))
