"""`sbbf verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.cli import render
from sbbf_tool.cli.files import (
    Files,
    columns_option,
    over_files,
    page_limit_option,
    state_option,
    strict_option,
)
from sbbf_tool.cli.findings import list_gaps, show_findings
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import VIEW
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.tables import COUNT, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.errors import UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import FilterVerification, VerifyReport


def _result(verification: FilterVerification) -> str:
    if verification.problem is not None:
        return verification.problem
    result = "verified" if verification.is_verified else "false negatives"
    return f"{result}, as {verification.dialect}" if verification.dialect else result


_COLUMNS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("type", WORD, 4),
    Heading("values", COUNT, 3, "verified_values"),
    Heading("false negatives", COUNT),
    Heading("fpp", RATE, 2, "estimated_fpp"),
    Heading("measured fpp", RATE, 5),
    Heading("result", SENTENCE, of=_result),
)


class _ColumnSum(NamedTuple):
    """The filters of one column of a file."""

    column: str
    type: str
    values: int
    false_negatives: int
    measured_fpp: float | None
    """The mean over its filters."""
    result: str


_SUMS = (
    Heading("column", NAME),
    Heading("type", WORD, 3),
    Heading("values", COUNT, 2),
    Heading("false negatives", COUNT),
    Heading("measured fpp", RATE),
    Heading("result", SENTENCE),
)


@over_files(
    columns_option("Only this column"),
    VIEW.flag("--row-groups", "Print a line per filter, not per column."),
    strict_option,
    page_limit_option,
    state_option,
)
def command(files: Files, columns: tuple[str, ...], row_groups: bool) -> int:
    """Verify the filters of files against their data: each filter is queried for every value of its
    column chunk.

    \b
    $ sbbf verify events.parquet
    $ sbbf verify lake --state lake.state

    The command reports false negatives, with their cause if it is known; the false-positive rate,
    measured with absent values; and defects of the offset, header, length and size. Exit code 0: no
    filter contradicts its data or the format; 1: a filter does; 3: something could not be read, or
    the key of a column is missing.
    """
    from sbbf_tool.verbs.verify import Verify

    return report_files(files.outputs, files.plan(Verify(columns)), _VerifyView(row_groups))


class _VerifyView(View["VerifyReport"]):
    sums = ("filters", "verified")

    def __init__(self, has_row_groups: bool) -> None:
        super().__init__()
        self._has_row_groups = has_row_groups

    def add(self, report: VerifyReport, row: Row[object]) -> int:
        self.total.update(
            filters=len(report.filters),
            verified=sum(verification.is_verified for verification in report.filters),
        )
        error_code = render.say_unreadable([(row.path, None, place) for place in report.unreadable])
        if error_code or not report.is_sound:
            return error_code or 1
        if not report.locked_columns:
            return 0
        complain(
            f"sbbf: {row.path}: the filters of locked columns were not verified: "
            f"{', '.join(report.locked_columns)}; give --keys"
        )
        return UnreadableError.exit_code

    def show(self, page: Page, report: VerifyReport) -> None:
        if self._has_row_groups:
            page.table(_COLUMNS, report.filters, matters=lambda row: not row.is_verified)
        else:
            page.table(_SUMS, _sum_up(report.filters))
            page.table(_COLUMNS, [row for row in report.filters if not row.is_verified])
        show_findings(page, report.findings)
        verified = sum(verification.is_verified for verification in report.filters)
        filters = _count_verified(verified, len(report.filters))
        page.say(f"{report.file}: {filters}{list_gaps(report.locked_columns)}")

    def show_line(self, page: Page, report: VerifyReport) -> None:
        show_findings(page, report.findings)

    def show_end(self, page: Page, files: str) -> None:
        page.say(f"{files}; {_count_verified(self.total['verified'], self.total['filters'])}")


def _sum_up(filters: Iterable[FilterVerification]) -> Iterator[_ColumnSum]:
    """Yield a row for each column, in the order of the columns."""
    columns = render.group(((row.column, row.type), row) for row in filters)
    for (column, type_name), rows in columns.items():
        sums = Counter[str]()
        rates = []
        dialects: dict[str, None] = {}
        for row in rows:
            sums["values"] += row.verified_values
            sums["false negatives"] += row.false_negatives
            sums["verified"] += row.is_verified
            if row.measured_fpp is not None:
                rates.append(row.measured_fpp)
            if row.dialect is not None:
                dialects[row.dialect] = None
        result = _count_verified(sums["verified"], len(rows))
        if dialects:
            result += f", as {', '.join(dialects)}"
        yield _ColumnSum(
            column,
            type_name,
            sums["values"],
            sums["false negatives"],
            sum(rates) / len(rates) if rates else None,
            result,
        )


def _count_verified(verified: int, filters: int) -> str:
    if not filters:
        return "no filter to verify"
    return f"{verified:,} of {format_count(filters, 'filter')} verified"
