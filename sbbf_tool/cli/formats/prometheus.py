"""Metrics for Prometheus in its text format, as a file that node_exporter's textfile collector reads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import Target
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.rules.catalog import CATALOGS
from sbbf_tool.rules.index_rules import IndexRule
from sbbf_tool.rules.rule import Rule

_LABEL = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def open_output(name: str, run: Run, target: Target) -> Metrics:
    """Open the output of this format."""
    return Metrics(target, CATALOGS[run.view.schema])


class Metrics:
    """The numbers of all files together; labels are rules and severities, so that the number of series is bounded."""

    def __init__(self, target: Target, rules: Sequence[Rule | IndexRule]) -> None:
        self._target = target
        self._findings: Counter[tuple[str, str]] = Counter({(rule.name, rule.severity): 0 for rule in rules})
        self._locked = 0
        self._files: Counter[str] = Counter(dict.fromkeys(("passed", "failed", "unreadable"), 0))

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        self._files["unreadable" if report is None or report.unreadable else "failed" if report.failed else "passed"] += 1
        self._locked += report is not None and bool(report.locked_columns)
        if report is not None:
            self._findings.update((finding.rule, finding.severity) for finding in report.findings)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._write("sbbf_check_files", "Files by outcome of the check.", {(("outcome", name),): n for name, n in self._files.items()})
        self._write(
            "sbbf_check_files_with_locked_columns", "Files with columns that were not checked for lack of a key.", {(): self._locked}
        )
        findings = {(("rule", rule), ("severity", severity)): n for (rule, severity), n in self._findings.items()}
        self._write("sbbf_check_findings", "Findings by rule.", findings)
        self._write("sbbf_check_time_seconds", "When the check ended, in seconds since 1970.", {(): round(time.time(), 3)})

    def _write(self, name: str, description: str, values: Mapping[Any, float]) -> None:
        self._target.write(f"# HELP {name} {description}\n# TYPE {name} gauge\n")
        for labels, value in values.items():
            text = ",".join(f'{label}="{escape(text).translate(_LABEL)}"' for label, text in labels)
            self._target.write(f"{name}{f'{{{text}}}' if text else ''} {value}\n")
