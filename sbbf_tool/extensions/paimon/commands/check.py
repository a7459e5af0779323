"""`sbbf paimon check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.baseline import Baseline, read_baseline
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import page_limit_option
from sbbf_tool.cli.findings import show_findings, sum_up
from sbbf_tool.cli.formats import FINDING_FORMATS, Outputs, output_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.policy import rule_options
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.commands.options import table_options
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@rule_options
@table_options
@page_limit_option
@output_options(FINDING_FORMATS)
def command(table: str, baseline: str | None, outputs: Outputs, **options: Any) -> int:
    """Check the indexes of a table against rules: for correctness, format, efficiency, and columns without an index.

    \b
    $ sbbf paimon check orders
    $ sbbf paimon check orders --quick --fail-on warning

    TABLE is the folder of a table. Findings name the data file and, as a fix, the command that resolves them. Exit code 0: no finding is at
    or above the severity of --fail-on; 1: at least one is; 2: a rule does not exist; 3: something could not be read.
    """
    from sbbf_tool.extensions.paimon.verbs.check import check_paimon

    reference = read_baseline(baseline) if baseline is not None else Baseline()
    with show_progress("checking indexes"):
        report = reference.subtract(check_paimon(table, **{name: value for name, value in options.items() if value is not None}))
    outputs.print("paimon-check", report, _show_report)
    if baseline is not None:
        render.note(f"sbbf: {baseline} covers {format_count(reference.covered, 'finding')}")
    for place in report.unreadable:
        complain(f"sbbf: {UnreadableError(place)}")
    return max(int(report.failed), UnreadableError.exit_code if report.unreadable else 0)


def _show_report(page: Page, report: CheckReport) -> None:
    show_findings(page, report.findings, report.file)
    page.say(f"{report.file}: {sum_up(report)}")
