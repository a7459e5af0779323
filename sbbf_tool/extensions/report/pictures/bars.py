"""Bars: one per name, or a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS, WIDTH, label, line, path, picture, rect, shorten

_MARGIN, _ROW = 230, 22
_HEIGHT, _BASE, _SIDE = 190, 165, 60
_MOST_ROWS = 60
_LETTER = 6.2
"""Width of a letter of the number beside a bar."""


class Bar(NamedTuple):
    name: str
    value: float
    text: str
    """The number beside the bar."""
    title: str
    kind: str = "heat"


def draw_bars(key: str, title: str, bars: Sequence[Bar]) -> str:
    """Draw horizontal bars of the first names."""
    shown_bars = bars[:_MOST_ROWS]
    most = max((bar.value for bar in shown_bars), default=0) or 1
    room = max((len(bar.text) for bar in shown_bars), default=0) * _LETTER + 20
    marks = []
    for at, bar in enumerate(shown_bars):
        y = 6 + at * _ROW
        width = max(1.0, bar.value / most * (WIDTH - _MARGIN - room)) if bar.value else 0.5
        marks += [
            label(_MARGIN - 8, y + 14, shorten(bar.name, 34), "end"),
            rect(_MARGIN, y, width, _ROW - 5, bar.kind, bar.title),
            label(_MARGIN + width + 6, y + 14, bar.text, kind="s"),
        ]
    return picture(key, title, f"{len(shown_bars)} bars", 12 + len(shown_bars) * _ROW, marks)


def draw_histogram(key: str, title: str, bins: Sequence[Bar], x_label: str, y_label: str, expected: Sequence[float] = ()) -> str:
    """Draw vertical bars side by side; `expected` are the heights of a line over them."""
    bins = bins[:MOST_MARKS]
    most = max([*(each.value for each in bins), *expected], default=0) or 1
    width = (WIDTH - _SIDE - 20) / max(1, len(bins))
    scale = (_BASE - 20) / most
    marks = [
        line(_SIDE, _BASE, WIDTH - 20, _BASE),
        label(_SIDE, 12, y_label, kind="s"),
        label(WIDTH - 20, _HEIGHT + 8, x_label, "end", "s"),
    ]
    marks.append(label(_SIDE - 6, 26, f"{most:,.0f}", "end", "s"))
    marks.append(label(_SIDE - 6, _BASE, "0", "end", "s"))
    step = max(1, -(-len(bins) // 12))
    for at, each in enumerate(bins):
        height = max(1.0, each.value * scale) if each.value else 0.0
        marks.append(rect(_SIDE + at * width + 0.5, _BASE - height, max(0.5, width - 1), height, each.kind, each.title))
        if at % step == 0:
            marks.append(label(_SIDE + at * width, _BASE + 14, shorten(each.name, max(4, int(width * step / 6))), kind="s"))
    points = [(_SIDE + (at + 0.5) * width, _BASE - value * scale) for at, value in enumerate(expected)]
    return picture(key, title, f"{len(bins)} bars; {x_label}, {y_label}", _HEIGHT + 14, [*marks, path(points, "curve")])
