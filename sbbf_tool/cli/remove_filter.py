"""`sbbf remove-filter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.changes import ChangedFiles, over_changed_files
from sbbf_tool.cli.files import columns_option, strict_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, SAFETY
from sbbf_tool.cli.page import Page
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.verbs.remove_filter import RemoveReport


@over_changed_files(
    (
        columns_option("Only this column's filters"),
        COLUMNS.flag(
            "--compact",
            "Drop superseded footers and removed filters. They are unreferenced bytes after the "
            "data.",
            place=COMMAND_LINE,
        ),
        SAFETY.flag(
            "--ours", "Restore the bytes from before the first change by sbbf.", place=COMMAND_LINE
        ),
    ),
    strict_option,
)
def command(files: ChangedFiles, columns: tuple[str, ...], compact: bool, ours: bool) -> int:
    """Remove Bloom filters from all columns, or from the given ones.

    \b
    $ sbbf remove-filter events.parquet --in-place
    $ sbbf remove-filter lake -c user_id --dry-run

    If the filters are at the end of the file, where `add-filter` writes them, the file is truncated
    and is again, byte for byte, what it was before. Otherwise a new footer without them is written;
    the bytes of filters by other writers stay in the file, unless --compact drops them.

    With --ours, the file is truncated to what it was before the first change by sbbf. Filters of
    other writers stay, also those that sbbf replaced or removed, unless `check` calls one of them
    an error: then the file stays as it is. A table gets these files in one more version.
    """
    from sbbf_tool.verbs.remove_filter import RemoveFilter

    if ours and (columns or compact):
        raise click.UsageError("--ours restores whole files: leave out --column and --compact")
    return files.change(RemoveFilter(columns, compact, ours), _RemoveView(compact, ours))


class _RemoveView(View["RemoveReport"]):
    not_undone = "no command restores the old filters; sbbf add-filter builds new ones"
    skipped = "had no filter to remove"
    sums = ("filters", "bytes_removed")

    def __init__(self, compact: bool, ours: bool) -> None:
        super().__init__()
        self._compact = compact
        self._ours = ours
        if ours:
            self.skipped = "not changed by sbbf"

    def add(self, report: RemoveReport, row: Row[object]) -> int:
        bytes_removed = report.old_bytes - report.new_bytes
        self.total.update(filters=len(report.filters), bytes_removed=bytes_removed)
        return 0

    def show(self, page: Page, report: RemoveReport) -> None:
        self.show_line(page, report)
        if report.unreferenced_bytes:
            advice = "--compact cannot drop them" if self._compact else "--compact drops them"
            page.say(f"unreferenced: {page.bytes(report.unreferenced_bytes)} remain; {advice}")

    def show_line(self, page: Page, report: RemoveReport) -> None:
        sizes = f"{page.bytes(report.old_bytes)} -> {page.bytes(report.new_bytes)}"
        if self._ours:
            verb = "Would restore" if report.dry_run else "Restored"
            page.say(f"{verb} {report.output}: {sizes}")
            return
        verb = "Would remove" if report.dry_run else "Removed"
        page.say(
            f"{verb} {format_count(len(report.filters), 'filter')} from {report.output} "
            f"({report.method}): {sizes}"
        )

    def show_end(self, page: Page, files: str) -> None:
        size = self.total["bytes_removed"]
        change = "sizes unchanged"
        if size:
            change = f"{page.bytes(abs(size))} {'smaller' if size > 0 else 'larger'}"
        page.say(f"{files}; {format_count(self.total['filters'], 'filter')}, {change}")
