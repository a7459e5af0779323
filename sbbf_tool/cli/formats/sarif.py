"""Output for code scanning: SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), with one run for all files."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any
from urllib.parse import quote

from sbbf_tool.cli.findings import describe_locked, in_full
from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import OutputTarget
from sbbf_tool.cli.output import encodable_json
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.display import escape
from sbbf_tool.reports.findings import CheckReport, Finding
from sbbf_tool.rules.catalog import report_rule, rules_of
from sbbf_tool.rules.rule import AnyRule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_WORST_FIRST = tuple(_LEVELS.values())
_INDENT = 2
MOST_RESULTS = 25_000
"""What GitHub takes in one run. The mildest of more are left out, and counted."""


class Sarif:
    """One document about all files."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._target, self._rules = target, rules_of(view.schema)
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
        self._results += [_result(finding, self._numbers[finding.rule]) for finding in report.findings]
        self._notifications += [_notification("error", place, report.file) for place in report.unreadable]
        self._is_complete &= not report.unreadable
        if report.locked_columns:
            self._notifications.append(_notification("warning", describe_locked(report.locked_columns), report.file))
        if max(len(self._results), len(self._notifications)) >= 2 * MOST_RESULTS:
            self._keep_worst()

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._keep_worst()
        if self._left_out:
            text = f"{self._left_out:,} results and notifications that are no worse are left out: code scanning takes {MOST_RESULTS:,}"
            self._notifications.append({"level": "warning", "message": {"text": text}})
        site = _find_site()
        driver = {"name": "sbbf", "rules": [_descriptor(rule, site) for rule in self._rules]}
        invocation = {"executionSuccessful": self._is_complete, "toolExecutionNotifications": self._notifications}
        run = {"tool": {"driver": driver}, "results": self._results, "invocations": [invocation]}
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        # JSON escapes line ends in strings.
        self._target.write(encodable_json(document, self._target.encoding, indent=_INDENT) + "\n")

    def _keep_worst(self) -> None:
        """Leave out the mildest results and notifications beyond the limit, so that memory is bounded."""
        for items in (self._results, self._notifications):
            if len(items) > MOST_RESULTS:
                self._left_out += len(items) - MOST_RESULTS
                items.sort(key=lambda item: _WORST_FIRST.index(item["level"]))
                del items[MOST_RESULTS:]


def _notification(level: str, text: str, file: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, "locations": [{"physicalLocation": _file(file)}]}


def _find_site() -> str | None:
    """Return the address of the documentation in [project.urls], without a slash at its end."""
    try:
        entries = metadata("sbbf-tool").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    addresses = dict(entry.split(", ", 1) for entry in entries)
    return addresses["Documentation"].rstrip("/") if "Documentation" in addresses else None


def _descriptor(rule: AnyRule, site: str | None) -> dict[str, Any]:
    lines = [escape(line) for line in report_rule(rule).explanation]
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.message},
        "fullDescription": {"text": rule.why},
        "help": {"text": "\n".join(lines), "markdown": "\n\n".join(map(_with_code, lines))},
        **({"helpUri": f"{site}/reference/rules.html#{rule.name}"} if site else {}),
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
