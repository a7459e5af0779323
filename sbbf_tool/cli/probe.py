"""`sbbf probe`."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_report, warn_of_append
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.values import lines_of

if TYPE_CHECKING:
    from sbbf_tool.reports.probe import ProbeReport

MAYBE, ABSENT = 0, 1

MOST_VALUES = 1_000_000
"""From a file or a pipe: all are held, with an answer each, and a pipe may have no end."""


_AS_IT_IS = "\0"
"""No argument can hold it. What begins with it is a value, whatever it looks like."""


class NegativeValues(click.Command):
    """A command whose arguments may be negative numbers, which click would take for options, or a `-` after `--`, which is a value."""

    _NEGATIVE = re.compile(r"-(\d|\.\d|inf|P)", re.IGNORECASE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end_of_options = args.index("--") if "--" in args else len(args)
        marked = [
            _AS_IT_IS + arg if self._NEGATIVE.match(arg) or (arg == "-" and at > end_of_options) else arg for at, arg in enumerate(args)
        ]
        rest = super().parse_args(ctx, marked)
        for name, given in ctx.params.items():
            if isinstance(given, str):
                ctx.params[name] = given.removeprefix(_AS_IT_IS)
        return rest


@click.command(cls=NegativeValues, short_help="Ask whether a value may be in a file.")
@click.argument("file", metavar="FILE")
@click.argument("column", required=False, metavar="COLUMN")
@click.argument("values", nargs=-1, metavar="VALUE...")
@click.option("--values-file", type=click.Path(), help="Ask for the values in this file too, one a line; - reads standard input.")
@click.option("--null", "ask_null", is_flag=True, help="Ask for null.")
@click.option("--dialect", metavar="NAME", help="Rely on filters of this draft of the format; else nothing is said of them.")
@click.option("--bare", is_flag=True, help="FILE is one filter, header and bitset, and nothing else: there is no COLUMN, but --type.")
@click.option("--type", "type_name", metavar="TYPE", help="With --bare: the type of its values, such as INT64 or STRING.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code answers.")
@click.option("--stats", is_flag=True, help="Tell on standard error how many bytes of how many files were read, and by how many requests.")
@keys_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(
    file: str,
    column: str | None,
    values: tuple[str, ...],
    values_file: str | None,
    ask_null: bool,
    dialect: str | None,
    bare: bool,
    type_name: str | None,
    quiet: bool,
    stats: bool,
    keys: Any,
    as_json: bool,
) -> int:
    """Ask the Bloom filters of COLUMN whether a value may be in the file.

    FILE is a Parquet file, a folder or a quoted glob. Values are written as the column's type has them: 42, 0x00ff, text. A value of
    `-` reads values from standard input, one a line, and empty lines are skipped; after `--` it is a value. Exit code 0: some value may be
    in some row group; 1: all values are certainly absent from all.

    The value `null` is text in a column of text or of bytes without a fixed length, and in any other column asks for null, as --null does.
    """
    from sbbf_tool.operations.probe import probe

    if bare:
        values = (column, *values) if column is not None else values
    elif column is None or type_name is not None:
        raise click.UsageError("no column was named" if column is None else "--type is for --bare; a Parquet file tells its own")
    asked = asked_values(values, values_file, ask_null)
    bytes_read: list[int] = []
    requests = 0

    def show(report: ProbeReport) -> int:
        nonlocal requests
        warn_of_append(report.file)
        bytes_read.append(report.bytes_read)
        requests += report.requests
        if as_json:
            render.show_json(report)
        elif not quiet:
            say(f"{report.file}: {report.type}" if bare else f"{report.file}: column {report.column}, {report.type}")
            render.show_table(
                ("value", "row group", "answer", "reason"),
                [
                    (render.value(value.value), "" if bare else str(answer.row_group), answer.answer, answer.reason or value.note or "")
                    for value in report.values
                    for answer in value.row_groups
                ],
                (1,),
            )
        return ABSENT if report.is_absent else MAYBE

    if bare:
        from sbbf_tool.cli.bare import probe as probe_bare

        codes = {show(probe_bare(file, type_name, asked, dialect))}
    else:
        assert column is not None
        codes = set(each_report((file,), partial(probe, column=column, values=asked, dialect=dialect, keys=keys), show))
    if stats:
        by_requests = f", by {requests:,} requests" if requests else ""
        say(f"{sum(bytes_read):,} bytes read of {len(bytes_read):,} files{by_requests}", err=True)
    return max(codes - {MAYBE, ABSENT}, default=MAYBE if MAYBE in codes else ABSENT)


def asked_values(arguments: tuple[str, ...], values_file: str | None, ask_null: bool) -> tuple[str | None, ...]:
    """The values of a command line: its arguments, those that come on standard input or in a file, and None for null."""
    found: list[str | None] = [None] if ask_null else []
    for argument in arguments:
        found += _few_of("-") if argument == "-" else [argument.removeprefix(_AS_IT_IS)]
    if values_file is not None:
        found += _few_of(values_file)
    if not found:
        raise click.UsageError("no value to ask for")
    return tuple(found)


def _few_of(name: str) -> list[str]:
    found = list(islice(lines_of(name), MOST_VALUES + 1))
    if len(found) > MOST_VALUES:
        raise click.UsageError(f"more than {MOST_VALUES:,} values in {'standard input' if name == '-' else name}: ask in several runs")
    return found
