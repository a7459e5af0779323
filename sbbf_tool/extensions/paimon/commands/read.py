"""`sbbf paimon inspect` and `probe`: what indexes hold, and what they exclude."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import COLUMNS, READING
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.query import ALL_ABSENT, SOME_MAY_BE, NegativeValues
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.cli.values import collect_values
from sbbf_tool.extensions.paimon.commands.options import table_options
from sbbf_tool.numbers import format_count, format_percent

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import PaimonInspectReport, PaimonProbeReport


def _current_name_of(row: Any) -> object:
    return row.current_column if row.current_column != row.column else None


def _bytes_of(row: Any) -> object:
    if row.kind is None:
        return None
    return "EMPTY" if row.empty else row.size


_OF_FILE = (
    Heading("data file", NAME),
    Heading("partition", NAME, 5),
    Heading("rows", COUNT, 6),
    Heading("place", WORD, 7),
)
_OF_INDEX = (
    Heading("column", NAME),
    Heading("current name", NAME, 2, _current_name_of),
    Heading("index", WORD, 3, "kind"),
    Heading("bytes", BYTES, 0, _bytes_of),
    Heading("k", COUNT, 9),
    Heading("bits", COUNT, 8, "num_bits"),
    Heading("fill", RATE, 4, "fill_ratio"),
    Heading("fpp", RATE, 0, "estimated_fpp"),
    Heading("ndv", ESTIMATE, 1, "estimated_ndv"),
)


@click.command(cls=Command)
@click.argument("target", metavar="TABLE|FILE.index")
@table_options
@output_options()
def inspect(target: str, outputs: Outputs, **options: Any) -> int:
    """Show the indexes of the data files of a table, or those in one index file.

    \b
    $ sbbf paimon inspect orders
    $ sbbf paimon inspect orders --snapshot 1

    TABLE is the folder of a table. Each row of the output is an index: its place, size in bytes,
    fill ratio and, estimated from the bits, the false-positive rate and the number of distinct
    values. Findings are listed below the table. Data files are not read. Exit code 3: an index
    cannot be read.
    """
    from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon

    report = inspect_paimon(target, **options)
    outputs.print("paimon-inspect", report, _show_inspect)
    return render.say_unreadable(
        [(finding.file, finding.column, finding.message) for finding in report.errors]
    )


def _show_inspect(page: Page, report: PaimonInspectReport) -> None:
    from sbbf_tool.extensions.paimon.reports import INDEX_ROW

    files = report.files
    if not report.is_table:
        (file,) = files
        page.say(f"{report.target}: {page.bytes(file.size)}, indexes: {len(file.indexes):,}")
        page.table(_OF_INDEX, [INDEX_ROW.of(file, index, index.bloom) for index in file.indexes])
        page.say_all(_format_diagnoses(report))
        page.say_all(_format_findings(report))
        return
    num_indexed = sum(file.place != "none" for file in files)
    page.say(
        f"{report.target}: {_format_snapshot(report.snapshot)}, "
        f"{format_count(len(files), 'data file')}, {num_indexed:,} with an index"
    )
    rows = []
    for file in files:
        if not file.indexes:
            rows.append(INDEX_ROW.of(file, None, None))
        rows += [INDEX_ROW.of(file, index, index.bloom) for index in file.indexes]
    page.table((*_OF_FILE, *_OF_INDEX), rows)
    page.say_all(_format_totals(page, report))
    page.say_all(_format_diagnoses(report))
    if not num_indexed:
        page.say("no data file has an index")
    page.say_all(_format_findings(report))


def _format_snapshot(snapshot: int | None) -> str:
    return "no snapshot" if snapshot is None else f"snapshot {snapshot}"


def _format_totals(page: Page, report: PaimonInspectReport) -> Iterator[str]:
    for total in report.columns:
        files = format_count(total.files, "data file")
        yield (
            f"{total.column}: {total.files_with_filter:,} of {files} have a filter, "
            f"{page.bytes(total.filter_bytes)}; mean fpp {format_percent(total.mean_fpp)}"
        )


def _format_diagnoses(report: PaimonInspectReport) -> Iterator[str]:
    """Format one line per column whose filters are too large or too small.

    The line is about the filter that is farthest from half full.
    """
    diagnoses: dict[str, list[tuple[float, str, str]]] = {}
    for file in report.files:
        for index in file.indexes:
            bloom = index.bloom
            if bloom is not None and bloom.diagnosis is not None:
                column = index.current_column or index.column
                case = (abs(bloom.fill_ratio - 0.5), bloom.diagnosis, file.data_file)
                diagnoses.setdefault(column, []).append(case)
    for column, cases in diagnoses.items():
        _, diagnosis, where = max(cases, key=itemgetter(0))
        if not report.is_table:
            yield f"{column}: {diagnosis}"
            continue
        if len(cases) > 1:
            where += f" and {format_count(len(cases) - 1, 'more data file')}"
        yield f"{column}: {diagnosis} ({where})"


def _format_findings(report: PaimonInspectReport) -> Iterator[str]:
    """Format one line per finding, with the number of data files that it concerns."""
    cases = []
    for finding in report.findings:
        case = (finding.severity, finding.rule, finding.column, finding.message)
        cases.append((case, finding.file))
    for (severity, rule, column, message), files in render.group(cases).items():
        parts = [severity]
        if report.is_table:
            parts.append(files[0] if len(files) == 1 else format_count(len(files), "data file"))
        if column is not None:
            parts.append(f"column {column}")
        yield ": ".join((*parts, rule, message))


def _value_of(row: Any) -> str:
    return "null" if row.value is None else render.value(row.value)


def _answer_of(row: Any) -> str:
    return "remains" if row.may_hold else "skipped"


_ANSWERS = (
    Heading("value", NAME, of=_value_of),
    Heading("data file", NAME),
    Heading("partition", NAME, 2),
    Heading("rows", COUNT, 3),
    Heading("place", WORD, 4),
    Heading("answer", WORD, of=_answer_of),
    Heading("reason", SENTENCE, 1),
)


@click.command(cls=NegativeValues)
@click.argument("table", metavar="TABLE")
@click.argument("column", metavar="COLUMN")
@click.argument("values", nargs=-1, metavar="VALUE...")
@COLUMNS.option(
    "--values-file",
    "Also query for the values in this file, one per line without empty ones, or in a column: "
    "keys.csv:COLUMN; - reads standard input.",
    place=READING,
    type=click.Path(),
)
@COLUMNS.flag("--null", "with_null", "Also query for null.", place=READING)
@table_options
@output_options()
def probe(
    table: str,
    column: str,
    values: tuple[str, ...],
    values_file: str | None,
    with_null: bool,
    outputs: Outputs,
    **options: Any,
) -> int:
    """Query the file indexes of a table for the data files that may hold a value of COLUMN, as
    Paimon's own reader does.

    \b
    $ sbbf paimon probe orders customer c-42
    $ sbbf paimon probe orders customer c-42 c-43

    COLUMN is the current name of the column; `m[key]` is an entry of the map m. Values are written
    in the form of the type of the column: 42, text, 0x00ff, 2024-02-29, 2024-02-29T12:00:00.5. Exit
    code 0: a data file may hold one of them; 1: all data files are skipped for every value.
    """
    from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
    from sbbf_tool.storage.folders import LocalFolders

    files = LocalFolders()
    query_values = collect_values(values, values_file, with_null, column)
    report = probe_paimon(table, column, query_values, files=files, **options)
    outputs.print("paimon-probe", report, _show_probe)
    if terminal().verbose:
        num_files = format_count(files.files_read, "file")
        complain(f"read {files.bytes_read:,} bytes from {num_files}", kind="note")
    return SOME_MAY_BE if report.remaining else ALL_ABSENT


def _show_probe(page: Page, report: PaimonProbeReport) -> None:
    from sbbf_tool.extensions.paimon.reports import ANSWER_ROW

    page.say(
        f"{report.table}: {_format_snapshot(report.snapshot)}, column {report.column}, "
        f"{report.type}"
    )
    rows = []
    for at in range(report.num_values):
        rows += [ANSWER_ROW.of(file, file.answers[at]) for file in report.files]
    page.table(_ANSWERS, rows, matters=lambda row: bool(row.may_hold))
    num_remaining_rows = sum(file.rows for file in report.remaining)
    num_rows = sum(file.rows for file in report.files)
    page.say(
        f"remaining: {len(report.remaining):,} of {format_count(len(report.files), 'data file')}, "
        f"{num_remaining_rows:,} of {format_count(num_rows, 'row')}"
    )
    if report.unused_reason is not None:
        page.say(
            "note: Paimon does not use the indexes of this table and reads every file: "
            f"{report.unused_reason}"
        )
