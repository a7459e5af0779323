"""`sbbf check`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import formats, render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.policy import policy_options
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.findings import SEVERITIES
from sbbf_tool.reports.rows import OK, FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport


@click.command(cls=Command, short_help="Check filters against rules, as a gate for CI.")
@policy_options
@page_limit_option
@click.option("--format", "form", type=click.Choice(formats.NAMES), default="text", show_default=True, help="Format of the findings.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document per file and, for several files, a summary. The same as --format json."
)
@click.option("--list-rules", is_flag=True, help="List all rules and exit.")
@over_files()
def command(files: Files, form: str, as_json: bool, max_page_bytes: int | None, list_rules: bool, **options: Any) -> int:
    """Check the filters of files against rules: for correctness, format, encryption and efficiency.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL. Exit code
    0: no finding is at or above the severity of --fail-on; 1: at least one is; 2: a rule, column or setting does not exist; 3:
    something could not be read.
    """
    from sbbf_tool.cli import policy

    form = "json" if as_json else form
    if list_rules:
        policy.show_rules(as_json=form == "json")
        return 0
    from sbbf_tool.operations.check import ensure_columns
    from sbbf_tool.runner import works

    chosen = policy.from_options(click.get_current_context(), options)
    ensure_columns((file.path for file in files.selection.files()), chosen, files.keys)
    work = works.check(chosen, keys=files.keys, max_page_bytes=max_page_bytes)
    if form == "json":
        return report_files(files, work, _CheckView(None, form), as_json=True)
    with formats.open_format(form) as output:
        return report_files(files, work, _CheckView(output, form), as_json=False)


class _CheckView(View["CheckReport"]):
    schema = "check"

    def __init__(self, output: formats.Format | None, form: str) -> None:
        super().__init__()
        self._output = output
        self._form = form
        self._findings: Counter[str] = Counter()
        self._unchecked = 0

    def add(self, report: CheckReport, row: FileRow) -> int:
        self._findings.update(finding.severity for finding in report.findings)
        self._unchecked += row.status == OK and all(outcome.outcome == "not run" for outcome in report.rules)
        for place in report.unreadable if row.status == OK else ():
            say(f"sbbf: {UnreadableError(place, file=row.path)}", err=True)
        return max(int(report.failed), UnreadableError.exit_code if report.unreadable and row.status == OK else 0)

    def show(self, report: CheckReport) -> None:
        assert self._output is not None, "JSON is printed as documents"
        self._output.add(report)

    def show_line(self, report: CheckReport) -> None:
        if report.findings or report.unreadable or self._form != "text":
            self.show(report)

    def summary(self, files: str) -> str | None:
        from sbbf_tool.cli.formats.text import count_findings

        unchecked = f"; no rule ran on {render.format_count(self._unchecked, 'file')}" if self._unchecked else ""
        return f"{files}; {count_findings(self._findings)}{unchecked}" if self._form == "text" else None

    def totals(self) -> dict[str, Any]:
        return {"findings": {severity: self._findings[severity] for severity in SEVERITIES}, "files_not_checked": self._unchecked}
