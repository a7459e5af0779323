"""Cells in rows and columns, each with a shade and, where there is room, its number: fill by row group, partitions by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS, WIDTH, label, number, picture, rect, shorten

_MARGIN, _ROW, _TOP = 190, 22, 30
_NUMBER_WIDTH = 27
_MOST_ROWS = 60
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
    """Return how many columns share one cell, so that there are at most as many cells as marks in a picture."""
    most = max(1, MOST_MARKS // max(1, min(rows, _MOST_ROWS)))
    return -(-columns // most) if columns > most else 1


def draw_grid(
    key: str, title: str, rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[int, int], GridCell], axis: str
) -> tuple[str, int]:
    """Draw the cells by number of row and column; return the picture, and the number of rows in it.

    `axis` says what the columns are. A cell that is missing is drawn as one without a number.
    """
    shown_rows = rows[: min(_MOST_ROWS, max(1, MOST_MARKS // max(1, len(columns))))]
    width = min(90.0, (WIDTH - _MARGIN - 10) / max(1, len(columns)))
    marks = [label(_MARGIN, 12, axis, kind="s")]
    step = max(1, -(-len(columns) // _COLUMN_LABELS)) if width < 60 else 1
    most = max(3, int(width * step / 6.2))
    marks += [label(_MARGIN + at * width, 25, shorten(columns[at], most), kind="s") for at in range(0, len(columns), step)]
    for row, name in enumerate(shown_rows):
        y = _TOP + row * _ROW
        marks.append(label(_MARGIN - 8, y + 15, shorten(name), "end"))
        places = ((at, f"{name}, {column}") for at, column in enumerate(columns))
        marks += [_draw_cell(_MARGIN + at * width, y, width, cells.get((row, at)), place) for at, place in places]
    return picture(key, title, f"{len(shown_rows)} rows, {len(columns)} columns", _TOP + len(shown_rows) * _ROW + 8, marks), len(shown_rows)


def _draw_cell(x: float, y: float, width: float, cell: GridCell | None, place: str) -> str:
    if cell is None or cell.share is None:
        title = cell.title if cell is not None else f"{place}: nothing"
        mark = rect(x, y, width, _ROW - 1, "nothing", title)
    else:
        # A shade of at most 0.6 keeps enough contrast between the number and its ground, in light and dark.
        mark = rect(x, y, width, _ROW - 1, f"heat {cell.frame}".rstrip(), cell.title, 0.04 + 0.56 * min(1.0, max(0.0, cell.share)))
    if cell is None or width < _NUMBER_WIDTH or not cell.text:
        return mark
    return f'{mark}<text class="c" x="{number(x + width / 2)}" y="{number(y + 14)}" text-anchor="middle">{cell.text}</text>'
