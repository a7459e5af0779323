"""Output for GitHub Actions: workflow commands, which GitHub shows as annotations (GitHub, "Workflow commands", `::error`)."""

from __future__ import annotations

from typing import Any

from sbbf_tool.cli import findings
from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import Target
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def open_output(name: str, run: Run, target: Target) -> Annotations:
    """Open the output of this format."""
    return Annotations(target)


class Annotations:
    """Output that prints each file when it is added."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        for finding in report.findings if report is not None else ():
            self._annotate(_COMMANDS[finding.severity], finding.file, finding.rule, *findings.in_full([finding]))
        for place in report.unreadable if report is not None else ():
            self._annotate("error", item.document["file"], "unreadable", place)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        pass

    def _annotate(self, command: str, file: str, title: str, *message: str) -> None:
        self._target.write(f"::{command} file={_property(file)},title={_property(title)}::{'%0A'.join(map(_data, message))}\n")


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
