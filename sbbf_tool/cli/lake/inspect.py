"""`sbbf lake inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.lake.engines import over_a_lake
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.inspect import InspectRow
    from sbbf_tool.runner.engine import Engine, Lake

_HEADERS = ("column", "files", "row groups", "of", "filter bytes", "data bytes", "mean est. fpp")


@click.command(short_help="Show which columns have Bloom filters, in how many files.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each, instead of the sum.")
@over_a_lake
def command(engine: Engine, lake: Lake, columns: tuple[str, ...], as_json: bool) -> int:
    """Show which columns have Bloom filters: in how many files and row groups, how large, and what they let pass.

    PATH is a Parquet file, a folder (all *.parquet below it) or a glob.
    """
    from sbbf_tool.reports.inspect import InspectRow
    from sbbf_tool.runner.read import inspecting
    from sbbf_tool.runner.totals import InspectTotals

    totals = InspectTotals()

    def show(row: InspectRow) -> int:
        if as_json:
            render.show_json(row)
        if row.report is None:
            return 0
        totals.add(row.report)
        for broken in row.report.broken:
            say(f"sbbf: {row.path}: {broken.broken}", err=True)
        return UnreadableError.exit_code if row.report.broken else 0

    files = each_row(engine.read(lake, inspecting(columns, lake.keys), InspectRow), show)
    if not as_json:
        rows = [
            (
                *(total.column, render.size(total.files), render.size(total.row_groups_with_filter), render.size(total.row_groups)),
                *(render.size(total.filter_bytes), render.size(total.chunk_bytes), render.percent(total.mean_fpp)),
            )
            for total in totals.columns()
        ]
        render.show_table(_HEADERS, rows, tuple(range(1, len(_HEADERS)))) if rows else say("no column has a Bloom filter")
        say(f"{files}; {totals.rows:,} rows in {totals.row_groups:,} row groups, {totals.bytes:,} bytes")
    return files.exit_code
