"""`sbbf lake probe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.lake.engines import over_a_lake
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.cli.probe import ABSENT, MAYBE, asked_values

if TYPE_CHECKING:
    from sbbf_tool.reports.lookup import LookupReport, LookupRow
    from sbbf_tool.runner.engine import Engine, Lake


@click.command(short_help="Find the files and row groups that may hold values.")
@click.option("-c", "--column", required=True, metavar="COLUMN", help="The column to ask.")
@click.option("--value", "values", multiple=True, metavar="VALUE", help="Ask for this value (repeat for more).")
@click.option("--values-file", type=click.Path(), help="Ask for the values in this file, one a line; - reads standard input.")
@click.option("--null", "ask_null", is_flag=True, help="Ask for null.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
@over_a_lake
def command(
    engine: Engine, lake: Lake, column: str, values: tuple[str, ...], values_file: str | None, ask_null: bool, as_json: bool
) -> int:
    """Ask the Bloom filters of all files for many values at once: which files and row groups may hold each.

    What is not listed is certainly absent. A row group without a filter may hold all of them, and is listed as such. Exit code 0: some
    value may be somewhere; 1: all are certainly absent from everywhere; 2 and more: some file could not be asked.
    """
    from sbbf_tool.reports.lookup import LookupRow
    from sbbf_tool.runner.read import probing

    asked = asked_values(values, values_file, ask_null)
    found: set[str] = set()
    holding: dict[str, int] = {"hits": 0, "silent": 0}

    def show(row: LookupRow) -> int:
        if as_json:
            render.show_json(row)
        if row.report is not None:
            found.update(hit.value for hit in row.report.hits)
            holding["hits"] += bool(row.report.hits)
            holding["silent"] += bool(row.report.unanswered)
            if not as_json:
                _show(row.report)
        return 0

    files = each_row(engine.read(lake, probing(column, asked, lake.keys), LookupRow), show)
    if not as_json:
        say(
            f"{len(asked):,} values asked of {files.total}: {len(found):,} may be in {holding['hits']:,} of them; "
            f"{holding['silent']:,} have row groups without a filter that answers"
        )
    return files.exit_code or (MAYBE if holding["hits"] or holding["silent"] else ABSENT)


def _show(report: LookupReport) -> None:
    for hit in report.hits:
        say(f"{report.file}: {render.value(hit.value)}: row group{_numbers(hit.row_groups)}")
    for silent in report.unanswered:
        why = f"{silent.answer}: {silent.reason}" if silent.reason else silent.answer
        say(f"{report.file}: any of the values: row group{_numbers(silent.row_groups)} ({why})")


def _numbers(row_groups: tuple[int, ...]) -> str:
    """`s 0-3, 7`."""
    runs: list[list[int]] = []
    for number in row_groups:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ("s " if len(row_groups) > 1 else " ") + ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
