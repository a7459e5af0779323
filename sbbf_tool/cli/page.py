"""The pages on which commands print: lines and tables, on a terminal, in a pipe or in Markdown.

A terminal gets tables that fit, wrapped lines, sizes with units, and colours. A pipe gets the same lines whole, with exact sizes.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import click

from sbbf_tool.cli import tables
from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.cli.styles import paint_label, paint_last
from sbbf_tool.cli.tables import NUMBERS, Heading
from sbbf_tool.cli.terminal import is_terminal, terminal
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_count, format_size

Rows = Iterable[Sequence[object]]
Choice = Callable[[Sequence[object]], bool]

MOST_ROWS = 40
"""Rows of a table on a terminal; a pipe gets all, as does a terminal with --wide."""
MOST_LINES_OF_TABLE = 50
"""Lines of a table on a terminal, more than its rows if cells wrap."""
MOST_LINES = 10
"""Lines of a list on a terminal."""
_LINES_AT_ONCE = 1000
_MOST_NAMES = 12
_MOST_LINES_OF_COMMAND = 10


class Page(ABC):
    """Where a command prints its lines and tables."""

    units: bool
    """Whether sizes are printed with units, such as 3.1 kB, instead of exactly."""
    width: int | None = None
    """Cells per line; None for any number."""
    has_blocks = True
    """Whether block characters can be printed."""
    is_terminal = False
    lines = 0
    """Lines or, in Markdown, blocks printed so far."""
    has_headings = False

    @abstractmethod
    def say(self, line: str, word: str = "") -> None:
        """Print a line, which is escaped. The last `word` and colon in it gets the style of the word."""

    def heading(self, text: str) -> None:
        """Print a heading, which is escaped; on pages without headings, a line."""
        self.say(text)

    @abstractmethod
    def command(self, words: Sequence[str], label: str = "") -> None:
        """Print a command in shell syntax."""

    @abstractmethod
    def code(self, text: str) -> None:
        """Print lines to paste elsewhere: escaped, but neither wrapped nor coloured."""

    @abstractmethod
    def table(
        self, columns: Sequence[Heading], rows: Rows, *, whole: bool = False, most_rows: int = MOST_ROWS, matters: Choice | None = None
    ) -> None:
        """Print a table; without rows, nothing. A terminal gets the first rows, unless the user has requested the `whole` table.

        If there are more rows than that, the rows that `matters` selects come first.
        """

    def hides(self, column: str, columns: Sequence[Heading], rows: Rows) -> bool:
        """Return whether the page has no room for a column of this table."""
        return False

    def say_all(self, lines: Iterable[str]) -> None:
        """Print lines; a terminal gets the first ones."""
        for line in lines:
            self.say(line)

    def join_names(self, names: Sequence[str]) -> str:
        """Join names; a terminal gets the first ones."""
        return ", ".join(names)

    def bar(self, share: float, cells: int) -> str:
        """Draw a share of a bar of this many cells."""
        full, rest = ("█", "░") if self.has_blocks else ("#", ".")
        length = min(max(round(share * cells), share > 0), cells - (share < 1))
        return full * length + rest * (cells - length)

    def bars(self, ratios: Sequence[float | None], most: int) -> str:
        """Draw a bar of eight heights for each ratio from 0 to 1, and a dot for None; several share a bar if there are more than `most`."""
        count = min(len(ratios), most)
        groups = (ratios[len(ratios) * at // count : len(ratios) * (at + 1) // count] for at in range(count))
        heights = "▁▂▃▄▅▆▇█" if self.has_blocks else "12345678"
        highest = (max((ratio for ratio in group if ratio is not None), default=None) for group in groups)
        return "".join(
            "·" if ratio is None and self.has_blocks else "." if ratio is None else heights[min(int(ratio * 8), 7)] for ratio in highest
        )

    def bytes(self, count: int) -> str:
        """Format a size within a line: `3.1 kB` or `3,111 bytes`."""
        return format_size(count) if self.units else format_count(count, "byte")


class NoPage(Page):
    """A page of which only the number of lines is known."""

    units = False

    def say(self, line: str, word: str = "") -> None:
        self.lines += 1

    def command(self, words: Sequence[str], label: str = "") -> None:
        self.lines += 1

    def code(self, text: str) -> None:
        self.lines += text.count("\n")

    def table(
        self, columns: Sequence[Heading], rows: Rows, *, whole: bool = False, most_rows: int = MOST_ROWS, matters: Choice | None = None
    ) -> None:
        self.lines += any(True for _ in rows)


class TextPage(Page):
    """Plain text: standard output or, if `write` is given, what that function does with each line."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write
        self.units = self.is_terminal = write is None and is_terminal(sys.stdout)
        self.width = terminal().width(sys.stdout) if write is None else None
        self.has_blocks = write is not None or "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
        self._color = write is None and terminal().has_color(sys.stdout)

    def say(self, line: str, word: str = "") -> None:
        text = escape(line)
        lines = [text] if self.width is None else list(tables.wrap(text, self.width, "  "))
        if self._color:
            lines = paint_last(lines, word) if word else [paint_label(lines[0]), *lines[1:]]
        for part in lines:
            self._print(part)

    def command(self, words: Sequence[str], label: str = "") -> None:
        text = label + quote_command(words)
        if self.width is None or tables.cell_width(text) <= self.width:
            self.say(text)
            return
        # A line that ends with a backslash continues, so that the command can be copied as it is.
        lines = _pack(label, words, self.width - 2)
        if len(lines) > _MOST_LINES_OF_COMMAND:
            self.say(f"{label}{quote_command(words[:2])} ... ({len(words):,} words; --wide shows them)")
            return
        for at, line in enumerate(lines):
            self._print(paint_label(line) if self._color and at == 0 else line)

    def code(self, text: str) -> None:
        for line in text.splitlines():
            self._print(escape(line))

    def table(
        self, columns: Sequence[Heading], rows: Rows, *, whole: bool = False, most_rows: int = MOST_ROWS, matters: Choice | None = None
    ) -> None:
        cells = [list(row) for row in rows]
        most = None if whole or self.width is None else most_rows
        count = len(cells) if most is None else min(most, len(cells))
        if count < len(cells) and matters is not None:
            cells.sort(key=matters, reverse=True)
        lines = self._format(columns, cells[:count])
        if most is not None and len(lines) > MOST_LINES_OF_TABLE and matters is not None:
            cells.sort(key=matters, reverse=True)
        while most is not None and len(lines) > MOST_LINES_OF_TABLE and count > 1:
            # Cells that wrap take several lines.
            count = min(max(count * MOST_LINES_OF_TABLE // len(lines), 1), count - 1)
            lines = self._format(columns, cells[:count])
        for line in lines:
            self._print(line)
        if count < len(cells):
            self.say(f"and {format_count(len(cells) - count, 'more row')}; --wide shows them")

    def _format(self, columns: Sequence[Heading], cells: Rows) -> list[str]:
        rows = list(cells)
        return list(tables.format_table(columns, rows, self.width, units=self.units, color=self._color)) if rows else []

    def hides(self, column: str, columns: Sequence[Heading], rows: Rows) -> bool:
        return column in tables.hidden_columns(columns, rows, self.width, units=self.units)

    def say_all(self, lines: Iterable[str]) -> None:
        remaining = iter(lines)
        if self.width is None:
            while block := [escape(line) for line in islice(remaining, _LINES_AT_ONCE)]:
                self._print("\n".join(block), len(block))
            return
        super().say_all(islice(remaining, MOST_LINES))
        if more := sum(1 for _ in remaining):
            self.say(f"and {more:,} more; --wide shows them")

    def join_names(self, names: Sequence[str]) -> str:
        if self.width is None or len(names) <= _MOST_NAMES:
            return super().join_names(names)
        return f"{super().join_names(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES:,} more"

    def _print(self, line: str, lines: int = 1) -> None:
        self.lines += lines
        if self._write is None:
            click.echo(line, color=self._color)
        else:
            self._write(f"{line}\n")


def _pack(label: str, words: Sequence[str], width: int) -> list[str]:
    """Lay out a command in lines that end with a backslash, so that a shell joins them again.

    A word that is wider than a line is broken into words that a shell concatenates: its later parts begin at the margin.
    """
    indent = " " * (len(label) - len(label.lstrip(" ")) + 4)
    lines = [label.rstrip(" ")] if label.strip() else []
    for word in words:
        quoted = escape(quote_command([word]))
        if lines and tables.cell_width(lines[-1]) + 1 + tables.cell_width(quoted) <= width:
            lines[-1] += f" {quoted}"
            continue
        if lines:
            lines[-1] += " \\"
        if tables.cell_width(indent + quoted) <= width:
            lines.append((indent if lines else "") + quoted)
            continue
        parts = [""]
        for character in word:
            if tables.cell_width(indent + escape(quote_command([parts[-1] + character]))) > width:
                parts.append("")
            parts[-1] += character
        pieces = [escape(quote_command([part])) for part in parts]
        lines += [indent + pieces[0] + "\\", *(f"{piece}\\" for piece in pieces[1:-1]), pieces[-1]]
    return lines


class MarkdownPage(Page):
    """Markdown, for a CI system's summary or an issue; lines are paragraphs."""

    units = True
    has_headings = True

    def __init__(self, write: Callable[[str], object]) -> None:
        """`write` takes each block of the text, which ends with a line end."""
        self._write = write

    def say(self, line: str, word: str = "") -> None:
        self._block(_markdown(line.strip()))

    def heading(self, text: str) -> None:
        self._block(f"## {_markdown(text)}")

    def command(self, words: Sequence[str], label: str = "") -> None:
        if label.strip():
            self.say(label)
        self._fence(escape(quote_command(words)), "sh")

    def code(self, text: str) -> None:
        self._fence("\n".join(map(escape, text.splitlines())), "")

    def _fence(self, text: str, language: str) -> None:
        fence = "```"
        while fence in text:
            fence += "`"
        self._block(f"{fence}{language}\n{text}\n{fence}")

    def table(
        self, columns: Sequence[Heading], rows: Rows, *, whole: bool = False, most_rows: int = MOST_ROWS, matters: Choice | None = None
    ) -> None:
        cells = [list(row) for row in rows]
        if not cells:
            return
        visible, lines = tables.format_cells(columns, cells, units=self.units)
        rule = ("---:" if column.kind in NUMBERS else "---" for column in visible)
        header = (_markdown(column.name) for column in visible)
        self._block("\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *(map(_markdown, line) for line in lines))))

    def _block(self, text: str) -> None:
        self._write(("\n" if self.lines else "") + text + "\n")
        self.lines += 1


_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BLOCK_START = re.compile(r"^(\d*)([-+=#]|[.)](?= ))")


def _markdown(text: str) -> str:
    """Escape text for a paragraph or a cell: characters with a meaning in Markdown or HTML get a backslash or a reference."""
    markup = _MARKUP.sub(r"\\\g<0>", escape(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # At its start, these would make a paragraph a list or a heading.
    return _BLOCK_START.sub(r"\g<1>\\\g<2>", markup)


def say_not_cross_checked(page: Page, count: int) -> None:
    """Print the number of column chunks that pyarrow should also have decoded but cannot; print nothing if it is 0."""
    if count:
        page.say(f"{format_count(count, 'column chunk')} not cross-checked: pyarrow cannot decode {'it' if count == 1 else 'them'}")
