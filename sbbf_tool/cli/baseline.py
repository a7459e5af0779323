"""The findings of an earlier `sbbf check`, from its saved report: later runs fail on other findings only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import named
from sbbf_tool.frozen import replace
from sbbf_tool.reports.plain import escape_bytes

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport

_MOST_BYTES = 1 << 30


class Baseline:
    """Findings, each known by its file, rule and column, as a Parquet report has them: bytes that are not UTF-8 are escaped."""

    def __init__(self, findings: Iterable[tuple[str, str, str | None]] = ()) -> None:
        self._keys = {_key(*finding) for finding in findings}
        self.covered = 0
        """Findings that `subtract` has removed."""

    def subtract(self, report: CheckReport) -> CheckReport:
        """Return the report of a file without the findings of the baseline; the outcome of a rule without other findings is `known`."""
        from sbbf_tool.reports.findings import SEVERITIES
        from sbbf_tool.verbs.check import FAILED, IN_BASELINE, NOTED

        findings = tuple(each for each in report.findings if _key(each.file, each.rule, each.column) not in self._keys)
        if len(findings) == len(report.findings):
            return report
        self.covered += len(report.findings) - len(findings)
        failing = {finding.rule for finding in findings}
        rules = (
            replace(outcome, outcome=IN_BASELINE, reason="the baseline covers its findings")
            if outcome.outcome in (FAILED, NOTED) and outcome.rule not in failing
            else outcome
            for outcome in report.rules
        )
        worst = SEVERITIES.index(report.fail_on)
        failed = any(SEVERITIES.index(finding.severity) <= worst for finding in findings)
        return replace(report, findings=findings, rules=tuple(rules), failed=failed)


def read_baseline(path: str) -> Baseline:
    """Read a report of `sbbf check`: JSON, JSON lines or Parquet. Raises UsageError for any other file."""
    from sbbf_tool.file.row_file import read_rows

    try:
        with open(path, "rb") as stream:
            text = stream.read(4)
            text += b"" if text == b"PAR1" else stream.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"the baseline cannot be read: {getattr(error, 'strerror', None) or 'invalid name'}".lower(), file=path) from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"a baseline must have at most {_MOST_BYTES:,} bytes", file=path)
    try:
        found = read_rows(path, ["file", "rule", "column"]) if text == b"PAR1" else _findings_of_json(text)
        return Baseline((str(file), str(rule), column) for file, rule, column in found)
    except (UnreadableError, ValueError, KeyError, TypeError, RecursionError):
        hint = "save one with sbbf check --report FILE, where FILE ends with .json or .parquet"
        raise UsageError("the baseline is not a report of sbbf check", file=path, hint=hint) from None


def _findings_of_json(text: bytes) -> list[tuple[str, str, str | None]]:
    documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    kinds = {document["schema"] for document in documents} - {"sbbf.summary", "sbbf.file"}
    if not documents or kinds - {"sbbf.check", *(f"sbbf.{name}" for name in named("rules"))}:
        raise ValueError("another report")
    findings = (finding for document in documents if document["schema"] in kinds for finding in document["findings"])
    return [(finding["file"], finding["rule"], finding["column"]) for finding in findings]


def _key(file: str, rule: str, column: str | None) -> tuple[str, str, str | None]:
    return escape_bytes(file if "://" in file else os.path.abspath(file)), rule, column and escape_bytes(column)
