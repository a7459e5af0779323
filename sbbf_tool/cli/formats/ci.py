"""Findings for CI systems: JUnit XML for their test reports, workflow commands of GitHub Actions,
which it shows as annotations, and SARIF.

In JUnit XML, one suite is a file, and one case a rule. A case fails if its findings make the check
fail; milder findings are in the output of a passed case. Rules that did not run are skipped. Each
suite has its counts, and is written as soon as its file is checked. The root has no counts: its
start tag comes before all suites.

Code scanning takes SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), with one run
for all files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import click

from sbbf_tool.cli.findings import count_findings, describe_locked, in_full
from sbbf_tool.cli.formats import Conclusion, Item, Output
from sbbf_tool.cli.output import encodable_json
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import (
    IN_BASELINE,
    NOT_RUN,
    SEVERITIES,
    CheckReport,
    Finding,
    RuleOutcome,
)
from sbbf_tool.rules.catalog import report_rule, rules_of
from sbbf_tool.rules.rule import AnyRule

_MOST = {"error": 10, "warning": 10, "info": 9}
"""Most annotations by severity; a tenth notice is for the rest."""
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


_COUNTED_TAGS = {
    "tests": "testcase",
    "failures": "failure",
    "errors": "error",
    "skipped": "skipped",
}
"""The tag that each attribute of a suite counts."""


class Suites(Output):
    """One document about all files."""

    def begin(self) -> None:
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
        for name, tag in _COUNTED_TAGS.items():
            suite.set(name, str(sum(1 for _ in suite.iter(tag))))
        indent(suite, level=1)
        if not self._has_suites:
            self._has_suites = True
            root = _to_xml(self._root, has_declaration=True)
            self._target.write(f"{root.removesuffix(' />')}>\n")
        self._target.write(f"  {_to_xml(suite)}\n")

    def end(self, sums: Conclusion) -> None:
        if self._has_suites:
            self._target.write(f"</{self._root.tag}>\n")
        else:
            self._target.write(f"{_to_xml(self._root, has_declaration=True)}\n")


def _to_xml(element: Element, *, has_declaration: bool = False) -> str:
    # ASCII with character references is correct in every terminal encoding.
    data: bytes = tostring(element, encoding="us-ascii", xml_declaration=has_declaration)
    return data.decode("ascii")


def _case(suite: Element, report: CheckReport, outcome: RuleOutcome) -> None:
    case = SubElement(suite, "testcase", name=outcome.rule, classname=escape(report.file))
    findings = [finding for finding in report.findings if finding.rule == outcome.rule]
    if outcome.outcome in (NOT_RUN, IN_BASELINE):
        SubElement(case, "skipped", message=escape(outcome.reason or ""))
    elif findings and SEVERITIES.index(outcome.severity) <= SEVERITIES.index(report.fail_on):
        message = escape(findings[0].message)
        failure = SubElement(case, "failure", message=message, type=outcome.severity)
        failure.text = _in_full(findings)
    elif findings:
        SubElement(case, "system-out").text = _in_full(findings)


def _in_full(findings: list[Finding]) -> str:
    """Return the lines of the findings, escaped, because XML has no control characters but names
    may contain them."""
    return "\n".join(escape(line) for line in in_full(findings))


def _gaps_of(report: CheckReport) -> Iterator[tuple[str, str, str]]:
    """Yield what could not be checked: severity, title and text."""
    for place in report.unreadable:
        yield "error", "unreadable", place
    if report.locked_columns:
        yield "warning", "locked columns", describe_locked(report.locked_columns)


class Annotations(Output):
    """The first annotations of each kind, the errors first, and a line for the rest: GitHub shows
    ten of each kind per step.

    GitHub, "Workflow commands", `::error`.
    """

    def begin(self) -> None:
        self._command = click.get_current_context().command_path
        self._lines: dict[str, list[str]] = {command: [] for command in _MOST}
        self._rest: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        report: CheckReport | None = item.report
        if report is None:
            return
        for finding in report.findings:
            self._annotate(finding.severity, finding.file, finding.rule, *in_full([finding]))
        for severity, title, text in _gaps_of(report):
            self._annotate(severity, report.file, title, text)

    def end(self, sums: Conclusion) -> None:
        for lines in self._lines.values():
            for line in lines:
                self._target.write(line)
        if self._rest:
            counts = count_findings(self._rest)
            self._target.write(
                f"::notice title={self._command}::Not shown here: {counts}. {self._command} "
                "--format markdown lists them by rule.\n"
            )

    def _annotate(self, severity: str, file: str, title: str, *message: str) -> None:
        lines = self._lines[severity]
        if len(lines) == _MOST[severity]:
            self._rest[severity] += 1
            return
        text = "%0A".join(map(_data, message))
        properties = f"file={_property(file)},title={_property(title)}"
        lines.append(f"::{_COMMANDS[severity]} {properties}::{text}\n")


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_WORST_FIRST = tuple(_LEVELS.values())
_INDENT = 2
MOST_RESULTS = 25_000
"""What GitHub takes in one run. The mildest of more are left out, and counted."""


class Sarif(Output):
    """One document about all files."""

    def begin(self) -> None:
        self._rules = rules_of(self._view.schema)
        self._numbers = {rule.name: at for at, rule in enumerate(self._rules)}
        self._results: list[dict[str, Any]] = []
        self._notifications: list[dict[str, Any]] = []
        self._left_out = 0
        """Number of findings and notifications that are not in the document."""
        self._is_complete = True

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        report: CheckReport = item.report
        for finding in report.findings:
            self._results.append(_result(finding, self._numbers[finding.rule]))
        self._is_complete &= not report.unreadable
        for level, _, text in _gaps_of(report):
            location = {"physicalLocation": _file(report.file)}
            notification = {"level": level, "message": {"text": text}, "locations": [location]}
            self._notifications.append(notification)
        if max(len(self._results), len(self._notifications)) >= 2 * MOST_RESULTS:
            self._keep_worst()

    def end(self, sums: Conclusion) -> None:
        self._keep_worst()
        if self._left_out:
            text = (
                f"{self._left_out:,} results and notifications that are no worse are left "
                f"out: code scanning takes {MOST_RESULTS:,}"
            )
            self._notifications.append({"level": "warning", "message": {"text": text}})
        site = _find_site()
        driver = {"name": "sbbf", "rules": [_descriptor(rule, site) for rule in self._rules]}
        invocation = {
            "executionSuccessful": self._is_complete,
            "toolExecutionNotifications": self._notifications,
        }
        run = {"tool": {"driver": driver}, "results": self._results, "invocations": [invocation]}
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        # JSON escapes line ends in strings.
        self._target.write(encodable_json(document, self._target.encoding, indent=_INDENT) + "\n")

    def _keep_worst(self) -> None:
        """Leave out the mildest results and notifications beyond the limit, to bound memory."""
        for items in (self._results, self._notifications):
            if len(items) > MOST_RESULTS:
                self._left_out += len(items) - MOST_RESULTS
                items.sort(key=lambda item: _WORST_FIRST.index(item["level"]))
                del items[MOST_RESULTS:]


def _find_site() -> str | None:
    """Return the address of the documentation in [project.urls], without a slash at its end."""
    try:
        entries = metadata("sbbf-tool").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    for entry in entries:
        label, address = entry.split(", ", 1)
        if label == "Documentation":
            return str(address).rstrip("/")
    return None


def _descriptor(rule: AnyRule, site: str | None) -> dict[str, Any]:
    lines = [escape(line) for line in report_rule(rule).explanation]
    descriptor = {
        "id": rule.name,
        "shortDescription": {"text": rule.message},
        "fullDescription": {"text": rule.why},
        "help": {"text": "\n".join(lines), "markdown": "\n\n".join(map(_with_code, lines))},
    }
    if site:
        descriptor["helpUri"] = f"{site}/reference/rules.html#{rule.name}"
    descriptor["defaultConfiguration"] = {"level": _LEVELS[rule.severity]}
    descriptor["properties"] = {"tags": [rule.group]}
    return descriptor


def _with_code(line: str) -> str:
    """Return a line in Markdown: a command or an example as code."""
    label, colon, text = line.partition(": ")
    is_code = label in ("example", "fix") and "`" not in text
    return f"**{label}:** `{text}`" if colon and is_code else line


def _result(finding: Finding, rule_number: int) -> dict[str, Any]:
    names = [
        f"{finding.column}[row group {evidence.row_group}]"
        for evidence in finding.evidence
        if evidence.row_group is not None
    ]
    if not names:
        names = [finding.column or finding.file]
    location = {
        # Code scanning does not show results without a line.
        "physicalLocation": {**_file(finding.file), "region": {"startLine": 1}},
        "logicalLocations": [{"fullyQualifiedName": name, "kind": "member"} for name in names],
    }
    fix = command_of(finding.fix) if finding.fix else None
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_number,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(in_full([finding]))},
        "locations": [location],
        "partialFingerprints": {"ruleAndColumn/v1": f"{finding.rule}:{finding.column}"},
        "properties": {"fix": fix},
    }


def _file(name: str) -> dict[str, Any]:
    return {"artifactLocation": {"uri": quote(os.fsencode(name))}}
