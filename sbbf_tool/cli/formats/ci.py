"""Findings for CI systems: JUnit XML for their test reports, and workflow commands of GitHub Actions, which it shows as annotations.

In JUnit XML, one suite is a file, and one case a rule. A case fails if its findings make the check fail; milder findings are in the output
of a passed case. Rules that did not run are skipped. Each suite has its counts, and is written as soon as its file is checked. The root has
no counts: its start tag comes before all suites.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import click

from sbbf_tool.cli.findings import count_findings, describe_locked, in_full
from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import OutputTarget
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import SEVERITIES, CheckReport, Finding, RuleOutcome

_MOST = {"error": 10, "warning": 10, "info": 9}
"""Most annotations by severity; a tenth notice is for the rest."""
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


class Suites:
    """One document about all files."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._target = target
        self._root = Element("testsuites", name=click.get_current_context().command_path)
        self._has_suites = False

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        report: CheckReport = item.report
        suite = Element("testsuite", name=escape(report.file))
        for outcome in report.rules:
            _case(suite, report, outcome)
        for place in report.unreadable:
            case = SubElement(suite, "testcase", name="readable", classname=escape(report.file))
            SubElement(case, "error", message=escape(place), type="unreadable")
        if report.locked_columns:
            case = SubElement(suite, "testcase", name="unlocked", classname=escape(report.file))
            SubElement(case, "skipped", message=escape(describe_locked(report.locked_columns)))
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(sum(1 for _ in suite.iter(tag))))
        indent(suite, level=1)
        if not self._has_suites:
            self._has_suites = True
            self._target.write(_to_xml(self._root, has_declaration=True).removesuffix(" />") + ">\n")
        self._target.write(f"  {_to_xml(suite)}\n")

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._target.write(f"</{self._root.tag}>\n" if self._has_suites else _to_xml(self._root, has_declaration=True) + "\n")


def _to_xml(element: Element, *, has_declaration: bool = False) -> str:
    # ASCII with character references is correct in every terminal encoding.
    data: bytes = tostring(element, encoding="us-ascii", xml_declaration=has_declaration)
    return data.decode("ascii")


def _case(suite: Element, report: CheckReport, outcome: RuleOutcome) -> None:
    case = SubElement(suite, "testcase", name=outcome.rule, classname=escape(report.file))
    findings = [finding for finding in report.findings if finding.rule == outcome.rule]
    if outcome.outcome in ("not run", "known"):
        SubElement(case, "skipped", message=escape(outcome.reason or ""))
    elif findings and SEVERITIES.index(outcome.severity) <= SEVERITIES.index(report.fail_on):
        failure = SubElement(case, "failure", message=escape(findings[0].message), type=outcome.severity)
        failure.text = _in_full(findings)
    elif findings:
        SubElement(case, "system-out").text = _in_full(findings)


def _in_full(findings: list[Finding]) -> str:
    """Return the lines of the findings, escaped, because XML has no control characters but names may contain them."""
    return "\n".join(escape(line) for line in in_full(findings))


class Annotations:
    """The first annotations of each kind, the errors first, and a line for the rest: GitHub shows ten of each kind per step.

    GitHub, "Workflow commands", `::error`.
    """

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._target, self._command = target, click.get_current_context().command_path
        self._lines: dict[str, list[str]] = {command: [] for command in _MOST}
        self._rest: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        if report is None:
            return
        for finding in report.findings:
            self._annotate(finding.severity, finding.file, finding.rule, *in_full([finding]))
        for place in report.unreadable:
            self._annotate("error", report.file, "unreadable", place)
        if report.locked_columns:
            self._annotate("warning", report.file, "locked columns", describe_locked(report.locked_columns))

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        for lines in self._lines.values():
            for line in lines:
                self._target.write(line)
        if self._rest:
            counts = count_findings(self._rest)
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
