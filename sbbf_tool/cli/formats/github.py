"""Output for GitHub Actions: workflow commands, which GitHub shows as annotations (GitHub, "Workflow commands", `::error`)."""

from __future__ import annotations

import click

from sbbf_tool.cli.formats import words
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


class Format:
    """Output that prints each file when it is added."""

    def add(self, report: CheckReport) -> None:
        for finding in report.findings:
            _annotate(_COMMANDS[finding.severity], report.file, finding.rule, *words.in_full([finding]))
        for place in report.unreadable:
            _annotate("error", report.file, "unreadable", place)

    def end(self) -> None:
        pass


def _annotate(command: str, file: str, title: str, *message: str) -> None:
    click.echo(f"::{command} file={_property(file)},title={_property(title)}::{'%0A'.join(map(_data, message))}")


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
