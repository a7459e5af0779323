"""`sbbf remove-filter`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.changes import Change, over_changed_files
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import strict_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.plans import warn_of_exposure
from sbbf_tool.cli.report import View
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.remove import RemoveReport


@click.command(cls=Command)
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--compact", is_flag=True, help="Drop unreferenced bytes after the data: superseded footers and removed filters.")
@click.option("--undo", "report", metavar="REPORT", help="Restore the files that a run changed, from its saved --report.")
@strict_option
@over_changed_files
def command(change: Change, columns: tuple[str, ...], compact: bool, report: str | None, strict: bool) -> int:
    """Remove Bloom filters from all columns, or from the given ones.

    If the filters are at the end of the file, where `add-filter` writes them, the file is truncated and is again, byte for byte, what
    it was before. Otherwise a new footer without them is written; the bytes of filters by other writers stay in the file, unless
    --compact drops them.

    With --undo, the report names the files. Each becomes what it was before that run, byte for byte; a file that has changed since is
    reported and stays as it is.
    """
    from sbbf_tool.runner import works

    if report is not None:
        return _undo(change, report, is_partial=bool(columns or compact))
    work = works.remove(columns, compact=compact, strict=change.files.is_strict(strict), **change.options())
    return change.report(work, _RemoveView(compact), columns)


def _undo(change: Change, report: str, *, is_partial: bool) -> int:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.runner import works
    from sbbf_tool.runner.past_run import read_changes
    from sbbf_tool.runner.undo import select_changes

    files = change.files
    if is_partial or change.output is not None:
        raise click.UsageError("--undo restores whole files in place: leave out --column, --compact and --output")
    if files.arguments or files.is_listed or files.where is not None:
        raise click.UsageError("the report names the files, and a table is undone with its own means: leave out PATH and --where")
    change.ensure_target()
    warn_of_exposure(report, "report", "who can thus choose the files to restore")
    changes = read_changes(report)
    edit = Edit(**change.options())
    restore = dataclasses.replace(change, files=files.of_selection(select_changes(changes)))
    return restore.report(works.undo(changes, edit), _UndoView(compact=False))


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


class _UndoView(_RemoveView):
    not_undone = "the run that was undone can be made again"
    skipped = "already as before"

    def show_line(self, page: Page, report: RemoveReport) -> None:
        verb = "Would restore" if report.dry_run else "Restored"
        page.say(f"{verb} {report.output}: {page.bytes(report.old_bytes)} -> {page.bytes(report.new_bytes)}")
