"""`sbbf paimon add-index`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.paimon.columns import HEADERS, NUMBERS, columns_option, of_column
from sbbf_tool.cli.paimon.reach import outside_option
from sbbf_tool.cli.spelling import spell
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import AddIndexReport


@click.command(short_help="Give data files of a table indexes that Paimon uses.")
@click.argument("table", metavar="TABLE")
@columns_option("the table's options")
@outside_option
@click.option("-n", "--dry-run", is_flag=True, help="Read and build, and write nothing.")
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(table: str, columns: tuple[str, ...], allow_outside: bool, dry_run: bool, max_page_bytes: int | None, as_json: bool) -> int:
    """Give the data files of a table that have no index one, in a new snapshot; no data file is touched.

    TABLE is a table's folder on a local disk. Columns are named as they are today, and sized as sbbf paimon build sizes them. An index
    goes into the manifest or into DATAFILE.index, by the table's file-index.in-manifest-threshold. The snapshot appears in one step
    and only if no other commit has come first; then everything is done again on top of that one. Older snapshots stay as they were.
    Exit code 3: some data file was left alone since it could not be read.
    """
    from sbbf_tool.operations.paimon.add_index import add_paimon_index

    report = add_paimon_index(table, columns, dry_run=dry_run, allow_outside=allow_outside, max_page_bytes=max_page_bytes)
    render.show_json("paimon-add-index", report) if as_json else _show(report)
    for left in report.unread:
        say(f"sbbf: {UnreadableError(spell(left.reason), file=left.data_file)}", err=True)
    return UnreadableError.exit_code if report.unread else 0


def _show(report: AddIndexReport) -> None:
    rows = [
        (added.data_file, added.place, render.size(added.size), *of_column(column)) for added in report.added for column in added.columns
    ]
    if rows:
        render.show_table(("data file", "place", "bytes", *HEADERS), rows, (2, *(at + 3 for at in NUMBERS)))
    for reason, count in Counter(left.reason for left in report.left_alone).items():
        names = [left.data_file for left in report.left_alone if left.reason == reason]
        say(f"left alone: {names[0] if count == 1 else render.counted(count, 'data file')}: {spell(reason)}")
    for note in report.notes:
        say(f"note: {note}")
    many = render.counted(len(report.added), "data file")
    if report.dry_run:
        say(f"{report.table}: {many} would get an index; nothing was written")
    elif report.snapshot_after is None:
        say(f"{report.table}: nothing to add, and nothing was written")
    else:
        say(f"{report.table}: {many} with a new index, every value verified; now at snapshot {report.snapshot_after}")
