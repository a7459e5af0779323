"""Output for code scanning: SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), with one run for all files.

Each result is written at once. The notifications about files are in another array, which follows: until then they are in a temporary file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata
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
_INDENT = 2
_TAIL = "\n    }\n  ]\n}"
"""End of a document: of the run, of the array of runs and of the document."""


def open_output(name: str, run: Run, target: Target) -> Sarif:
    """Open the output of this format."""
    return Sarif(target, CATALOGS[run.view.schema])


class Sarif:
    """One document about all files."""

    def __init__(self, target: Target, rules: Sequence[Rule | IndexRule]) -> None:
        self._target, self._rules = target, rules
        self._numbers = {rule.name: at for at, rule in enumerate(rules)}
        self._notifications = target.scratch()
        self._has_begun = self._has_results = self._has_notifications = self._has_unreadable_parts = False

    def _begin(self) -> None:
        """Write the document up to the results, unless it is written: a command that fails before its first report prints nothing."""
        if self._has_begun:
            return
        self._has_begun = True
        site = _find_site()
        driver = {"name": "sbbf", "rules": [_descriptor(rule, site) for rule in self._rules]}
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}}]}
        # The document ends after the run's first member; `end` writes what is cut off.
        self._target.write(self._to_json(document, 0).removesuffix(_TAIL) + ',\n      "results": [')

    def add(self, item: Item) -> None:
        if item.report is None:
            return
        self._begin()
        report: CheckReport = item.report
        for finding in report.findings:
            self._target.write(self._item(_result(finding, self._numbers[finding.rule]), 8, is_first=not self._has_results))
            self._has_results = True
        for place in report.unreadable:
            self._notify("error", place, report.file)
            self._has_unreadable_parts = True
        if report.locked_columns:
            self._notify("warning", describe_locked(report.locked_columns), report.file)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._begin()
        success = "false" if self._has_unreadable_parts else "true"
        self._target.write("\n      ]" if self._has_results else "]")
        self._target.write(f',\n      "invocations": [\n        {{\n          "executionSuccessful": {success},\n')
        self._target.write('          "toolExecutionNotifications": [')
        self._notifications.seek(0)
        for line in self._notifications:
            self._target.write(line.decode(self._target.encoding))
        self._target.write(("\n          ]" if self._has_notifications else "]") + f"\n        }}\n      ]{_TAIL}\n")

    def _notify(self, level: str, text: str, file: str) -> None:
        notification = {"level": level, "message": {"text": text}, "locations": [{"physicalLocation": _file(file)}]}
        item = self._item(notification, 12, is_first=not self._has_notifications)
        self._notifications.write(item.encode(self._target.encoding))
        self._has_notifications = True

    def _item(self, value: dict[str, Any], indent: int, *, is_first: bool) -> str:
        """Return an item of an array, after a comma unless it is the first."""
        return f"{'' if is_first else ','}\n{' ' * indent}{self._to_json(value, indent)}"

    def _to_json(self, value: dict[str, Any], indent: int) -> str:
        # JSON escapes line ends in strings.
        return encodable_json(value, self._target.encoding, indent=_INDENT).replace("\n", f"\n{' ' * indent}")


def _find_site() -> str | None:
    """Return the address of the documentation in [project.urls], without a slash at its end."""
    try:
        entries = metadata("sbbf-tool").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    addresses = dict(entry.split(", ", 1) for entry in entries)
    return addresses["Documentation"].rstrip("/") if "Documentation" in addresses else None


def _descriptor(rule: Rule | IndexRule, site: str | None) -> dict[str, Any]:
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
