"""`sbbf verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.verify import VerifyReport

_HEADERS = ("row group", "column", "type", "values", "missed", "est. fpp", "measured fpp", "proof")


@click.command(short_help="Verify filters against the data.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--bare", is_flag=True, help="PATH is one filter, header and bitset, and nothing else; takes --type and --values-file.")
@click.option("--type", "type_name", metavar="TYPE", help="With --bare: the type of its values, such as INT64 or STRING.")
@click.option("--values-file", type=click.Path(), help="With --bare: the values it should hold, one per line; - reads standard input.")
@click.option("--dialect", metavar="NAME", help="With --bare: the draft of the format it is of, if the values are not to tell.")
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document per file, and a summary of several.")
@over_files()
def command(
    files: Files,
    columns: tuple[str, ...],
    bare: bool,
    type_name: str | None,
    values_file: str | None,
    dialect: str | None,
    max_page_bytes: int | None,
    as_json: bool,
) -> int:
    """Verify the filters of files against their data: each filter is queried for every value of its column chunk.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL. Shows the values that a filter misses, and why where
    that can be found; the false-positive rate measured with keys that are not there; and what is wrong with a filter's place, header,
    length and size. Exit code 0: no filter contradicts its data or the format; 1: some filter does; 3: something could not be read.
    """
    if bare:
        from sbbf_tool.cli.bare import verify as verify_bare
        from sbbf_tool.cli.values import lines_of

        if values_file is None:
            raise click.UsageError("a bare filter has no data beside it: give --values-file")
        return verify_bare(files, type_name, lines_of(values_file), dialect, as_json)
    if type_name is not None or values_file is not None or dialect is not None:
        raise click.UsageError("--type, --values-file and --dialect are for --bare; a Parquet file tells its own")
    from sbbf_tool.runner import works

    work = works.verify(columns, keys=files.keys, max_page_bytes=max_page_bytes)
    return report_files(files, work, _VerifyView(), as_json=as_json)


class _VerifyView(View["VerifyReport"]):
    schema = "verify"
    sums = ("filters", "verified")

    def add(self, report: VerifyReport, row: FileRow) -> int:
        self.total.update(filters=len(report.filters), verified=sum(proof.is_proven for proof in report.filters))
        for place in report.unread:
            say(f"sbbf: {UnreadableError(place, file=row.path)}", err=True)
        return UnreadableError.exit_code if report.unread else int(not report.is_sound)

    def show(self, report: VerifyReport) -> None:
        if report.filters:
            rows = [
                (
                    *(str(proof.row_group), proof.column, proof.type, render.size(proof.values), render.size(proof.missed)),
                    *(render.percent(proof.estimated_fpp), render.percent(proof.measured_fpp)),
                    proof.unproven
                    or ("every value found" if proof.is_proven else "lies") + (f", as {proof.dialect}" if proof.dialect else ""),
                )
                for proof in report.filters
            ]
            render.show_table(_HEADERS, rows, (0, 3, 4, 5, 6))
        show_findings(report.findings)
        proven = sum(proof.is_proven for proof in report.filters)
        say(f"{report.file}: {f'{proven} of {len(report.filters)} filters proven' if report.filters else 'no filter to prove'}")

    def show_line(self, report: VerifyReport) -> None:
        show_findings(report.findings)

    def summary(self, files: str) -> str:
        return f"{files}; {self.total['verified']:,} of {self.total['filters']:,} filters proven"
