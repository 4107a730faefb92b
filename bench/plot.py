"""The figures that count most as a picture: a panel a quantity, a bar a target, in plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

import msgspec

from bench import figures, table
from bench.figures import ENVOY, LITELLM, MEMORY, PACED, PASSTHROUGH, PORTKEY, STREAMS, WHOLE, ZURELAY, Figure
from bench.goals import OPEN_STREAMS

_WIDTH, _COLUMNS, _MARGIN = 940, 2, 24  # pixels, as all below
_PANEL = (_WIDTH - _MARGIN * (_COLUMNS + 1)) // _COLUMNS
_LABEL, _VALUE = 130, 76  # beside the bars: who, and how much
_HEADING, _ROW, _BAR, _GAP = 44, 22, 14, 18
_COLOURS = {ENVOY: "#7a869a", ZURELAY: "#0b6e4f", PASSTHROUGH: "#5fb49c", PORTKEY: "#c98b2b", LITELLM: "#b5495b"}
_FONT = 'font-family="system-ui, sans-serif"'


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """What one panel shows. `names` are summed: a target's memory is that of all its processes."""

    heading: str
    better: str
    title: str
    names: tuple[str, ...]
    unit: str


_OPEN = f"{OPEN_STREAMS:,} streams open"
PANELS = (
    Panel(heading="Median, one connection", better="less", title=WHOLE, names=("median, 1 connection",), unit="ms"),
    Panel(
        heading="Requests a second, 32 connections",
        better="more",
        title=WHOLE,
        names=("a second, 32 connections",),
        unit="/s",
    ),
    Panel(
        heading="First token of a stream, added",
        better="less",
        title=STREAMS,
        names=("first token, added, median",),
        unit="ms",
    ),
    Panel(
        heading="CPU a streamed chunk, 2,000 a second",
        better="less",
        title=STREAMS,
        names=(f"CPU a chunk, {PACED}",),
        unit="us",
    ),
    Panel(
        heading=f"Memory, {_OPEN}",
        better="less",
        title=MEMORY,
        names=tuple(f"{role}, {_OPEN}" for role in ("sidecar", "Envoy", "proxy")),
        unit="MiB",
    ),
)


def drawn(measured: Sequence[Figure]) -> str:
    """Draw the panels of what was measured."""
    found = [(panel, bars) for panel in PANELS if (bars := _bars(panel, measured))]
    most = max((len(bars) for _, bars in found), default=0)
    height = _HEADING + most * _ROW + _GAP
    rows = -(-len(found) // _COLUMNS)
    pieces = [_panel(panel, bars, number, height) for number, (panel, bars) in enumerate(found)]
    whole = rows * height + _MARGIN
    size = f'width="{_WIDTH}" height="{whole}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {whole}">',
            f'<rect {size} rx="8" fill="#ffffff"/>',
            *pieces,
            "</svg>",
            "",
        ]
    )


def _bars(panel: Panel, measured: Sequence[Figure]) -> dict[str, float]:
    found: dict[str, float] = {}
    for target in _COLOURS:
        values = [figures.median(measured, panel.title, name, target) for name in panel.names]
        known = [value for value in values if value is not None]
        if known:
            found[target] = sum(known)
    return found


def _panel(panel: Panel, bars: dict[str, float], number: int, height: int) -> str:
    left = _MARGIN + number % _COLUMNS * (_PANEL + _MARGIN)
    top = number // _COLUMNS * height + _MARGIN
    room, most = _PANEL - _LABEL - _VALUE, max(bars.values())
    heading = f'{escape(panel.heading)} <tspan font-weight="400" fill="#666666">{panel.better} is better</tspan>'
    pieces = [_text(left, top + 14, heading, 'font-size="14" font-weight="600" fill="#222222"')]
    for place, (target, value) in enumerate(bars.items()):
        y = top + _HEADING - _ROW + place * _ROW
        long = max(1, round(room * max(value, 0) / most)) if most > 0 else 1
        shown = escape(f"{table.shown(value)} {panel.unit}")
        start = left + _LABEL
        pieces += [
            _text(start - 8, y + 11, escape(target), 'font-size="12" text-anchor="end" fill="#333333"'),
            f'<rect x="{start}" y="{y}" width="{long}" height="{_BAR}" rx="2" fill="{_COLOURS[target]}"/>',
            _text(start + long + 6, y + 11, shown, 'font-size="12" fill="#333333"'),
        ]
    return "\n".join(pieces)


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" {_FONT} {style}>{text}</text>'
