"""`sbbf paimon build`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import page_limit_option
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.extensions.paimon.commands.options import COLUMNS, columns_option, dry_run_option

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import BuildReport


@click.command(cls=Command)
@click.argument("data_file", metavar="DATAFILE")
@columns_option("the options of the table that the data file belongs to")
@click.option("-o", "--output", metavar="OUT", help="Write the index to this file, which must not exist.  [default: DATAFILE.index]")
@dry_run_option
@page_limit_option
@output_options()
def command(data_file: str, columns: tuple[str, ...], outputs: Outputs, **options: Any) -> None:
    """Build an index file for a Parquet, ORC or Avro data file, byte for byte as Paimon writes it.

    \b
    $ sbbf paimon build events.parquet -c user_id
    $ sbbf paimon build events.parquet -c user_id:fpp=0.01 -o events.index

    Each filter is sized for the distinct values in the file and a false-positive rate of 0.1; items=N and fpp=P size it as Paimon's options
    of these names do. After a column, type=TYPE states its Paimon type if neither a table nor the file determines it. Use the column names
    of the data file. All values are verified before the index is written.
    """
    from sbbf_tool.extensions.paimon.verbs.build import build_paimon_index

    with show_progress("building the index"):
        report = build_paimon_index(data_file, columns, **options)
    outputs.print("paimon-build", report, _show_report)


def _show_report(page: Page, report: BuildReport) -> None:
    page.table(COLUMNS, report.columns)
    outcome = "would be written; nothing was written" if report.dry_run else "written; all values verified"
    page.say(f"{report.output}: {page.bytes(report.size)} {outcome}")
    if report.table is not None and not report.dry_run:
        page.say(f"note: table {report.table} does not refer to this file; sbbf paimon add-index adds an index that Paimon uses")
