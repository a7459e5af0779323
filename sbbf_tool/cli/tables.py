"""Tables as data: what the cells of a column are determines how they are written, and on a terminal
how they are made to fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.display import escape
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_number, format_percent, format_size

GAP = 2
"""Cells between two columns."""


class CellKind(Enum):
    """What the cells of a column are."""

    COUNT = "integers, with separators between thousands"
    BYTES = "sizes in bytes: with a unit on a terminal, exact elsewhere"
    RATE = "ratios from 0 to 1, as percentages"
    ESTIMATE = "estimated numbers, marked with ~"
    NAME = "names from files, and paths: shortened in the middle if there is no room"
    WORD = "words of this tool, which are neither shortened nor wrapped"
    SENTENCE = "text that wraps at words"
    SUMMARY = "text of which the beginning is enough: its end is cut if there is no room"


COUNT, BYTES, RATE, ESTIMATE, NAME, WORD, SENTENCE, SUMMARY = CellKind
NUMBERS = frozenset((COUNT, BYTES, RATE, ESTIMATE))


class Heading(Frozen):
    """One column of a table. Of columns that do not fit, those with the highest priority number are
    hidden first; 0 is never hidden.

    Columns of the same priority are hidden together, such as a minimum and a maximum. Of a row that
    is an object, the cell is the attribute `of`, by default that with the name of the column, or
    what the function `of` returns.
    """

    name: str
    kind: CellKind
    priority: int = 0
    of: str | Callable[[Any], object] = ""

    def cell_of(self, row: Any) -> object:
        if callable(self.of):
            return self.of(row)
        return getattr(row, self.of or self.name.replace(" ", "_"))


def format_cells(
    columns: Sequence[Heading], rows: Iterable[object], *, units: bool
) -> tuple[list[Heading], list[list[str]]]:
    """Return the columns that have any cell, and the cells as text. A cell is a value of the
    column's kind, None, or text."""
    lines = []
    for row in rows:
        cells = row if isinstance(row, tuple) else [column.cell_of(row) for column in columns]
        pairs = zip(columns, cells, strict=True)
        lines.append([_format_cell(column.kind, cell, units) for column, cell in pairs])
    positions = range(len(columns))
    visible = [at for at in positions if any(line[at] for line in lines)] or list(positions)
    return [columns[at] for at in visible], [[line[at] for at in visible] for line in lines]


def align(columns: Sequence[Heading], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the names of the columns, then the cells: numbers padded so that their decimal points
    are below each other."""
    texts = []
    for column, cells in zip(columns, zip(*lines, strict=True), strict=True):
        if column.kind in NUMBERS:
            padded = [column.name, *_align_points(cells)]
            most = max(map(cell_width, padded))
            texts.append([" " * (most - cell_width(text)) + text for text in padded])
        else:
            texts.append([column.name, *cells])
    return [list(line) for line in zip(*texts, strict=True)]


_NUMBER = r"([^ .]*\d)((?:\.\d+)?(?: .*)?)"
"""A number up to its decimal point, and its fraction with its unit."""


def _align_points(cells: Sequence[str]) -> Iterator[str]:
    """Yield cells with numbers padded so that as many characters follow the decimal point of
    each."""
    matches = [re.fullmatch(_NUMBER, cell) for cell in cells]
    width = max((len(match[2]) for match in matches if match is not None), default=0)
    for cell, match in zip(cells, matches, strict=True):
        if match is None:
            yield cell
        else:
            yield match[1] + match[2].ljust(width)


def _format_cell(kind: CellKind, cell: object, units: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return escape(cell)
    assert isinstance(cell, int | float)
    if kind is RATE:
        return format_percent(cell)
    if kind is ESTIMATE:
        return f"~{format_number(cell)}"
    if kind is BYTES and units:
        return format_size(int(cell))
    return f"{cell:,}" if isinstance(cell, int) else format_number(cell)


def cell_width(text: str) -> int:
    """Return the number of terminal cells that the text takes: most East Asian characters take two,
    and accents none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    width = 0
    for character in text:
        if category(character) not in ("Mn", "Me", "Cf"):
            width += 2 if east_asian_width(character) in "WF" else 1
    return width


class Plain:
    """Lines for a pipe or a file: whole, whatever their length."""

    width: int | None = None
    """Cells per line; None for any number."""

    def wrap(self, line: str, word: str = "", *, is_error: bool = False) -> list[str]:
        """Return the lines of an escaped text; the last `word` and colon in it, or the label of an
        error, gets a style."""
        return [line]

    def command(self, words: Sequence[str], label: str) -> list[str]:
        """Return the lines of a command that a shell reads as one."""
        return [label + escape(quote_command(words))]

    def table(self, columns: Sequence[Heading], cells: Sequence[Sequence[str]]) -> list[str]:
        """Return the lines of a table of these cells."""
        lines = align(columns, cells)
        widths = [max(map(cell_width, column)) for column in zip(*lines, strict=True)]
        texts = []
        for line in lines:
            pairs = zip(line, widths, strict=True)
            padded = [cell + " " * (width - cell_width(cell)) for cell, width in pairs]
            texts.append((" " * GAP).join(padded).rstrip())
        return texts
