"""`sbbf paimon probe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.query import ABSENT, MAYBE, NegativeValues
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, WORD, Heading
from sbbf_tool.cli.terminal import terminal
from sbbf_tool.cli.values import collect_values
from sbbf_tool.extensions.paimon.commands.options import table_options
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import PaimonProbeReport

_COLUMNS = (
    Heading("value", NAME, of=lambda row: "null" if row.value is None else render.value(row.value)),
    Heading("data file", NAME),
    Heading("partition", NAME, 2),
    Heading("rows", COUNT, 3),
    Heading("place", WORD, 4),
    Heading("answer", WORD, of=lambda row: "remains" if row.may_hold else "skipped"),
    Heading("reason", SENTENCE, 1),
)


@click.command(cls=NegativeValues)
@click.argument("table", metavar="TABLE")
@click.argument("column", metavar="COLUMN")
@click.argument("values", nargs=-1, metavar="VALUE...")
@click.option(
    "--values-file",
    type=click.Path(),
    help="Also query for the values in this file, one per line without empty ones; - reads standard input.",
)
@click.option("--null", "with_null", is_flag=True, help="Also query for null.")
@table_options
@output_options()
def command(
    table: str, column: str, values: tuple[str, ...], values_file: str | None, with_null: bool, outputs: Outputs, **options: Any
) -> int:
    """Query the file indexes of a table for the data files that may hold a value of COLUMN, as Paimon's own reader does.

    \b
    $ sbbf paimon probe orders customer c-42
    $ sbbf paimon probe orders customer c-42 c-43

    COLUMN is the current name of the column; `m[key]` is an entry of the map m. Values are written in the form of the type of the column:
    42, text, 0x00ff, 2024-02-29, 2024-02-29T12:00:00.5. Exit code 0: a data file may hold one of them; 1: all data files are skipped for
    every value.
    """
    from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
    from sbbf_tool.storage.folders import LocalFolders

    files = LocalFolders()
    report = probe_paimon(table, column, collect_values(values, values_file, with_null), files=files, **options)
    outputs.print("paimon-probe", report, _show_report)
    if terminal().verbose:
        complain(f"read {files.bytes_read:,} bytes from {format_count(files.files_read, 'file')}", kind="note")
    return MAYBE if report.remaining else ABSENT


def _show_report(page: Page, report: PaimonProbeReport) -> None:
    from sbbf_tool.extensions.paimon.reports import ANSWER_ROW

    state = f"snapshot {report.snapshot}" if report.snapshot is not None else "no snapshot"
    page.say(f"{report.table}: {state}, column {report.column}, {report.type}")
    rows = [ANSWER_ROW.of(file, file.answers[at]) for at in range(report.num_values) for file in report.files]
    page.table(_COLUMNS, rows, matters=lambda row: bool(row.may_hold))
    remaining_rows, total_rows = (sum(file.rows for file in files) for files in (report.remaining, report.files))
    data_files = format_count(len(report.files), "data file")
    page.say(f"remaining: {len(report.remaining):,} of {data_files}, {remaining_rows:,} of {format_count(total_rows, 'row')}")
    if report.unused_reason is not None:
        page.say(f"note: Paimon does not use the indexes of this table and reads every file: {report.unused_reason}")
