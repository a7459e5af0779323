"""Text output: one paragraph for each rule with findings; `grep` on the first line finds file, severity and rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sbbf_tool.cli.formats import words
from sbbf_tool.cli.output import say
from sbbf_tool.cli.spelling import spell
from sbbf_tool.reports.findings import SEVERITIES, CheckReport, Finding


class Format:
    """Output that prints each file when it is added."""

    def add(self, report: CheckReport) -> None:
        show_findings(report.findings)
        say(f"{report.file}: {_sum(report)}")

    def end(self) -> None:
        pass


def show_findings(findings: Iterable[Finding]) -> None:
    """Print the findings of one file, grouped by rule."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, rule_findings in by_rule.items():
        say(f"{rule_findings[0].file}: {rule_findings[0].severity}: {rule}")
        for line in words.in_full(rule_findings):
            say(f"    {line}")


def _sum(report: CheckReport) -> str:
    counts = Counter(outcome.outcome for outcome in report.rules)
    if counts["not run"] == len(report.rules):
        ((reason, _),) = Counter(outcome.reason for outcome in report.rules).most_common(1)
        return f"no rule ran: {spell(reason or '')}"
    count = count_findings(Counter(finding.severity for finding in report.findings))
    return f"{count}; rules: {counts['passed']} passed, {counts['failed']} failed, {counts['not run']} not run"


def count_findings(severities: Counter[str]) -> str:
    counts = [f"{count:,} {severity}{'s' if count > 1 else ''}" for severity in SEVERITIES if (count := severities[severity])]
    return ", ".join(counts) or "no findings"
