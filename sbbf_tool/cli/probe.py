"""`sbbf probe`."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_report

if TYPE_CHECKING:
    from sbbf_tool.reports.probe import ProbeReport

MAYBE, ABSENT = 0, 1


class NegativeValues(click.Command):
    """A command whose arguments may be negative numbers, which click would take for options."""

    _NEGATIVE = re.compile(r"-(\d|\.\d|inf|P)", re.IGNORECASE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["\0" + arg if self._NEGATIVE.match(arg) else arg for arg in args])


@click.command(cls=NegativeValues, short_help="Ask whether a value may be in a file.")
@click.argument("file", metavar="FILE")
@click.argument("column", metavar="COLUMN")
@click.argument("values", nargs=-1, metavar="VALUE...")
@click.option("--values-file", type=click.Path(), help="Ask for the values in this file too, one a line; - reads standard input.")
@click.option("--null", "ask_null", is_flag=True, help="Ask for null.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code answers.")
@click.option("--stats", is_flag=True, help="Tell on standard error how many bytes of how many files were read.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(
    file: str, column: str, values: tuple[str, ...], values_file: str | None, ask_null: bool, quiet: bool, stats: bool, as_json: bool
) -> int:
    """Ask the Bloom filters of COLUMN whether a value may be in the file.

    FILE is a Parquet file, a folder or a quoted glob. Values are written as the column's type has them: 42, 0x00ff, text. A value of
    `-` reads values from standard input, one a line; empty lines are passed over. Exit code 0: some value may be in some row group;
    1: all values are certainly absent from all.
    """
    from sbbf_tool.operations.probe import probe

    asked = values_of(values, values_file, ask_null)
    bytes_read: list[int] = []

    def show(report: ProbeReport) -> int:
        bytes_read.append(report.bytes_read)
        if as_json:
            render.show_json(report)
        elif not quiet:
            click.echo(f"{report.file}: column {report.column}, {report.type}")
            render.show_table(
                ("value", "row group", "answer", "reason"),
                [
                    (value.value, str(answer.row_group), answer.answer, answer.reason or value.note or "")
                    for value in report.values
                    for answer in value.row_groups
                ],
                (1,),
            )
        return ABSENT if report.is_absent else MAYBE

    codes = set(each_report((file,), partial(probe, column=column, values=asked), show))
    if stats:
        click.echo(f"{sum(bytes_read):,} bytes read of {len(bytes_read):,} files", err=True)
    return max(codes - {MAYBE, ABSENT}, default=MAYBE if MAYBE in codes else ABSENT)


def values_of(arguments: tuple[str, ...], values_file: str | None, ask_null: bool) -> list[str | None]:
    """The values to ask for, those of arguments first. Raises click.UsageError where there is none."""
    found: list[str | None] = [None] if ask_null else []
    for argument in arguments:
        found += _lines("-") if argument == "-" else [argument.removeprefix("\0")]
    if values_file is not None:
        found += _lines(values_file)
    if not found:
        raise click.UsageError("no value to ask for")
    return found


def _lines(name: str) -> list[str]:
    try:
        with click.open_file(name, encoding="utf-8", errors="surrogateescape") as stream:
            return [line for line in (line.rstrip("\r\n") for line in stream) if line]
    except OSError as error:
        raise click.UsageError(f"values file {name}: {(error.strerror or 'unreadable').lower()}") from None
