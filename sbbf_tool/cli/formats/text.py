"""For people: a finding a paragraph, its first line such that an editor or `grep` finds the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click

from sbbf_tool.cli import one_line
from sbbf_tool.cli.formats import words
from sbbf_tool.reports import SEVERITIES, CheckReport, Finding


class Format:
    """File by file; a sum where there were several."""

    def __init__(self) -> None:
        self._files = 0
        self._findings: Counter[str] = Counter()

    def add(self, report: CheckReport) -> None:
        self._files += 1
        self._findings.update(finding.severity for finding in report.findings)
        show_findings(report.findings)
        for place in report.unread:
            click.echo(one_line(f"{report.file}: could not be read: {place}"))
        outcomes = Counter(outcome.outcome for outcome in report.rules)
        rules = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "not run"))
        click.echo(one_line(f"{report.file}: {_counted(Counter(finding.severity for finding in report.findings))}; rules: {rules}"))

    def end(self) -> None:
        if self._files > 1:
            click.echo(f"{self._files:,} files: {_counted(self._findings)}")


def show_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        click.echo(one_line(f"{finding.file}: {words.place(finding)}: {finding.severity}: {finding.rule}"))
        for line in words.in_full(finding).splitlines():
            click.echo(f"    {one_line(line)}")


def _counted(severities: Counter[str]) -> str:
    counted = [f"{count:,} {severity}{'s' if count > 1 else ''}" for severity in SEVERITIES if (count := severities[severity])]
    return ", ".join(counted) or "no findings"
