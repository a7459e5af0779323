"""Tables and lines for people: on standard output, or as Markdown."""

from __future__ import annotations

from typing import Any

from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import StandardOutput, Target
from sbbf_tool.cli.page import MarkdownPage, Page, TextPage


def open_output(name: str, run: Run, target: Target) -> PageOutput:
    """Open the output of this format."""
    if name == "markdown":
        return PageOutput(run, MarkdownPage(target.write))
    return PageOutput(run, TextPage(None if isinstance(target, StandardOutput) else target.write))


class PageOutput:
    """The reports as the command's view shows them."""

    def __init__(self, run: Run, page: Page) -> None:
        self._run = run
        self._page = page

    def add(self, item: Item) -> None:
        if item.report is not None:
            show = self._run.view.show if self._run.is_single else self._run.view.show_line
            show(self._page, item.report)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        if not self._run.is_single:
            self._run.view.show_end(self._page, files)
