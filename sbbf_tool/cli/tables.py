"""Tables of text that fit a terminal: each column has a kind and a priority.

On a terminal that is too narrow, sentences wrap at words and long names are shortened in the middle, then columns are hidden by priority,
then names are shortened further. Numbers are never broken or shortened. If even that does not fit, each record becomes a paragraph. Widths
are in terminal cells, of which most East Asian characters take two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import compress
from typing import Any

from sbbf_tool.cli.styles import FAINT, paint, style_of
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_number, format_percent, format_size

GAP = 2
"""CellKind between two columns."""
_LEAST_SENTENCE = 28
"""Width below which a sentence is not wrapped, as long as another column can be hidden."""
_LEAST_NAME = 12
_READABLE_NAME = 30
"""Width to which names are shortened before a column is hidden."""
_ELLIPSIS = "…"


class CellKind(Enum):
    """What the cells of a column are; it determines how they are formatted, aligned and made to fit."""

    COUNT = "count"
    """Integers, with separators between thousands."""
    BYTES = "bytes"
    """Sizes in bytes: with a unit on a terminal, exact elsewhere."""
    RATE = "rate"
    """Ratios from 0 to 1, as percentages."""
    ESTIMATE = "estimate"
    """Estimated numbers, marked with ~."""
    NAME = "name"
    """Names from files, and paths: shortened in the middle if there is no room."""
    WORD = "word"
    """Words of this tool, which are neither shortened nor wrapped."""
    SENTENCE = "sentence"
    """Text that wraps at words."""
    SUMMARY = "summary"
    """Text of which the beginning is enough: its end is cut if there is no room."""


COUNT, BYTES, RATE, ESTIMATE, NAME, WORD, SENTENCE, SUMMARY = CellKind
NUMBERS = frozenset((COUNT, BYTES, RATE, ESTIMATE))


@dataclass(frozen=True)
class Heading:
    """One column of a table. Of columns that do not fit, those with the highest priority number are hidden first; 0 is never hidden.

    Columns of the same priority are hidden together, such as a minimum and a maximum.
    """

    name: str
    kind: CellKind
    priority: int = 0


@dataclass(frozen=True)
class _Sheet:
    """The columns of a table, with their formatted cells."""

    columns: list[Heading]
    cells: list[list[str]]
    widths: list[int]

    def without(self, priority: int) -> _Sheet:
        """Return the sheet without the columns of this priority."""
        visible = [column.priority != priority for column in self.columns]

        def select(items: list[Any]) -> list[Any]:
            return [*compress(items, visible)]

        return _Sheet(select(self.columns), [select(line) for line in self.cells], select(self.widths))

    @property
    def width(self) -> int:
        return sum(self.widths) + GAP * (len(self.widths) - 1)


def format_table(
    columns: Sequence[Heading], rows: Iterable[Sequence[object]], width: int | None = None, *, units: bool = False, color: bool = False
) -> Iterator[str]:
    """Yield the lines of a table. Columns without any cell are omitted; a cell is a value of the column's kind, None, or text.

    `width` is the width of the terminal in cells, None if lines may have any length; `units` writes sizes such as 3.1 kB. A last line
    lists the hidden columns.
    """
    sheet = _lay_out(columns, rows, units)
    if width is None or sheet.width <= width:
        yield from _draw(sheet, color)
        return
    fitted = _fit(sheet, width)
    yield from _paragraphs(sheet, width, color) if fitted is None else _draw(fitted, color)
    if hidden := _list_hidden(sheet, fitted):
        for line in wrap(f"hidden: {', '.join(hidden)}; --wide shows them", width):
            yield paint(line, FAINT) if color else line


def hidden_columns(columns: Sequence[Heading], rows: Iterable[Sequence[object]], width: int | None, *, units: bool = False) -> list[str]:
    """Return the names of the columns that `format_table` hides."""
    sheet = _lay_out(columns, rows, units)
    return [] if width is None or sheet.width <= width else _list_hidden(sheet, _fit(sheet, width))


def _list_hidden(sheet: _Sheet, fitted: _Sheet | None) -> list[str]:
    return [] if fitted is None else [column.name for column in sheet.columns if column not in fitted.columns]


def format_cells(columns: Sequence[Heading], rows: Iterable[Sequence[object]], *, units: bool) -> tuple[list[Heading], list[list[str]]]:
    """Return the columns that have any cell, and the cells as unaligned text."""
    lines = [[_format_cell(column.kind, cell, units) for column, cell in zip(columns, row, strict=True)] for row in rows]
    visible = [at for at in range(len(columns)) if any(line[at] for line in lines)] or list(range(len(columns)))
    return [columns[at] for at in visible], [[line[at] for at in visible] for line in lines]


def _lay_out(columns: Sequence[Heading], rows: Iterable[Sequence[object]], units: bool) -> _Sheet:
    visible_columns, lines = format_cells(columns, rows, units=units)
    for at, column in enumerate(visible_columns):
        if column.kind in NUMBERS:
            for line, cell in zip(lines, _align([line[at] for line in lines]), strict=True):
                line[at] = cell
    widths = [max([cell_width(column.name), *(cell_width(line[at]) for line in lines)]) for at, column in enumerate(visible_columns)]
    return _Sheet(visible_columns, lines, widths)


def _fit(sheet: _Sheet, width: int) -> _Sheet | None:
    """Return the sheet in this width, without the columns that have to be hidden; None if it cannot fit."""
    while True:
        shrunk = _shrink(sheet, width, {SENTENCE: _LEAST_SENTENCE, SUMMARY: _LEAST_SENTENCE, NAME: _READABLE_NAME})
        if shrunk is not None:
            return shrunk
        highest = max(column.priority for column in sheet.columns)
        if highest == 0:
            return _shrink(sheet, width, {SENTENCE: _LEAST_SENTENCE, SUMMARY: _LEAST_SENTENCE, NAME: _LEAST_NAME})
        sheet = sheet.without(highest)


def _shrink(sheet: _Sheet, width: int, least: dict[CellKind, int]) -> _Sheet | None:
    """Narrow the columns of these kinds, the widest first, until the sheet fits; None if it cannot."""
    widths = list(sheet.widths)
    excess = sheet.width - width
    for kind, least_width in least.items():
        while excess > 0:
            floors = [
                max(least_width, cell_width(column.name)) if column.kind is kind else size
                for column, size in zip(sheet.columns, widths, strict=True)
            ]
            at = max(range(len(widths)), key=lambda index: widths[index] - floors[index])
            if widths[at] <= floors[at]:
                break
            # No column becomes narrower than the next widest of its kind, or than is needed.
            narrower = [size for index, size in enumerate(widths) if sheet.columns[index].kind is kind and size < widths[at]]
            target = max(floors[at], max(narrower, default=0), widths[at] - excess)
            excess -= widths[at] - target
            widths[at] = target
    return _Sheet(sheet.columns, sheet.cells, widths) if excess <= 0 else None


def _draw(sheet: _Sheet, color: bool) -> Iterator[str]:
    header = "".join(
        _pad(column.name, size, column.kind) + " " * GAP for column, size in zip(sheet.columns, sheet.widths, strict=True)
    ).rstrip()
    yield paint(header, FAINT) if color else header
    for line in sheet.cells:
        boxes = [_box(column.kind, cell, size) for column, cell, size in zip(sheet.columns, line, sheet.widths, strict=True)]
        for row in range(max(map(len, boxes), default=0)):
            parts = []
            for column, box, size in zip(sheet.columns, boxes, sheet.widths, strict=True):
                text = box[row] if row < len(box) else ""
                padded = _pad(text, size, column.kind)
                style = style_of(text) if column.kind in (WORD, SENTENCE) else None
                parts.append(padded.replace(text, paint(text, style), 1) if color and style else padded)
            yield (" " * GAP).join(parts).rstrip()


def _box(kind: CellKind, cell: str, width: int) -> list[str]:
    if cell_width(cell) <= width:
        return [cell]
    if kind is SUMMARY:
        return [_take_cells(cell, width - 1).rstrip() + _ELLIPSIS]
    return list(wrap(cell, width)) if kind is SENTENCE else [shorten(cell, width)]


def _paragraphs(sheet: _Sheet, width: int, color: bool) -> Iterator[str]:
    """Yield each record as a paragraph with a line for each of its cells. A number stays whole, even if it is wider than the terminal."""
    numbers = [at for at, column in enumerate(sheet.columns) if column.kind in NUMBERS]
    room = max([_LEAST_NAME, *(cell_width(line[at].strip()) for line in sheet.cells for at in numbers)])
    indent = max(cell_width(column.name) for column in sheet.columns) + 2
    indent = indent if width - indent >= room else 2
    for number, line in enumerate(sheet.cells):
        if number:
            yield ""
        for column, cell in zip(sheet.columns, line, strict=True):
            if text := cell.strip():
                label = f"{column.name}:"
                if cell_width(label) >= indent:
                    yield from (paint(part, FAINT) if color else part for part in wrap(label, width))
                    label = ""
                text = text if column.kind is not NAME else shorten(text, width - indent)
                first, *rest = [text] if column.kind in NUMBERS else wrap(text, width - indent)
                start = label + " " * (min(indent, max(width - cell_width(first), 0)) - cell_width(label))
                style = style_of(text) if color else None
                yield start.replace(label, paint(label, FAINT), 1) + paint(first, style) if color and label else start + paint(first, style)
                yield from (" " * indent + part for part in rest)


def _pad(text: str, width: int, kind: CellKind) -> str:
    space = " " * (width - cell_width(text))
    return space + text if kind in NUMBERS else text + space


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


def _align(cells: list[str]) -> list[str]:
    """Pad numbers on the right, after their unit, so that their decimal points are below each other."""
    parts = [_split_number(cell) for cell in cells]
    width = max((len(part[1]) for part in parts if part), default=0)
    return [f"{part[0]}{part[1]:<{width}}" if part else cell for part, cell in zip(parts, cells, strict=True)]


def _split_number(cell: str) -> tuple[str, str] | None:
    """Split a number into the part before its decimal point, and its fraction with its unit; None for other text."""
    number, _, _ = cell.partition(" ")
    if not number or not number[-1].isdigit():
        return None
    whole, _, _ = number.partition(".")
    return whole, cell[len(whole) :]


_NARROW = re.compile(r"[ -~\xa1-\xac\xae-\u02ff\u2018-\u201f\u2026\u2500-\u259f]*")
"""Text of characters that take one cell each, for which rich is not loaded."""


def cell_width(text: str) -> int:
    """Return the number of terminal cells that the text takes."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int) -> str:
    """Return the text with its middle replaced by an ellipsis, if it is wider than `width`."""
    if cell_width(text) <= width:
        return text
    room = width - 1
    end = _take_cells(text[::-1], (room + 1) // 2)[::-1]
    while end and not cell_width(end[0]):  # an accent without its letter
        end = end[1:]
    return _take_cells(text, room - cell_width(end)) + _ELLIPSIS + end


def _take_cells(text: str, width: int) -> str:
    """Return the longest start of the text that fits the width."""
    if text.isascii():
        return text[:width]
    total = 0
    for at, character in enumerate(text):
        total += cell_width(character)
        if total > width:
            return text[:at]
    return text


def wrap(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Yield the lines of a text that is wrapped at words; lines after the first are indented as the first, and by `indent` more.

    Only a word that is wider than a whole line is broken: after a slash if possible, and not inside a number. A number and its unit stay
    on one line.
    """
    line = " " * (len(text) - len(text.lstrip(" ")))
    indent = (line + indent) if width - len(line + indent) >= _LEAST_NAME else ""
    has_word = False
    for part in _UNIT.sub("\0", text.lstrip(" ")).split(" "):
        word = part.replace("\0", " ")
        if has_word and cell_width(line) + 1 + cell_width(word) > width:
            yield line
            line = indent + word
        else:
            line = f"{line} {word}" if has_word else line + word
        has_word = True
        while cell_width(line) > width:
            at = _find_break(line, width, len(indent))
            yield line[:at]
            line = indent + line[at:]
    yield line


_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTPE]?B|bytes?|%)(?![A-Za-z]))")
"""The space between a number and its unit."""


_NUMBER = frozenset("0123456789.,")


def _find_break(line: str, width: int, indent: int) -> int:
    """Return where to break a line whose last word is too wide: after a slash, else before a run of digits, else at the width."""
    end = max(len(_take_cells(line, width)), indent + 1)
    slash = line.rfind("/", indent, end) + 1
    if slash > indent + 1:
        return slash
    at = end
    while at > indent + 1 and line[at - 1] in _NUMBER and line[at] in _NUMBER:
        at -= 1
    return at if at > indent + 1 else end
