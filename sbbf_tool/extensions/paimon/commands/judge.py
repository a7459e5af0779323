"""`sbbf paimon verify` and `check`: whether indexes are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import page_limit_option
from sbbf_tool.cli.findings import show_findings, sum_up
from sbbf_tool.cli.formats import FINDING_FORMATS, Outputs, output_options
from sbbf_tool.cli.options import with_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.policy import RULE_OPTIONS
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.tables import COUNT, NAME, WORD, Heading
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.commands.options import table_options
from sbbf_tool.numbers import format_count
from sbbf_tool.rules.baseline import Baseline, read_baseline

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import PaimonVerifyReport, VerifiedColumn
    from sbbf_tool.reports.findings import CheckReport


_COLUMNS = (
    Heading("data file", NAME),
    Heading("place", WORD, 3),
    Heading("column", NAME),
    Heading("rows", COUNT, 1),
    Heading("nulls", COUNT, 2),
    Heading("false negatives", COUNT),
    Heading("result", WORD),
)
_VERIFIED = "all values found"


@click.command(cls=Command)
@click.argument("target", metavar="TABLE|FILE.index")
@click.argument("data_file", metavar="[DATAFILE]", required=False)
@table_options
@page_limit_option
@output_options()
def verify(target: str, data_file: str | None, outputs: Outputs, **options: Any) -> int:
    """Verify that an index has no false negatives: query its filters for every value of the data
    file.

    \b
    $ sbbf paimon verify orders
    $ sbbf paimon verify orders --snapshot 1

    TABLE is the folder of a table. For a single index file, DATAFILE is its data file; by default,
    the file beside it that its name refers to. Exit code 0: no false negatives; 1: false negatives;
    3: something could not be read.
    """
    from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon

    with show_progress("verifying indexes"):
        report = verify_paimon(target, data_file, **options)
    outputs.print("paimon-verify", report, _show_verify)
    return render.say_unreadable(report.problems) or int(report.has_false_negatives)


def _show_verify(page: Page, report: PaimonVerifyReport) -> None:
    rows = []
    for file in report.files:
        for column in file.columns:
            row = (
                file.data_file,
                file.place,
                column.column,
                column.rows,
                column.nulls,
                column.false_negatives,
                _format_result(column),
            )
            rows.append(row)
    page.table(_COLUMNS, rows, matters=lambda row: row[-1] != _VERIFIED)
    page.say_all(_format_false_negatives(report))
    summary = "no filter to verify"
    if rows:
        num_verified = sum(row[-1] == _VERIFIED for row in rows)
        summary = f"{num_verified:,} of {format_count(len(rows), 'filter')} verified"
    page.say(f"{report.target}: {summary}")


def _format_result(column: VerifiedColumn) -> str:
    if column.problem:
        return "not verified"
    if column.false_negatives:
        return "false negatives"
    return _VERIFIED


def _format_false_negatives(report: PaimonVerifyReport) -> Iterator[str]:
    for file in report.files:
        for column in file.columns:
            if not column.false_negatives:
                continue
            count = format_count(column.false_negatives, "false negative")
            examples = ", ".join(column.examples)
            line = f"{file.data_file}: column {column.column}: {count}, such as {examples}"
            yield f"{line}; {column.cause}" if column.cause else line


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@with_options(*RULE_OPTIONS)
@table_options
@page_limit_option
@output_options(FINDING_FORMATS)
def check(table: str, baseline: str | None, outputs: Outputs, **options: Any) -> int:
    """Check the indexes of a table against rules: for correctness, format, efficiency, and columns
    without an index.

    \b
    $ sbbf paimon check orders
    $ sbbf paimon check orders --quick --fail-on warning

    TABLE is the folder of a table. Findings name the data file and, as a fix, the command that
    resolves them. Exit code 0: no finding is at or above the severity of --fail-on; 1: at least one
    is; 2: a rule does not exist; 3: something could not be read.
    """
    from sbbf_tool.extensions.paimon.verbs.check import check_paimon

    reference = read_baseline(baseline) if baseline is not None else Baseline()
    given_options = {name: value for name, value in options.items() if value is not None}
    with show_progress("checking indexes"):
        report = reference.subtract(check_paimon(table, **given_options))
    outputs.print("paimon-check", report, _show_check)
    if baseline is not None:
        render.note(f"sbbf: {baseline} covers {format_count(reference.covered, 'finding')}")
    for place in report.unreadable:
        complain(f"sbbf: {UnreadableError(place)}")
    if report.unreadable:
        return UnreadableError.exit_code
    return int(report.failed)


def _show_check(page: Page, report: CheckReport) -> None:
    show_findings(page, report.findings, report.file)
    page.say(f"{report.file}: {sum_up(report)}")
