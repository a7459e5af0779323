"""`sbbf paimon add-index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import page_limit_option
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import OUTSIDE_FILES, WEAK_FILTERS, allow_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.tables import BYTES, NAME, WORD, Heading
from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.paimon.commands.options import COLUMNS, columns_option, dry_run_option, show_change

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import AddIndexReport


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@columns_option("the table's options")
@click.option("--rebuild", type=click.Choice(("all",)), help="Rebuild the filters of data files that have one for the column.")
@allow_option(WEAK_FILTERS, OUTSIDE_FILES)
@dry_run_option
@page_limit_option
@output_options()
def command(table: str, columns: tuple[str, ...], allow: frozenset[str], outputs: Outputs, **options: Any) -> int:
    """Add an index to the data files of a table that have none for a column, in a new snapshot. Data files stay unchanged.

    \b
    $ sbbf paimon add-index orders -c customer --dry-run
    $ sbbf paimon add-index orders -c customer:fpp=0.01

    TABLE is the folder of a table on a local disk. Use the current names of columns; filters are sized as in sbbf paimon build. Indexes of
    other columns and types stay as they are. An index is stored in the manifest or in DATAFILE.index, depending on the table's
    file-index.in-manifest-threshold. The snapshot is created atomically and only if no other commit came first; otherwise the commit is
    planned again on top of that one. Older snapshots stay unchanged. Exit code 3: a data file was skipped because it, or its index, could
    not be read. Exit code 4: a filter was left out that would exclude hardly any value.
    """
    from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index

    with show_progress("adding indexes"):
        report = add_paimon_index(table, columns, force=WEAK_FILTERS in allow, allow_outside=OUTSIDE_FILES in allow, **options)
    outputs.print("paimon-add-index", report, _show_report)
    code = render.say_unreadable([(file.data_file, None, file.reason) for file in report.unreadable])
    return max(code, RefusedError.exit_code) if report.refused else code


def _show_report(page: Page, report: AddIndexReport) -> None:
    pairs = [(index, column) for index in report.new_indexes for column in index.columns]
    page.table(
        (Heading("data file", NAME), Heading("place", WORD, 8), Heading("bytes", BYTES, 9), *COLUMNS),
        [(index.data_file, index.place, index.size, *(each.cell_of(column) for each in COLUMNS)) for index, column in pairs],
    )
    show_change(
        page,
        report,
        report.new_indexes,
        "{} would get an index",
        "added an index to {}, all values verified",
        "no data file needs an index",
    )
