"""`sbbf paimon add-index`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.paimon.columns import HEADERS, NUMBERS, columns_option, format_column
from sbbf_tool.cli.paimon.options import dry_run_option, json_option, outside_option
from sbbf_tool.cli.spelling import spell

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import AddIndexReport


@click.command(cls=Command, short_help="Add indexes to the data files of a table that have none.")
@click.argument("table", metavar="TABLE")
@columns_option("the table's options")
@outside_option
@dry_run_option
@page_limit_option
@json_option
def command(table: str, columns: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Add an index to the data files of a table that have none, in a new snapshot. Data files stay unchanged.

    TABLE is the folder of a table on a local disk. Use the current names of columns; filters are sized as in sbbf paimon build. An index
    is stored in the manifest or in DATAFILE.index, depending on the table's file-index.in-manifest-threshold. The snapshot is created
    atomically and only if no other commit came first; otherwise the commit is planned again on top of that one. Older snapshots stay
    unchanged. Exit code 3: a data file was skipped because it could not be read.
    """
    from sbbf_tool.operations.paimon.add_index import add_paimon_index

    report = add_paimon_index(table, columns, **options)
    render.show_json("paimon-add-index", report) if as_json else _show(report)
    return render.say_unreadable([(file.data_file, None, file.reason) for file in report.unreadable])


def _show(report: AddIndexReport) -> None:
    rows = [
        (index.data_file, index.place, render.size(index.size), *format_column(column))
        for index in report.new_indexes
        for column in index.columns
    ]
    if rows:
        render.show_table(("data file", "place", "bytes", *HEADERS), rows, (2, *(at + 3 for at in NUMBERS)))
    for reason, count in Counter(file.reason for file in report.skipped).items():
        names = [file.data_file for file in report.skipped if file.reason == reason]
        say(f"skipped {names[0] if count == 1 else render.format_count(count, 'data file')}: {spell(reason)}")
    for note in report.notes:
        say(f"note: {note}")
    files = render.format_count(len(report.new_indexes), "data file")
    if report.dry_run:
        say(f"{report.table}: {files} would get an index; nothing was written")
    elif report.snapshot_after is None:
        say(f"{report.table}: no data file needs an index; nothing was written")
    else:
        say(f"{report.table}: added an index to {files}, all values verified; committed as snapshot {report.snapshot_after}")
