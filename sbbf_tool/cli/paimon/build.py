"""`sbbf paimon build`."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.paimon.columns import HEADERS, NUMBERS, columns_option, format_column
from sbbf_tool.cli.paimon.options import dry_run_option, json_option


@click.command(cls=Command, short_help="Build an index file for a data file.")
@click.argument("data_file", metavar="DATAFILE")
@columns_option("the options of the table that the data file belongs to")
@click.option("-o", "--output", metavar="OUT", help="Write the index to this file, which must not exist.  [default: DATAFILE.index]")
@dry_run_option
@page_limit_option
@json_option
def command(data_file: str, columns: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Build an index file for a Parquet, ORC or Avro data file, byte for byte as Paimon writes it.

    Each filter is sized for the distinct values in the file and a false-positive rate of 0.1; items=N and fpp=P size it as Paimon's
    options of these names do. After a column, type=TYPE states its Paimon type if neither a table nor the file determines it. Use the
    column names of the data file. All values are verified before the index is written.
    """
    from sbbf_tool.operations.paimon.build import build_paimon_index

    report = build_paimon_index(data_file, columns, **options)
    if as_json:
        render.show_json("paimon-build", report)
        return
    render.show_table(HEADERS, [format_column(column) for column in report.columns], NUMBERS)
    outcome = "would be written; nothing was written" if report.dry_run else "written; all values verified"
    say(f"{report.output}: {report.size:,} bytes {outcome}")
    if report.table is not None and not report.dry_run:
        say(f"note: table {report.table} does not refer to this file; sbbf paimon add-index adds an index that Paimon uses")
