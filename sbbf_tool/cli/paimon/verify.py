"""`sbbf paimon verify`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say, stop_if_unread
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.paimon.options import json_option, table_options

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import VerifiedColumn, VerifyReport

_HEADERS = ("data file", "place", "column", "rows", "nulls", "false negatives", "result")


@click.command(cls=Command, short_help="Verify indexes against the data.")
@click.argument("target", metavar="TABLE|FILE.index")
@click.argument("data_file", metavar="[DATAFILE]", required=False)
@table_options
@page_limit_option
@json_option
def command(target: str, data_file: str | None, as_json: bool, **options: Any) -> int:
    """Verify that an index has no false negatives: query its filters for every value of the data file.

    TABLE is the folder of a table. For a single index file, DATAFILE is its data file; by default, the file beside it that its name
    refers to. Exit code 0: no false negatives; 1: false negatives; 3: something could not be read.
    """
    from sbbf_tool.operations.paimon.verify import verify_paimon

    report = verify_paimon(target, data_file, **options)
    render.show_json("paimon-verify", report) if as_json else _show(report)
    code = render.say_unreadable(report.problems) or int(report.has_false_negatives)
    stop_if_unread()
    return code


def _show(report: VerifyReport) -> None:
    rows = [
        (
            file.data_file,
            file.place,
            column.column,
            *map(render.size, (column.rows, column.nulls, column.false_negatives)),
            _format_result(column),
        )
        for file in report.files
        for column in file.columns
    ]
    if rows:
        render.show_table(_HEADERS, rows, (3, 4, 5))
    for line in _format_false_negatives(report):
        say(line)
    count = sum(row[-1] == _VERIFIED for row in rows)
    summary = f"{count:,} of {render.format_count(len(rows), 'filter')} verified" if rows else "no filter to verify"
    say(f"{report.target}: {summary}")


_VERIFIED = "all values found"


def _format_result(column: VerifiedColumn) -> str:
    return "not verified" if column.problem else "false negatives" if column.false_negatives else _VERIFIED


def _format_false_negatives(report: VerifyReport) -> Iterator[str]:
    for file in report.files:
        for column in file.columns:
            if count := column.false_negatives:
                yield f"{file.data_file}: column {column.column}: {count:,} false negatives, such as {', '.join(column.examples)}"
