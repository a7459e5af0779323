"""`sbbf lake verify`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.lake.engines import over_a_lake
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.verify import VerifyRow
    from sbbf_tool.runner.engine import Engine, Lake


@click.command(short_help="Prove filters against the data.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
@over_a_lake
def command(engine: Engine, lake: Lake, columns: tuple[str, ...], as_json: bool) -> int:
    """Prove the filters of all files against their data, each asked for every value of its column chunk.

    Shows what contradicts the data or the format. Exit code 0: no filter does; 1: some filter does; 3: something could not be read.
    """
    filters: Counter[bool] = Counter()

    def show(row: VerifyRow) -> int:
        if as_json:
            render.show_json(row)
        if row.report is None:
            return 0
        filters.update(proof.is_proven for proof in row.report.filters)
        if not as_json:
            show_findings(row.report.findings)
        for place in row.report.unread:
            say(f"sbbf: {UnreadableError(place, file=row.path)}", err=True)
        return UnreadableError.exit_code if row.report.unread else int(not row.report.is_sound)

    files = each_row(engine.verify(lake, columns), show)
    if not as_json:
        say(f"{files}; {filters[True]:,} of {filters.total():,} filters proven")
    return files.exit_code
