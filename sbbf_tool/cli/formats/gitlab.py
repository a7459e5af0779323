"""GitLab's code quality report: one JSON array with an issue per finding (GitLab, "Code Quality report format")."""

from __future__ import annotations

import hashlib
from typing import Any

from sbbf_tool.cli.findings import describe_locked, in_full
from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import Target
from sbbf_tool.cli.output import encodable_json
from sbbf_tool.reports.findings import CheckReport

_SEVERITIES = {"error": "critical", "warning": "minor", "info": "info"}


def open_output(name: str, run: Run, target: Target) -> Issues:
    """Open the output of this format."""
    return Issues(target)


class Issues:
    """One array about all files, an issue per line."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._start = "["

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        for finding in report.findings if report is not None else ():
            key = f"{finding.rule}:{finding.file}:{finding.column}"
            self._issue(finding.rule, _SEVERITIES[finding.severity], finding.file, "\n".join(in_full([finding])), key)
        for place in report.unreadable if report is not None else ():
            self._issue("unreadable", "blocker", item.document["file"], place, f"unreadable:{item.document['file']}:{place}")

        if report is not None and report.locked_columns:
            text = describe_locked(report.locked_columns)
            self._issue("locked-columns", "info", report.file, text, f"locked-columns:{report.file}")

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._target.write("[]\n" if self._start == "[" else "]\n")

    def _issue(self, rule: str, severity: str, file: str, description: str, key: str) -> None:
        issue = {
            "check_name": rule,
            "description": description,
            "fingerprint": hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest(),
            "severity": severity,
            # GitLab shows no issue without a line.
            "location": {"path": file, "lines": {"begin": 1}},
        }
        self._target.write(f"{self._start}{encodable_json(issue, self._target.encoding)}\n")
        self._start = ","
