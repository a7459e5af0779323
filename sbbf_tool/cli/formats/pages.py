"""Tables and lines for people: on standard output, or as Markdown."""

from __future__ import annotations

from typing import Any

from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import OutputTarget, StandardOutput
from sbbf_tool.cli.page import MarkdownPage, Page
from sbbf_tool.numbers import format_count

_MOST_CHANGED = 3
"""Of files that changed as was asked, a few are examples; errors and warnings are printed for more of them."""


class PageOutput:
    """The reports as the command's view shows them."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._view = view
        to_screen = isinstance(target, StandardOutput)
        self._page = page = MarkdownPage(target.write) if name == "markdown" else Page(None if to_screen else target.write)
        most = view.most_files if view.most_files is None or not view.has_rows_of_files else _MOST_CHANGED
        self._most_files = None if view.lists_answers and not page.is_terminal else most
        self._files = self._more_files = 0

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        if self._view.is_single:
            self._view.show(self._page, item.shown)
            return
        page = self._page if self._has_room() else Page(len)  # which only counts its lines
        lines = page.lines
        self._view.show_line(page, item.shown)
        if page.lines > lines:
            self._files += 1
            self._more_files += page is not self._page

    def _has_room(self) -> bool:
        return self._most_files is None or (self._files < self._most_files and self._page.lines < 2 * self._most_files)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        if self._more_files:
            self._page.say(f"and {format_count(self._more_files, 'more file')}; --all shows them")
        if not self._view.is_single:
            self._view.show_end(self._page, files)
        self._view.show_undo(self._page)
