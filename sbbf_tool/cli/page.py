"""The pages on which commands print: lines and tables, on a terminal, in a pipe or in Markdown.

A terminal gets tables that fit, wrapped lines, sizes with units, and colours. A pipe gets the same
lines whole, with exact sizes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sbbf_tool.cli.output import is_terminal, writer_for
from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.cli.tables import NUMBERS, Heading, Plain, format_cells
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_count, format_size

Rows = Iterable[object]
"""The cells of each row as a tuple, or an object with the attributes that the columns name."""
Choice = Callable[[Any], bool]

MOST_ROWS = 40
"""Rows of a table on a terminal; a pipe gets all, as does a terminal with --all."""
SCREEN_ROWS = 19
"""Rows of a list that is looked through, such as that of all rules."""
MOST_LINES_OF_TABLE = 50
"""Lines of a table on a terminal, more than its rows if cells wrap."""
MOST_LINES = 10
"""Lines of a list on a terminal."""
_LINES_AT_ONCE = 1000
_MOST_NAMES = 12


class Page:
    """Where a command prints lines and tables: as plain text or, on a terminal, as a screen."""

    units = False
    is_terminal = False
    lines = 0
    """Lines or, in Markdown, blocks printed so far."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        """Print on standard output or, if `write` is given, call it with text."""
        if write is None:
            self._write: Callable[[str], object] = partial(print, end="", flush=True)
            self._writer = writer_for(sys.stdout)
            self.is_terminal = is_terminal(sys.stdout)
            encoding = getattr(sys.stdout, "encoding", None) or ""
            self._has_blocks = "utf" in encoding.lower()
        else:
            self._write = write
            self._writer = Plain()
            self._has_blocks = True
        self.units = self.is_terminal
        self.width = self._writer.width

    def say(self, line: str, word: str = "") -> None:
        """Print a line, which is escaped. Its last `word`, with a colon, gets the word's style."""
        self._print(self._writer.wrap(escape(line), word))

    def command(self, words: Sequence[str], label: str = "") -> None:
        """Print a command in shell syntax."""
        self._print(self._writer.command(words, label))

    def next(self, words: Sequence[str], purpose: str) -> None:
        """Print what to do next, a command and its purpose; on a terminal alone, since scripts need
        no advice."""
        if self.is_terminal:
            self.command(words, f"next: to {purpose}: ")

    def code(self, text: str) -> None:
        """Print lines to paste elsewhere: escaped, but neither wrapped nor coloured."""
        self._print([escape(line) for line in text.splitlines()])

    def table(
        self,
        columns: Sequence[Heading],
        rows: Rows,
        *,
        whole: bool = False,
        most_rows: int = MOST_ROWS,
        matters: Choice | None = None,
    ) -> None:
        """Print a table; without rows, nothing. A terminal gets the first rows, unless the user has
        requested the `whole` table.

        If there are more rows than that, the rows that `matters` selects come first.
        """
        cells = list(rows)
        is_limited = not whole and self.width is not None
        count = min(most_rows, len(cells)) if is_limited else len(cells)
        if count < len(cells) and matters is not None:
            cells.sort(key=matters, reverse=True)
        lines = self._draw_table(columns, cells[:count])
        if is_limited:
            # Cells that wrap take several lines.
            while len(lines) > MOST_LINES_OF_TABLE and count > 1:
                fitting = count * MOST_LINES_OF_TABLE // len(lines)
                count = min(max(fitting, 1), count - 1)
                lines = self._draw_table(columns, cells[:count])
        self._print(lines)
        if count < len(cells):
            self.say(f"and {format_count(len(cells) - count, 'more row')}; --all shows them")

    def _draw_table(self, columns: Sequence[Heading], rows: Sequence[object]) -> list[str]:
        if not rows:
            return []
        visible, cells = format_cells(columns, rows, units=self.units)
        return self._writer.table(visible, cells)

    def say_all(self, lines: Iterable[str]) -> None:
        """Print lines; a terminal gets the first ones."""
        remaining = iter(lines)
        if self.width is None:
            while block := [escape(line) for line in islice(remaining, _LINES_AT_ONCE)]:
                self._print(block)
            return
        for line in islice(remaining, MOST_LINES):
            self.say(line)
        more = sum(1 for _ in remaining)
        if more:
            self.say(f"and {more:,} more; --all shows them")

    def join_names(self, names: Sequence[str]) -> str:
        """Join names; a terminal gets the first ones."""
        if self.width is None or len(names) <= _MOST_NAMES:
            return ", ".join(names)
        first = ", ".join(names[:_MOST_NAMES])
        return f"{first} and {len(names) - _MOST_NAMES:,} more"

    def bars(self, ratios: Sequence[float | None], most: int) -> str:
        """Draw a bar of eight heights for each ratio from 0 to 1, and a dot for None; several share
        a bar if there are more than `most`."""
        heights = "▁▂▃▄▅▆▇█" if self._has_blocks else "12345678"
        none = "·" if self._has_blocks else "."
        count = min(len(ratios), most)
        bars = ""
        for at in range(count):
            start = len(ratios) * at // count
            end = len(ratios) * (at + 1) // count
            known = [ratio for ratio in ratios[start:end] if ratio is not None]
            bars += heights[min(int(max(known) * 8), 7)] if known else none
        return bars

    def bytes(self, count: int) -> str:
        """Format a size within a line: `3.1 kB` or `3,111 bytes`."""
        return format_size(count) if self.units else format_count(count, "byte")

    def _print(self, lines: Sequence[str]) -> None:
        if lines:
            self.lines += len(lines)
            self._write("\n".join(lines) + "\n")


class MarkdownPage(Page):
    """Markdown, for a CI system's summary or an issue; lines are paragraphs."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__(write)
        self.units = True

    def say(self, line: str, word: str = "") -> None:
        self._block(_markdown(line.strip()))

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

    def table(self, columns: Sequence[Heading], rows: Rows, **options: Any) -> None:
        cells = list(rows)
        if not cells:
            return
        visible, lines = format_cells(columns, cells, units=True)
        header = [_markdown(column.name) for column in visible]
        rule = ["---:" if column.kind in NUMBERS else "---" for column in visible]
        body = [map(_markdown, line) for line in lines]
        self._block("\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *body)))

    def _block(self, text: str) -> None:
        self._write(("\n" if self.lines else "") + text + "\n")
        self.lines += 1


_MARKUP = r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
_BLOCK_START = r"^(\d*)([-+=#]|[.)](?= ))"


def _markdown(text: str) -> str:
    """Escape text for a paragraph or a cell: characters with a meaning in Markdown or HTML get a
    backslash or a reference."""
    markup = re.sub(_MARKUP, r"\\\g<0>", escape(text))
    markup = markup.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # At its start, these would make a paragraph a list or a heading.
    return re.sub(_BLOCK_START, r"\g<1>\\\g<2>", markup)


def say_not_cross_checked(page: Page, count: int) -> None:
    """Print the number of column chunks that pyarrow should also have decoded but cannot; print
    nothing if it is 0."""
    if count:
        chunks = format_count(count, "column chunk")
        them = "it" if count == 1 else "them"
        page.say(f"{chunks} not cross-checked: pyarrow cannot decode {them}")
