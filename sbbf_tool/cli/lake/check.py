"""`sbbf lake check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import formats
from sbbf_tool.cli.lake.engines import over_a_lake
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.cli.policy import policy_options
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckRow
    from sbbf_tool.runner.engine import Engine, Lake


@click.command(short_help="Hold filters to rules, as a gate for CI.")
@policy_options
@click.option("--format", "form", type=click.Choice(formats.NAMES), default="text", show_default=True, help="How to tell what was found.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each, as --format json.")
@over_a_lake
def command(engine: Engine, lake: Lake, form: str, as_json: bool, config: str | None, **options: Any) -> int:
    """Hold the filters of all files to rules; `sbbf check --list-rules` shows them.

    Exit code 0: no finding is as bad as --fail-on; 1: some is; 2: an unknown rule or setting; 3: something could not be read.
    """
    from sbbf_tool.cli import policy
    from sbbf_tool.reports.findings import CheckRow
    from sbbf_tool.runner.read import checking

    asked = policy.from_options(options, config)

    def show(row: CheckRow) -> int:
        if row.report is None:
            return 0
        shown.add(row.report)
        for place in row.report.unread if not row.reason else ():
            say(f"sbbf: {UnreadableError(place, file=row.path)}", err=True)
        return int(row.report.failed)

    with formats.opened("json" if as_json else form) as shown:
        return each_row(engine.read(lake, checking(asked, lake.keys, lake.limit), CheckRow, reads_data=not asked.quick), show).exit_code
