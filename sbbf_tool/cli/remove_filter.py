"""`sbbf remove-filter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.changes import Change, over_changed_files
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import View
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.remove import RemoveReport


@click.command(cls=Command, short_help="Remove Bloom filters.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--compact", is_flag=True, help="Drop unreferenced bytes after the data: superseded footers and removed filters.")
@over_changed_files
def command(change: Change, columns: tuple[str, ...], compact: bool) -> int:
    """Remove Bloom filters from all columns, or from the given ones.

    If the filters are at the end of the file, where `add-filter` writes them, the file is truncated and is again, byte for byte, what
    it was before. Otherwise a new footer without them is appended; their bytes stay in the file, unless --compact drops them.
    """
    from sbbf_tool.runner import works

    return change.report(works.remove(columns, compact=compact, **change.options()), _RemoveView(compact))


class _RemoveView(View["RemoveReport"]):
    schema = "remove-filter"
    not_undone = "no command restores the old filters; sbbf add-filter builds new ones"
    skipped = "had no filter to remove"
    sums = ("filters", "bytes_removed")

    def __init__(self, compact: bool) -> None:
        super().__init__()
        self._compact = compact

    def add(self, report: RemoveReport, row: FileRow) -> int:
        self.total.update(filters=len(report.filters), bytes_removed=report.old_bytes - report.new_bytes)
        return 0

    def show(self, page: Page, report: RemoveReport) -> None:
        self.show_line(page, report)
        if report.unreferenced_bytes:
            advice = "--compact cannot drop them" if self._compact else "--compact drops them"
            page.say(f"unreferenced: {page.bytes(report.unreferenced_bytes)} remain; {advice}")

    def show_line(self, page: Page, report: RemoveReport) -> None:
        verb = "Would remove" if report.dry_run else "Removed"
        filters = format_count(len(report.filters), "filter")
        sizes = f"{page.bytes(report.old_bytes)} -> {page.bytes(report.new_bytes)}"
        page.say(f"{verb} {filters} from {report.output} ({report.method}): {sizes}")

    def show_end(self, page: Page, files: str) -> None:
        size = self.total["bytes_removed"]
        change = f"{page.bytes(abs(size))} {'smaller' if size > 0 else 'larger'}" if size else "sizes unchanged"
        page.say(f"{files}; {format_count(self.total['filters'], 'filter')}, {change}")
