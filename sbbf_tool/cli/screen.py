"""Drawing on a terminal by rich, which only this module imports, and only to draw: wrapped lines,
tables that fit, and colours.

On a terminal that is too narrow for a table, columns are hidden by priority; then sentences wrap,
and names are shortened in the middle. Numbers are never broken. If even the important columns do
not fit, each cell becomes a line. Words always carry the meaning that a style shows, so that
nothing is lost without colours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.cli.tables import (
    GAP,
    NAME,
    NUMBERS,
    SENTENCE,
    SUMMARY,
    WORD,
    CellKind,
    Heading,
    Plain,
    align,
)
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_size

_THEME = Theme(
    {"certain": "green", "maybe": "cyan", "error": "bold red", "warning": "yellow", "faint": "dim"}
)
_WORDS = {
    "certain": ("absent", "verified", "all values found", "skipped", "used", "add", "+"),
    "maybe": ("maybe", "remains", "keep"),
    "error": (
        "error",
        "false negatives",
        "unreadable",
        "not verified",
        "HARM",
        "loses rows",
        "fails",
        "!",
    ),
    "warning": ("warning", "cannot say", "+!", "-!"),
    "faint": (
        "info",
        "note",
        "none",
        "no filter",
        "no gain",
        "-",
        "fix",
        "undo",
        "next",
        "hidden",
    ),
}
"""The words of each style that are a whole cell of a table, or the label of a line."""
_STYLES = {word: style for style, words in _WORDS.items() for word in words}
_LABEL = re.compile(r"(?:sbbf: )?((error|warning|info|note|fix|undo|next|hidden):) ")

_END_OF_LINE = re.compile(r"(?:\x1b\[[\d;]*m| )+$")

_LEAST: dict[CellKind, int] = {SENTENCE: 28, SUMMARY: 28, NAME: 30}
"""Width below which a cell is not wrapped or shortened, as long as another column can be hidden."""
_LEAST_NAME = 12
_ANY_WIDTH = 1 << 20
_MOST_LINES_OF_COMMAND = 10


class Screen(Plain):
    """Lines of this width, or of any width, in the colours of a terminal."""

    def __init__(self, width: int | None, *, has_color: bool) -> None:
        self.width = width
        self._width = width or _ANY_WIDTH
        colors: Literal["standard"] | None = "standard" if has_color else None
        self._console = Console(
            width=self._width,
            height=100,
            color_system=colors,
            no_color=not has_color,
            force_terminal=True,
            theme=_THEME,
        )

    def _draw(self, *parts: RenderableType) -> list[str]:
        with self._console.capture() as capture:
            for part in parts:
                self._console.print(part, soft_wrap=isinstance(part, Text))
        lines = capture.get().split("\n")[:-1]
        return [_END_OF_LINE.sub(lambda end: end[0].replace(" ", ""), line) for line in lines]

    def wrap(self, line: str, word: str = "", *, is_error: bool = False) -> list[str]:
        text = Text(line)
        label = _LABEL.match(line)
        if word:
            at = line.rfind(f"{word}:")
            text.stylize(_STYLES[word], at, at + len(word) + 1)
        elif label is not None:
            text.stylize(_STYLES[label[2]], *label.span(1))
        elif is_error and line.startswith("sbbf:"):
            text.stylize("error", 0, 5)
        indent = len(line) - len(line.lstrip(" ")) + 2
        if self._width - indent < _LEAST_NAME:
            indent = 0
        first, *rest = text.divide(_find_breaks(line, self._width, indent))
        for part in rest:
            part.pad_left(indent)
        return self._draw(first, *rest)

    def command(self, words: Sequence[str], label: str) -> list[str]:
        """Return lines that end with a backslash, so that a shell joins them again, also within a
        word that is wider than a line."""
        text = label + escape(quote_command(words))
        room = self._width - 2
        if cell_len(text) <= self._width:
            return self.wrap(text)
        if cell_len(text) > _MOST_LINES_OF_COMMAND * room:
            return self.wrap(
                f"{label}{quote_command(words[:2])} ... ({len(words):,} words; --all shows them)"
            )
        indent = " " * (len(label) - len(label.lstrip(" ")) + 4)
        lines = [label.rstrip(" ")] if label.strip() else []
        for word in words:
            first, *rest = _split_word(word, indent, room)
            if lines and not rest and cell_len(f"{lines[-1]} {first}") <= room:
                lines[-1] += f" {first}"
                continue
            if lines:
                lines[-1] += " \\"
                lines.append(indent + first)
            else:
                lines.append(first)
            for part in rest:
                lines[-1] += "\\"
                lines.append(part)
        return [*self.wrap(lines[0]), *lines[1:]]

    def table(self, columns: Sequence[Heading], cells: Sequence[Sequence[str]]) -> list[str]:
        header, *lines = align(columns, cells)
        shown = self._choose_columns(columns, [header, *lines])
        if shown is None:
            return self._list_cells(columns, lines)
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="faint")
        for at in shown:
            table.add_column(Text(header[at]), no_wrap=columns[at].kind not in _LEAST)
        for line in lines:
            table.add_row(*(_cell(columns[at].kind, line[at]) for at in shown))
        hidden = ", ".join(column.name for at, column in enumerate(columns) if at not in shown)
        drawn = self._draw(table)
        if hidden:
            drawn += self.wrap(f"hidden: {hidden}; --all shows them")
        return drawn

    def _list_cells(self, columns: Sequence[Heading], lines: Sequence[Sequence[str]]) -> list[str]:
        """Return a paragraph for each row of a table, with a line for each cell that is not
        empty."""
        paragraphs = []
        for number, line in enumerate(lines):
            if number:
                paragraphs.append("")
            for column, cell in zip(columns, line, strict=True):
                text = cell.strip()
                if text:
                    paragraphs += self.wrap(f"{column.name}: {text}")
        return paragraphs

    def _choose_columns(
        self, columns: Sequence[Heading], lines: Sequence[Sequence[str]]
    ) -> list[int] | None:
        """Return the positions of the columns that have room, without those to hide; None if the
        important ones have none."""
        widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
        shown = list(range(len(columns)))
        least = _LEAST
        while True:
            total = GAP * (len(shown) - 1)
            for at in shown:
                least_width = least.get(columns[at].kind, widths[at])
                total += min(widths[at], max(least_width, cell_len(columns[at].name)))
            if total <= self._width:
                return shown
            lowest = max(columns[at].priority for at in shown)
            if lowest:
                shown = [at for at in shown if columns[at].priority != lowest]
            elif least is _LEAST:
                least = {**_LEAST, NAME: _LEAST_NAME}
            else:
                return None


def _split_word(word: str, indent: str, room: int) -> list[str]:
    """Return the parts of a word of a command in shell syntax, each of which fits on a line."""
    parts = [""]
    for character in word:
        longer = escape(quote_command([parts[-1] + character]))
        if cell_len(indent + longer) > room:
            parts.append("")
        parts[-1] += character
    return [escape(quote_command([part])) for part in parts]


class ProgressLine(Screen):
    """A line about work that begins now: what is done, a bar, and the time that has passed and is
    left."""

    def __init__(self, width: int | None, *, has_color: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        super().__init__((width or 80) - 1, has_color=has_color)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._task = self._progress.add_task("", left="")

    def draw(self, text: str, done: int, total: int | None, is_bytes: bool) -> str:
        (task,) = self._progress.tasks
        if is_bytes and task.speed:
            text += f", {format_size(int(task.speed))}/s"
        left = ""
        if task.time_remaining is not None:
            left = f"{timedelta(seconds=int(task.time_remaining))} left"
        self._progress.update(self._task, description=text, completed=done, total=total, left=left)
        return self._draw(self._progress.get_renderable())[0]


def _cell(kind: CellKind, cell: str) -> RenderableType:
    if kind is NAME:
        return _Name(cell)
    style = _STYLES.get(cell, "") if kind in (WORD, SENTENCE) else ""
    is_whole = kind in NUMBERS or kind in (WORD, SUMMARY)
    overflow: Literal["ellipsis", "fold"] = "ellipsis" if kind is SUMMARY else "fold"
    return Text(cell, style, no_wrap=is_whole, overflow=overflow)


class _Name:
    """A name that is shortened in the middle if it has not enough room."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_LEAST_NAME, cell_len(self._name)), cell_len(self._name))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        name = self._name
        room = options.max_width
        if cell_len(name) > room:
            end = chop_cells(name[::-1], room // 2)[0][::-1]
            name = f"{chop_cells(name, room - cell_len(end) - 1)[0]}…{end}"
        yield Text(name, no_wrap=True)


_WORD_OF_LINE = re.compile(r"(?:\S*\d (?=(?:[kMGTPE]?B|bytes?|%)(?!\w)))?\S+")
"""A word, or a number with its unit."""
_WHOLE = re.compile(r"[~<]?[\d.,]+(?: \S+)?")
"""A number, which is not broken however narrow the terminal is."""


def _find_breaks(line: str, width: int, indent: int) -> list[int]:
    """Return where to divide a line: before words; in a word that is wider than a line after a
    slash, else not inside a number."""
    breaks: list[int] = []
    start = 0
    for word in _WORD_OF_LINE.finditer(line):
        room = width - indent if breaks else width
        end = word.end()
        has_text_before = bool(line[start : word.start()].strip())
        if has_text_before and cell_len(line[start:end]) > room:
            start = word.start()
            room = width - indent
            breaks.append(start)
        while cell_len(line[start:end]) > room and not _WHOLE.fullmatch(line[start:end]):
            start += _length_of_piece(line[start:end], room)
            room = width - indent
            breaks.append(start)
    return breaks


def _length_of_piece(text: str, room: int) -> int:
    """Return after how many characters to divide a word that is wider than a line."""
    piece = chop_cells(text, room)[0]
    slash = piece.rfind("/") + 1
    if slash > 1:
        return slash
    without_number = re.sub(r"[\d.,]+$", "", piece)
    return len(without_number) or len(piece)
