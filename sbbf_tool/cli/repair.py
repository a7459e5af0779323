"""`sbbf repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_file, paths_of
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.repair import RepairReport


@click.command(short_help="Cure what is wrong with filters, in the footer alone.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--rebuild", is_flag=True, help="Build sound filters from the data in place of those that lie, are full, or of odd size.")
@click.option("--quick", is_flag=True, help="Do not prove filters against the data first.")
@click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist. Of one PATH only.")
@click.option("--in-place", is_flag=True, help="Replace each file, in one step and only after the new one was verified.")
@click.option("--allow-table-files", is_flag=True, help="Also change files of Delta, Iceberg, Hudi or Paimon tables.")
@keys_option
@page_limit_option
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(paths: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Cure what is wrong with the filters of files: state lengths that are missing or wrong, drop filters that cannot be read or that
    lie and offsets that lead nowhere, undo an append that was interrupted. Only the footer changes, unless --rebuild is given.

    PATH is a Parquet file, a folder (all *.parquet below it) or a glob. Exit code 0: nothing was wrong, or it was cured; 1: with
    --dry-run, something would be done; else, an error is left that takes --rebuild; 3: something could not be read; 4: refused.
    """
    from sbbf_tool.file.cross_check import CrossChecks
    from sbbf_tool.operations.repair import repair

    cross_checks = CrossChecks()
    if options["output"] is not None and len(list(paths_of(paths))) > 1:
        raise click.UsageError("an output is for one file; repair many with --in-place")

    def work(path: str) -> int:
        with render.progress_bar() as progress:
            report = repair(path, progress=progress, cross_checks=cross_checks, **options)
        render.show_json(report) if as_json else _show(report)
        for message in (*report.warnings, *report.unproven):
            render.warn(message)
        done = report.is_clean if report.dry_run else report.is_sound
        return UnreadableError.exit_code if report.unproven else int(not done)

    return max(each_file(paths, work, changes=options["output"] is None))


def _show(report: RepairReport) -> None:
    rows = [(str(step.row_group), step.column, step.treatment, "; ".join(step.facts)) for step in report.steps]
    if rows:
        render.show_table(("row group", "column", "treatment", "for"), rows, (0,))
    show_findings(report.left)
    mood = "would be " if report.dry_run else ""
    done = [] if report.cut_back_to is None else [f"{mood}cut back to {report.cut_back_to:,} bytes, from before an append was interrupted"]
    done += [f"{mood}repaired in {len(rows)} places; {report.new_bytes - report.old_bytes:,} bytes are added"] if rows else []
    said = " and ".join(done) or ("nothing was repaired" if report.left else "nothing to repair")
    rebuild = f"; --rebuild repairs {', '.join(report.takes_rebuild)}" if report.takes_rebuild else ""
    say(f"{report.output}: {said}{rebuild}")
    render.say_not_cross_checked(report.not_cross_checked)
