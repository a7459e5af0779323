"""`sbbf repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import Change, over_changed_files
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.report import View
from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.repair import RepairReport


@click.command(short_help="Fix what is wrong with filters, in the footer alone.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--rebuild", is_flag=True, help="Build sound filters from the data in place of those that lie, are full, or of odd size.")
@click.option("--quick", is_flag=True, help="Do not verify filters against the data first.")
@page_limit_option
@over_changed_files
def command(change: Change, **options: Any) -> int:
    """Fix what is wrong with the filters of files: state lengths that are missing or wrong, drop filters that cannot be read or that
    lie and offsets that lead nowhere, undo an append that was interrupted. Only the footer changes, unless --rebuild is given.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL. Exit code 0: nothing was wrong, or it was fixed; 1:
    with --dry-run, something would be done; else, an error is left that takes --rebuild; 3: something could not be read; 4: refused.
    """
    from sbbf_tool.file.cross_check import CrossChecks
    from sbbf_tool.runner import works

    return change.report(works.repair(cross_checks=CrossChecks(), **options, **change.options()), _RepairView())


class _RepairView(View["RepairReport"]):
    schema = "repair"
    sums = ("filters", "findings_left")

    def add(self, report: RepairReport, row: FileRow) -> int:
        self.total.update(filters=len(report.steps), findings_left=len(report.left))
        for message in report.unproven:
            render.warn(message)
        done = report.is_clean if report.dry_run else report.is_sound
        return UnreadableError.exit_code if report.unproven else int(not done)

    def show(self, report: RepairReport) -> None:
        rows = [(str(step.row_group), step.column, step.treatment, "; ".join(step.facts)) for step in report.steps]
        if rows:
            render.show_table(("row group", "column", "treatment", "for"), rows, (0,))
        show_findings(report.left)
        mood = "would be " if report.dry_run else ""
        done = (
            [] if report.cut_back_to is None else [f"{mood}cut back to {report.cut_back_to:,} bytes, from before an append was interrupted"]
        )
        done += [f"{mood}repaired in {len(rows)} places; {report.new_bytes - report.old_bytes:,} bytes are added"] if rows else []
        said = " and ".join(done) or ("nothing was repaired" if report.left else "nothing to repair")
        rebuild = f"; --rebuild repairs {', '.join(report.takes_rebuild)}" if report.takes_rebuild else ""
        say(f"{report.output}: {said}{rebuild}")
        render.say_not_cross_checked(report.not_cross_checked)

    def show_line(self, report: RepairReport) -> None:
        if report.left or not report.is_clean:
            self.show(report)

    def summary(self, files: str) -> str:
        filters, left = (self.total[name] for name in self.sums)
        return f"{files}; {render.format_count(filters, 'filter')} repaired, {render.format_count(left, 'finding')} left"
