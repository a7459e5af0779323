"""`sbbf verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import keeps_state
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files, page_limit_option, strict_option
from sbbf_tool.cli.findings import list_locked, show_findings
from sbbf_tool.cli.formats import Outputs, View, output_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.tables import COUNT, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.errors import UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.reports.verify import FilterVerification, VerifyReport

_COLUMNS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("type", WORD, 4),
    Heading("values", COUNT, 3),
    Heading("false negatives", COUNT, 1),
    Heading("fpp", RATE, 2),
    Heading("measured fpp", RATE, 5),
    Heading("result", SENTENCE),
)
_VERIFIED = "verified"


@click.command(cls=Command)
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@strict_option
@page_limit_option
@output_options()
@over_files()
@keeps_state
def command(
    files: Files,
    columns: tuple[str, ...],
    max_page_bytes: int | None,
    strict: bool,
    outputs: Outputs,
) -> int:
    """Verify the filters of files against their data: each filter is queried for every value of its column chunk.

    \b
    $ sbbf verify events.parquet
    $ sbbf verify lake --state lake.state

    The command reports false negatives, with their cause if it is known; the false-positive rate, measured with absent values; and defects
    of the offset, header, length and size. Exit code 0: no filter contradicts its data or the format; 1: a filter does; 3: something could
    not be read, or the key of a column is missing.
    """
    from sbbf_tool.running.work import Work
    from sbbf_tool.verbs.verify import Verify

    work = Work(Verify(columns), keys=files.keys, max_page_bytes=max_page_bytes, strict=files.is_strict(strict))
    return report_files(files, work, _VerifyView(), outputs, columns)


class _VerifyView(View["VerifyReport"]):
    schema = "verify"
    sums = ("filters", "verified")

    def add(self, report: VerifyReport, row: Row[object]) -> int:
        self.total.update(filters=len(report.filters), verified=sum(verification.is_verified for verification in report.filters))
        if code := render.say_unreadable([(row.path, None, place) for place in report.unreadable]):
            return code
        if not report.is_sound:
            return 1
        if report.locked_columns:
            complain(f"sbbf: {row.path}: the filters of locked columns were not verified: {', '.join(report.locked_columns)}; give --keys")
        return UnreadableError.exit_code if report.locked_columns else 0

    def show(self, page: Page, report: VerifyReport) -> None:
        rows = [
            (
                *(verification.row_group, verification.column, verification.type),
                *(verification.verified_values, verification.false_negatives, verification.estimated_fpp, verification.measured_fpp),
                _result(verification),
            )
            for verification in report.filters
        ]
        page.table(_COLUMNS, rows, matters=lambda row: not str(row[-1]).startswith(_VERIFIED))
        show_findings(page, report.findings)
        verified = sum(verification.is_verified for verification in report.filters)
        page.say(f"{report.file}: {_count_verified(verified, len(report.filters))}{list_locked(report.locked_columns)}")

    def show_line(self, page: Page, report: VerifyReport) -> None:
        show_findings(page, report.findings)

    def show_end(self, page: Page, files: str) -> None:
        page.say(f"{files}; {_count_verified(self.total['verified'], self.total['filters'])}")


def _count_verified(verified: int, filters: int) -> str:
    return f"{verified:,} of {format_count(filters, 'filter')} verified" if filters else "no filter to verify"


def _result(verification: FilterVerification) -> str:
    if verification.problem is not None:
        return verification.problem
    result = _VERIFIED if verification.is_verified else "false negatives"
    return f"{result}, as {verification.dialect}" if verification.dialect else result
