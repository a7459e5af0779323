"""`sbbf verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.verify import FilterVerification, VerifyReport

_HEADERS = ("row group", "column", "type", "values", "false negatives", "est. fpp", "measured fpp", "result")


@click.command(cls=Command, short_help="Verify filters against the data.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--standalone", is_flag=True, help="PATH is a standalone filter: a header and a bitset. Requires --type and --values-file.")
@click.option("--type", "type_name", metavar="TYPE", help="With --standalone: type of the values, such as INT64 or STRING.")
@click.option(
    "--values-file", type=click.Path(), help="With --standalone: values that the filter must hold, one per line; - reads standard input."
)
@click.option(
    "--dialect",
    metavar="NAME",
    help="With --standalone: the draft of the format that the filter follows; by default the values determine it.",
)
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document per file and, for several files, a summary.")
@over_files()
def command(
    files: Files,
    columns: tuple[str, ...],
    standalone: bool,
    type_name: str | None,
    values_file: str | None,
    dialect: str | None,
    max_page_bytes: int | None,
    as_json: bool,
) -> int:
    """Verify the filters of files against their data: each filter is queried for every value of its column chunk.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL. The command reports false negatives, with their
    cause if it is known; the false-positive rate, measured with absent values; and defects of the offset, header, length and size. Exit
    code 0: no filter contradicts its data or the format; 1: a filter does; 3: something could not be read.
    """
    if standalone:
        from sbbf_tool.cli.standalone import verify as verify_standalone
        from sbbf_tool.cli.values import lines_of

        if values_file is None:
            raise click.UsageError("a standalone filter has no data to verify it against: give --values-file")
        return verify_standalone(files, type_name, lines_of(values_file), dialect, as_json)
    if type_name is not None or values_file is not None or dialect is not None:
        raise click.UsageError("--type, --values-file and --dialect apply only with --standalone")
    from sbbf_tool.runner import works

    work = works.verify(columns, keys=files.keys, max_page_bytes=max_page_bytes)
    return report_files(files, work, _VerifyView(), as_json=as_json)


class _VerifyView(View["VerifyReport"]):
    schema = "verify"
    sums = ("filters", "verified")

    def add(self, report: VerifyReport, row: FileRow) -> int:
        self.total.update(filters=len(report.filters), verified=sum(verification.is_verified for verification in report.filters))
        for place in report.unreadable:
            say(f"sbbf: {UnreadableError(place, file=row.path)}", err=True)
        return UnreadableError.exit_code if report.unreadable else int(not report.is_sound)

    def show(self, report: VerifyReport) -> None:
        if report.filters:
            rows = [
                (
                    *(str(verification.row_group), verification.column, verification.type),
                    *(render.size(verification.verified_values), render.size(verification.false_negatives)),
                    *(render.percent(verification.estimated_fpp), render.percent(verification.measured_fpp)),
                    _result(verification),
                )
                for verification in report.filters
            ]
            render.show_table(_HEADERS, rows, (0, 3, 4, 5, 6))
        show_findings(report.findings)
        verified = sum(verification.is_verified for verification in report.filters)
        say(f"{report.file}: {f'{verified} of {len(report.filters)} filters verified' if report.filters else 'no filter to verify'}")

    def show_line(self, report: VerifyReport) -> None:
        show_findings(report.findings)

    def summary(self, files: str) -> str:
        return f"{files}; {self.total['verified']:,} of {self.total['filters']:,} filters verified"


def _result(verification: FilterVerification) -> str:
    if verification.problem is not None:
        return verification.problem
    result = "verified" if verification.is_verified else "false negatives"
    return f"{result}, as {verification.dialect}" if verification.dialect else result
