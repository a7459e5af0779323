"""Bars, one per name or a histogram; and cells in rows and columns, each with a shade and, where
there is room, its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import (
    MOST_MARKS,
    WIDTH,
    label,
    line,
    number,
    path,
    picture,
    rect,
    shorten,
)

_MARGIN = 230
_ROW = 22
_MOST_ROWS = 60
_LETTER = 6.2
"""Width of a letter of the number beside a bar."""
# A histogram: its height, the bottom of its bars, and the space to their left.
_HEIGHT = 190
_BASE = 165
_SIDE = 60


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
        width = 0.5
        if bar.value:
            width = max(1.0, bar.value / most * (WIDTH - _MARGIN - room))
        marks += [
            label(_MARGIN - 8, y + 14, shorten(bar.name, 34), "end"),
            rect(_MARGIN, y, width, _ROW - 5, bar.kind, bar.title),
            label(_MARGIN + width + 6, y + 14, bar.text, kind="s"),
        ]
    return picture(key, title, f"{len(shown_bars)} bars", 12 + len(shown_bars) * _ROW, marks)


def draw_histogram(
    key: str,
    title: str,
    bins: Sequence[Bar],
    x_label: str,
    y_label: str,
    expected: Sequence[float] = (),
) -> str:
    """Draw vertical bars side by side; `expected` are the heights of a line over them."""
    bins = bins[:MOST_MARKS]
    most = max([*(bar.value for bar in bins), *expected], default=0) or 1
    width = (WIDTH - _SIDE - 20) / max(1, len(bins))
    scale = (_BASE - 20) / most
    marks = [
        line(_SIDE, _BASE, WIDTH - 20, _BASE),
        label(_SIDE, 12, y_label, kind="s"),
        label(WIDTH - 20, _HEIGHT + 8, x_label, "end", "s"),
        label(_SIDE - 6, 26, f"{most:,.0f}", "end", "s"),
        label(_SIDE - 6, _BASE, "0", "end", "s"),
    ]
    step = max(1, -(-len(bins) // 12))
    most_letters = max(4, int(width * step / 6))
    for at, bar in enumerate(bins):
        x = _SIDE + at * width
        height = max(1.0, bar.value * scale) if bar.value else 0.0
        marks.append(
            rect(x + 0.5, _BASE - height, max(0.5, width - 1), height, bar.kind, bar.title)
        )
        if at % step == 0:
            marks.append(label(x, _BASE + 14, shorten(bar.name, most_letters), kind="s"))
    points = []
    for at, value in enumerate(expected):
        points.append((_SIDE + (at + 0.5) * width, _BASE - value * scale))
    marks.append(path(points, "curve"))
    description = f"{len(bins)} bars; {x_label}, {y_label}"
    return picture(key, title, description, _HEIGHT + 14, marks)


_GRID_MARGIN = 190
_TOP = 30
_NUMBER_WIDTH = 27
_COLUMN_LABELS = 12


class GridCell(NamedTuple):
    share: float | None
    """From 0 to 1, the depth of the shade; None for a cell without a number."""
    text: str
    """The number in the cell."""
    title: str
    frame: str = ""
    """The class of the cell's frame, if it has one."""


def bin_size(rows: int, columns: int) -> int:
    """Return how many columns share one cell, so that there are at most as many cells as marks in a
    picture."""
    most = max(1, MOST_MARKS // max(1, min(rows, _MOST_ROWS)))
    return -(-columns // most) if columns > most else 1


def draw_grid(
    key: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[int, int], GridCell],
    axis: str,
) -> tuple[str, int]:
    """Draw the cells by number of row and column; return the picture, and the number of rows in it.

    `axis` says what the columns are. A cell that is missing is drawn as one without a number.
    """
    most_rows = min(_MOST_ROWS, max(1, MOST_MARKS // max(1, len(columns))))
    shown_rows = rows[:most_rows]
    width = min(90.0, (WIDTH - _GRID_MARGIN - 10) / max(1, len(columns)))
    marks = [label(_GRID_MARGIN, 12, axis, kind="s")]
    step = 1
    if width < 60:
        step = max(1, -(-len(columns) // _COLUMN_LABELS))
    most_letters = max(3, int(width * step / 6.2))
    for at in range(0, len(columns), step):
        text = shorten(columns[at], most_letters)
        marks.append(label(_GRID_MARGIN + at * width, 25, text, kind="s"))
    for row, name in enumerate(shown_rows):
        y = _TOP + row * _ROW
        marks.append(label(_GRID_MARGIN - 8, y + 15, shorten(name), "end"))
        for at, column in enumerate(columns):
            x = _GRID_MARGIN + at * width
            marks.append(_draw_cell(x, y, width, cells.get((row, at)), f"{name}, {column}"))
    description = f"{len(shown_rows)} rows, {len(columns)} columns"
    height = _TOP + len(shown_rows) * _ROW + 8
    return picture(key, title, description, height, marks), len(shown_rows)


def _draw_cell(x: float, y: float, width: float, cell: GridCell | None, place: str) -> str:
    if cell is None:
        return rect(x, y, width, _ROW - 1, "nothing", f"{place}: nothing")
    if cell.share is None:
        mark = rect(x, y, width, _ROW - 1, "nothing", cell.title)
    else:
        # A shade of at most 0.6 keeps enough contrast between the number and its ground, in light
        # and dark.
        shade = 0.04 + 0.56 * min(1.0, max(0.0, cell.share))
        kind = f"heat {cell.frame}".rstrip()
        mark = rect(x, y, width, _ROW - 1, kind, cell.title, shade)
    if width < _NUMBER_WIDTH or not cell.text:
        return mark
    return (
        f'{mark}<text class="c" x="{number(x + width / 2)}" y="{number(y + 14)}" '
        f'text-anchor="middle">{cell.text}</text>'
    )
