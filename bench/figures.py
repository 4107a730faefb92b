"""What was measured: one figure a target and quantity, a value a round; the median stands for it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

import msgspec

DIRECT = "the stub itself"
ENVOY = "Envoy alone"
ZURELAY = "zurelay"
PASSTHROUGH = "zurelay, pass-through"
LITELLM = "LiteLLM"
PORTKEY = "Portkey"

WHOLE = "whole answers"
SHORT = "streams of 20 tokens"
STREAMS = "streams"
LARGE = "a request of 20 MB"
MEMORY = "memory"
START = "start"
TRACING = "by tracing"
UNTRACED, FEW_TRACED, ALL_TRACED = "no tracing", "a hundredth", "all"

PACED, SATURATED, FLOODED = "2,000 a second", "saturated", "flooded"

# One by one they stand in this order; the last are of gateways that differ in one setting.
_TITLES = (WHOLE, SHORT, STREAMS, LARGE, MEMORY, START)


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, in which unit; `title` is the part of the table that it stands in."""

    title: str
    name: str
    unit: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity of a target, as the rounds gave it."""

    quantity: Quantity
    target: str
    rounds: list[float]

    @property
    def median(self) -> float:
        """The figure."""
        return statistics.median(self.rounds)


class Figures:
    """All figures of a run, in the order of their first round."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[Quantity, str], list[float]] = {}

    def add(self, quantity: Quantity, target: str, value: float) -> None:
        """Take one round's value."""
        self._rounds.setdefault((quantity, target), []).append(value)

    def all(self) -> list[Figure]:
        """Give the figures."""
        return [
            Figure(quantity=quantity, target=target, rounds=rounds)
            for (quantity, target), rounds in self._rounds.items()
        ]


def of_servers(figures: Iterable[Figure]) -> list[Figure]:
    """Choose what compares zurelay with other servers."""
    return [figure for figure in figures if figure.quantity.title in _TITLES]


def of_settings(figures: Iterable[Figure]) -> list[Figure]:
    """Choose what compares zurelay with itself under other settings."""
    return [figure for figure in figures if figure.quantity.title not in _TITLES]


def quantities(figures: Iterable[Figure]) -> list[Quantity]:
    """List what was measured, each quantity once, by title and then as it was measured."""
    found = dict.fromkeys(figure.quantity for figure in figures)
    return sorted(found, key=lambda quantity: _place(quantity.title))


def _place(title: str) -> int:
    return _TITLES.index(title) if title in _TITLES else len(_TITLES)


def median(figures: Iterable[Figure], title: str, name: str, target: str) -> float | None:
    """Find a figure by its words; None where it wasn't measured."""
    for figure in figures:
        if (figure.quantity.title, figure.quantity.name, figure.target) == (title, name, target):
            return figure.median
    return None


def ratio(figures: Iterable[Figure], quantity: Quantity, other: str) -> float | None:
    """Divide zurelay's figure by another target's; None where one of them is missing or zero."""
    medians = {figure.target: figure.median for figure in figures if figure.quantity == quantity}
    ours, theirs = medians.get(ZURELAY), medians.get(other)
    return ours / theirs if ours and theirs else None


def percentile(values: Iterable[float], share: float) -> float:
    """Give the value below which `share` (0 to 1) of all lie: the nearest one, nothing between two."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
