"""A query: row groups as tiles, whose colour and letter are what excludes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import (
    MOST_MARKS,
    WIDTH,
    Figure,
    count,
    label,
    picture,
    rect,
    shorten,
    table,
)
from sbbf_tool.numbers import format_count, format_percent

STEPS = {
    "statistics": ("pages", "S", "min and max exclude it"),
    "dictionary": ("dictionary", "D", "the dictionary excludes it"),
    "filter": ("absent", "F", "a filter excludes it"),
    "read": ("read", "R", "it is read"),
    "harm": ("unreferenced", "!", "rows are lost, or the query fails"),
}
"""The class of the colour, the letter, and the meaning of what happens to a row group."""

_MARGIN = 250
_TILE = 16
"""From one tile to the next."""
_SIZE = 14
_PER_ROW = (WIDTH - _MARGIN - 10) // _TILE
_BAR = 20


class TileRow(NamedTuple):
    name: str
    counts: tuple[tuple[str, int], ...]
    """Number of row groups of each step, in the order of `STEPS`."""
    tiles: tuple[tuple[str, str], ...]
    """Step and name of each row group; empty if there are too many, which are then one bar."""


def build_query_figure(
    key: str,
    query: str,
    counts: Mapping[str, Counter[str]],
    tiles: Mapping[str, Sequence[tuple[str, str]]],
    row_groups: int,
    remark: str = "",
) -> Figure:
    """Build picture and table of a query; engines that do the same share a line, and the empty name
    stands for files without filters.

    `counts` has the number of row groups by step, and `tiles` step and name of each row group, both
    by engine.
    """
    engines_by_outcome: dict[object, list[str]] = {}
    for engine in sorted(counts, key=bool):
        outcome = bool(engine), tuple(sorted(counts[engine].items())), tuple(tiles[engine])
        engines_by_outcome.setdefault(outcome, []).append(engine)
    has_tiles = row_groups * len(engines_by_outcome) <= MOST_MARKS
    rows = []
    rows_of_table = []
    for names in engines_by_outcome.values():
        first, *_ = names
        name = ", ".join(names) or "without filters"
        numbers = [(step, counts[first][step]) for step in STEPS]
        rows_of_table.append((name, *[count(number) for _, number in numbers]))
        tiles_of_row = tuple(tiles[first]) if has_tiles else ()
        rows.append(TileRow(name, tuple(numbers), tiles_of_row))
    legend = []
    meanings = []
    for kind, letter, meaning in STEPS.values():
        text = f"{letter}: {meaning}"
        legend.append((kind, text))
        meanings.append(text)
    groups = format_count(row_groups, "row group")
    note = f"What excludes each of {groups}. {'; '.join(meanings)}.{remark}"
    content = table("Row groups by engine", ("engines", *STEPS), rows_of_table)
    title = f"Query: {query}"
    svg = ""
    if row_groups:
        svg = draw_tiles(f"{key}_p", title, rows)
    return Figure(key, title, note, svg, (content,), tuple(legend))


def draw_tiles(key: str, title: str, rows: Sequence[TileRow]) -> str:
    """Draw a line of tiles, or a bar, per query and kind of engine."""
    numbers_of_tiles = [len(row.tiles) for row in rows]
    is_bar = sum(numbers_of_tiles) > MOST_MARKS or 0 in numbers_of_tiles
    marks = []
    y = 6.0
    for row in rows:
        marks.append(label(_MARGIN - 8, y + 12, shorten(row.name, 38), "end"))
        if is_bar:
            marks += _draw_bar(row, y)
            y += _BAR + 8
        else:
            marks += _draw_row(row, y)
            y += max(1, -(-len(row.tiles) // _PER_ROW)) * _TILE + 8
    return picture(key, title, format_count(len(rows), "line"), y + 4, marks)


def _draw_row(row: TileRow, y: float) -> list[str]:
    """Draw the tiles of a line, which may need several."""
    marks = []
    for at, (step, name) in enumerate(row.tiles):
        kind, letter, meaning = STEPS[step]
        x = _MARGIN + at % _PER_ROW * _TILE
        top = y + at // _PER_ROW * _TILE
        marks.append(rect(x, top, _SIZE, _SIZE, kind, f"{name}: {meaning}"))
        marks.append(label(x + _SIZE / 2, top + 11, letter, "middle", "c"))
    return marks


def _draw_bar(row: TileRow, y: float) -> list[str]:
    total = sum(number for _, number in row.counts) or 1
    marks = []
    x = float(_MARGIN)
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
