"""Output for code scanning: SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), with one run for all files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from sbbf_tool.cli.findings import describe_locked, in_full
from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import Target
from sbbf_tool.cli.output import encodable_json
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport, Finding
from sbbf_tool.rules.catalog import CATALOGS, report_rule
from sbbf_tool.rules.index_rules import IndexRule
from sbbf_tool.rules.rule import Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def open_output(name: str, run: Run, target: Target) -> Sarif:
    """Open the output of this format."""
    return Sarif(target, CATALOGS[run.view.schema])


class Sarif:
    """One document about all files."""

    def __init__(self, target: Target, rules: Sequence[Rule | IndexRule]) -> None:
        self._target = target
        self._rules = rules
        self._numbers = {rule.name: at for at, rule in enumerate(rules)}
        self._results: list[dict[str, Any]] = []
        self._unreadable: list[dict[str, Any]] = []
        self._locked: list[dict[str, Any]] = []

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        report: CheckReport = item.report
        self._results += [_result(finding, self._numbers[finding.rule]) for finding in report.findings]
        where = [{"physicalLocation": _file(report.file)}]
        if report.locked_columns:
            text = describe_locked(report.locked_columns)
            self._locked.append({"level": "warning", "message": {"text": text}, "locations": where})
        self._unreadable += [{"level": "error", "message": {"text": place}, "locations": where} for place in report.unreadable]

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        driver = {"name": "sbbf", "rules": [_descriptor(rule) for rule in self._rules]}
        run = {
            "tool": {"driver": driver},
            "invocations": [
                {"executionSuccessful": not self._unreadable, "toolExecutionNotifications": [*self._unreadable, *self._locked]}
            ],
            "results": self._results,
        }
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        self._target.write(encodable_json(document, self._target.encoding, indent=2) + "\n")


def _descriptor(rule: Rule | IndexRule) -> dict[str, Any]:
    lines = [escape(line) for line in report_rule(rule).explanation]
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.message},
        "fullDescription": {"text": rule.why},
        "help": {"text": "\n".join(lines), "markdown": "\n\n".join(map(_with_code, lines))},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.group]},
    }


def _with_code(line: str) -> str:
    """Return a line in Markdown: a command or an example as code."""
    label, colon, text = line.partition(": ")
    return f"**{label}:** `{text}`" if colon and label in ("example", "fix") and "`" not in text else line


def _result(finding: Finding, rule_number: int) -> dict[str, Any]:
    numbers = [evidence.row_group for evidence in finding.evidence if evidence.row_group is not None]
    names = [f"{finding.column}[row group {number}]" for number in numbers] or [finding.column or finding.file]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_number,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(in_full([finding]))},
        "locations": [
            {
                # Code scanning does not show results without a line.
                "physicalLocation": {**_file(finding.file), "region": {"startLine": 1}},
                "logicalLocations": [{"fullyQualifiedName": name, "kind": "member"} for name in names],
            }
        ],
        "partialFingerprints": {"ruleAndColumn/v1": f"{finding.rule}:{finding.column}"},
        "properties": {"fix": command_of(finding.fix) if finding.fix else None},
    }


def _file(name: str) -> dict[str, Any]:
    return {"artifactLocation": {"uri": quote(os.fsencode(name))}}
