"""`sbbf paimon inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say, stop_if_unread
from sbbf_tool.cli.paimon.options import json_option, table_options

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import IndexFigures, InspectedFile, InspectReport

_HEADERS = (
    "data file",
    "partition",
    "rows",
    "place",
    "column",
    "current name",
    "index",
    "bytes",
    "k",
    "bits",
    "fill",
    "est. fpp",
    "est. ndv",
)


@click.command(cls=Command, short_help="Show the indexes of data files, with their estimated false-positive rates.")
@click.argument("target", metavar="TABLE|FILE.index")
@table_options
@json_option
def command(target: str, as_json: bool, **options: Any) -> int:
    """Show the indexes of the data files of a table, or those in one index file.

    TABLE is the folder of a table. Each row of the output is an index: its place, size in bytes, fill ratio and, estimated from the
    bits, the false-positive rate and the number of distinct values. Findings are listed below the table. Data files are not read. Exit
    code 3: an index cannot be read.
    """
    from sbbf_tool.operations.paimon.inspect import inspect_paimon

    report = inspect_paimon(target, **options)
    render.show_json("paimon-inspect", report) if as_json else _show(report)
    code = render.say_unreadable([(finding.file, finding.column, finding.message) for finding in report.errors])
    stop_if_unread()
    return code


def _show(report: InspectReport) -> None:
    indexed = sum(file.place != "none" for file in report.files)
    if report.is_table:
        state = f"snapshot {report.snapshot}" if report.snapshot is not None else "no snapshot"
        say(f"{report.target}: {state}, {render.format_count(len(report.files), 'data file')}, {indexed:,} with an index")
    else:
        say(f"{report.target}: {report.files[0].size:,} bytes, indexes: {len(report.files[0].indexes):,}")
    if rows := [row for file in report.files for row in _format_rows(file, report.is_table)]:
        render.show_table(_HEADERS, rows, (2, 7, 8, 9, 10, 11, 12))
    for total in report.columns if report.is_table else ():
        share = (
            f"{total.files_with_filter:,} of {render.format_count(total.files, 'data file')} have a filter, {total.filter_bytes:,} bytes"
        )
        say(f"{total.column}: {share}; mean est. fpp {render.percent(total.mean_fpp)}")
    if report.is_table and not indexed:
        say("no data file has an index")
    for line in _format_findings(report):
        say(line)


def _format_rows(file: InspectedFile, in_table: bool) -> Iterator[tuple[str, ...]]:
    of_file = (file.data_file, file.partition, render.size(file.rows), file.place) if in_table else ("",) * 4
    if in_table and not file.indexes:
        yield (*of_file, *[""] * 9)
    for index in file.indexes:
        current_name = "" if index.current_column in (None, index.column) else index.current_column or ""
        yield (*of_file, index.column, current_name, index.kind, *_format_figures(index))


def _format_figures(index: IndexFigures) -> tuple[str, ...]:
    size, bloom = "EMPTY" if index.empty else render.size(index.size), index.bloom
    if bloom is None:
        return (size, "", "", "", "", "")
    rates = (render.percent(bloom.fill_ratio), render.percent(bloom.estimated_fpp), render.estimate(bloom.estimated_ndv))
    return (size, str(bloom.k), render.size(bloom.num_bits), *rates)


def _format_findings(report: InspectReport) -> Iterator[str]:
    """Format one line per finding, with the number of data files that it concerns."""
    by_message: dict[tuple[str, str, str | None, str], list[str]] = {}
    for finding in report.findings:
        by_message.setdefault((finding.severity, finding.rule, finding.column, finding.message), []).append(finding.file)
    for (severity, rule, column, message), files in by_message.items():
        where = (files[0] if len(files) == 1 else render.format_count(len(files), "data file")) if report.is_table else None
        place = f"column {column}" if column is not None else None
        yield ": ".join(part for part in (severity, where, place, rule, message) if part is not None)
