"""A query: row groups as tiles, whose colour and letter are what excludes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import Figure, count, table
from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS, WIDTH, label, picture, rect, shorten
from sbbf_tool.numbers import format_count, format_percent

STEPS = {
    "statistics": ("pages", "S", "min and max exclude it"),
    "dictionary": ("dictionary", "D", "the dictionary excludes it"),
    "filter": ("absent", "F", "a filter excludes it"),
    "read": ("read", "R", "it is read"),
    "harm": ("unreferenced", "!", "rows are lost, or the query fails"),
}
"""The class of the colour, the letter, and the meaning of what happens to a row group."""

_MARGIN, _TILE, _SIZE = 250, 16, 14
_PER_ROW = (WIDTH - _MARGIN - 10) // _TILE
_BAR = 20


class TileRow(NamedTuple):
    name: str
    counts: tuple[tuple[str, int], ...]
    """Number of row groups of each step, in the order of `STEPS`."""
    tiles: tuple[tuple[str, str], ...]
    """Step and name of each row group; empty if there are too many, which are then one bar."""


def build_figure(key: str, title: str, rows: Sequence[TileRow], row_groups: int, remark: str = "") -> Figure:
    """Build picture and table of the lines of one query."""
    meanings = "; ".join(f"{letter}: {meaning}" for _, letter, meaning in STEPS.values())
    note = f"What excludes each of {format_count(row_groups, 'row group')}. {meanings}.{remark}"
    content = table("Row groups by engine", ("engines", *STEPS), ((row.name, *(count(number) for _, number in row.counts)) for row in rows))
    legend = tuple((kind, f"{letter}: {meaning}") for kind, letter, meaning in STEPS.values())
    return Figure(key, title, note, draw_tiles(f"{key}_p", title, rows) if row_groups else "", (content,), legend)


def build_steps_figure(key: str, query: str, steps_by_engine: Mapping[str, Sequence[str]], row_groups: Sequence[str]) -> Figure:
    """Build the figure of a query on the named row groups; engines with the same steps share a line."""
    engines: dict[tuple[str, ...], list[str]] = {}
    for engine, steps in steps_by_engine.items():
        engines.setdefault(tuple(steps), []).append(engine)
    has_tiles = len(row_groups) * len(engines) <= MOST_MARKS
    rows = [
        TileRow(
            ", ".join(names),
            tuple((step, steps.count(step)) for step in STEPS),
            tuple(zip(steps, row_groups, strict=False)) if has_tiles else (),
        )
        for steps, names in engines.items()
    ]
    return build_figure(key, f"Query: {query}", rows, len(row_groups))


def draw_tiles(key: str, title: str, rows: Sequence[TileRow]) -> str:
    """Draw a line of tiles, or a bar, per query and kind of engine."""
    is_bar = sum(len(row.tiles) for row in rows) > MOST_MARKS or any(not row.tiles for row in rows)
    marks, y = [], 6.0
    for row in rows:
        marks.append(label(_MARGIN - 8, y + 12, shorten(row.name, 38), "end"))
        if is_bar:
            marks += _draw_bar(row, y)
            y += _BAR + 8
            continue
        for at, (step, name) in enumerate(row.tiles):
            kind, letter, meaning = STEPS[step]
            x, top = _MARGIN + at % _PER_ROW * _TILE, y + at // _PER_ROW * _TILE
            marks.append(rect(x, top, _SIZE, _SIZE, kind, f"{name}: {meaning}"))
            marks.append(label(x + _SIZE / 2, top + 11, letter, "middle", "c"))
        y += max(1, -(-len(row.tiles) // _PER_ROW)) * _TILE + 8
    return picture(key, title, format_count(len(rows), "line"), y + 4, marks)


def _draw_bar(row: TileRow, y: float) -> list[str]:
    total = sum(number for _, number in row.counts) or 1
    marks, x = [], float(_MARGIN)
    for step, number in row.counts:
        if not number:
            continue
        width = number / total * (WIDTH - _MARGIN - 10)
        kind, letter, meaning = STEPS[step]
        share = f"{format_count(number, 'row group')} ({format_percent(number / total)})"
        marks.append(rect(x, y, max(1.0, width), _BAR, kind, f"{row.name}: {share}: {meaning}"))
        if width > 60:
            marks.append(label(x + 4, y + 14, f"{letter} {number:,}", kind="c"))
        x += width
    return marks
