"""Lines as the reports come: tables and lines for people, a JSON document per report, and names of
files for other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from sbbf_tool.cli.formats import NAMES, Conclusion, Item, Output, StandardOutput
from sbbf_tool.cli.output import MOST_FILES, complain, encodable_json, terminal
from sbbf_tool.cli.page import MarkdownPage, Page
from sbbf_tool.cli.render import LongList
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_count

_PARTS_AT_ONCE = 1000
_MOST_CHANGED = 3
"""Of files that changed as was asked, a few are examples; errors and warnings are printed for more
of them."""


class PageOutput(Output):
    """The reports as the command's view shows them."""

    def begin(self) -> None:
        self._page = Page(self._target.write)
        if self._name == "markdown":
            self._page = MarkdownPage(self._target.write)
        elif isinstance(self._target, StandardOutput):
            self._page = Page()
        self._most_files: int | None = MOST_FILES
        if self._view.has_rows_of_files:
            self._most_files = _MOST_CHANGED
        is_answer = self._view.lists_answers and not self._page.is_terminal
        if is_answer or terminal().shows_all:
            self._most_files = None
        self._files = 0
        self._more_files = 0

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        if self._view.is_single:
            self._view.show(self._page, item.shown)
            return
        page = self._page
        if not self._has_room():
            page = Page(len)  # which only counts its lines
        lines = page.lines
        self._view.show_line(page, item.shown)
        if page.lines > lines:
            self._files += 1
            self._more_files += page is not self._page

    def _has_room(self) -> bool:
        """Return whether the lines about one more file are printed."""
        most = self._most_files
        return most is None or (self._files < most and self._page.lines < 2 * most)

    def end(self, sums: Conclusion) -> None:
        if self._more_files:
            self._page.say(f"and {format_count(self._more_files, 'more file')}; --all shows them")
        if not self._view.is_single:
            self._view.show_end(self._page, sums.files)
        self._view.show_undo(self._page)


class Documents(Output):
    """One JSON document per line."""

    def add(self, item: Item) -> None:
        self._write(item.document())

    def end(self, sums: Conclusion) -> None:
        if sums.document is not None:
            self._write(sums.document)

    def _write(self, document: dict[str, Any]) -> None:
        parts = chain(_parts(document, self._target.encoding), "\n")
        while block := "".join(islice(parts, _PARTS_AT_ONCE)):
            self._target.write(block)


def _parts(document: dict[str, Any], encoding: str) -> Iterator[str]:
    """Yield a document as JSON in parts. The items of a long list are made and written one after
    the other."""
    if not any(isinstance(value, LongList) for value in document.values()):
        yield encodable_json(document, encoding)
        return
    start = "{"
    for name, value in document.items():
        yield f"{start}{encodable_json(name, encoding)}: "
        if isinstance(value, LongList):
            yield from _parts_of_list(value, encoding)
        else:
            yield encodable_json(value, encoding)
        start = ", "
    yield "}"


def _parts_of_list(items: LongList, encoding: str) -> Iterator[str]:
    yield "["
    start = ""
    for item in items:
        yield f"{start}{encodable_json(item, encoding)}"
        start = ", "
    yield "]"


class Names(Output):
    """The names of files that may hold a value, each ended by a line break or a NUL byte; on
    standard error, what they do not show."""

    def begin(self) -> None:
        self._end_of_name = b"\n" if self._name == NAMES else b"\0"

    def add(self, item: Item) -> None:
        if item.report is None or item.report.is_absent:
            return
        name = os.fsencode(item.report.file)
        if self._end_of_name == b"\n" and (b"\n" in name or b"\r" in name):
            complain(f"sbbf: {item.report.file}: its name has a line break: use --format names0")
            self._view.total["unprintable"] += 1
        elif self._target.is_terminal:
            self._target.write(f"{escape(item.report.file)}\n")
        else:
            self._target.binary().write(name + self._end_of_name)

    def end(self, sums: Conclusion) -> None:
        for line in self._view.notes():
            complain(f"sbbf: {line}", kind="note")
