"""Output for GitHub Actions: workflow commands, which GitHub shows as annotations (GitHub, "Workflow commands", `::error`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from sbbf_tool.cli import findings
from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import OutputTarget
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport

_MOST = {"error": 10, "warning": 10, "info": 9}
"""Most annotations by severity; a tenth notice is for the rest."""
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


class Annotations:
    """The first annotations of each kind, the errors first, and a line for the rest: GitHub shows ten of each kind per step."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._target, self._command = target, click.get_current_context().command_path
        self._lines: dict[str, list[str]] = {command: [] for command in _MOST}
        self._rest: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        if report is None:
            return
        for finding in report.findings:
            self._annotate(finding.severity, finding.file, finding.rule, *findings.in_full([finding]))
        for place in report.unreadable:
            self._annotate("error", report.file, "unreadable", place)
        if report.locked_columns:
            self._annotate("warning", report.file, "locked columns", findings.describe_locked(report.locked_columns))

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        for lines in self._lines.values():
            for line in lines:
                self._target.write(line)
        if self._rest:
            counts = findings.count_findings(self._rest)
            self._target.write(
                f"::notice title={self._command}::Not shown here: {counts}. {self._command} --format markdown lists them by rule.\n"
            )

    def _annotate(self, severity: str, file: str, title: str, *message: str) -> None:
        lines = self._lines[severity]
        if len(lines) == _MOST[severity]:
            self._rest[severity] += 1
            return
        text = "%0A".join(map(_data, message))
        lines.append(f"::{_COMMANDS[severity]} file={_property(file)},title={_property(title)}::{text}\n")


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
