"""The findings of an earlier `sbbf check`, from its saved report: later runs fail on other findings only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import named
from sbbf_tool.reports.plain import escape_bytes

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport

_MOST_BYTES = 1 << 30
_COLUMNS = ["file", "rule", "column"]


class Baseline:
    """Findings, each known by its file, rule and column, as a Parquet report has them: bytes that are not UTF-8 are escaped."""

    def __init__(self, findings: Iterable[tuple[str, str, str | None]] = ()) -> None:
        self._keys = {(_absolute(file), rule, column and escape_bytes(column)) for file, rule, column in findings}
        self.covered = 0
        """Findings that `subtract` has removed."""

    def subtract(self, report: CheckReport) -> CheckReport:
        """Return the report of a file without the findings of the baseline; the outcome of a rule without other findings is `known`."""
        from sbbf_tool.reports.findings import SEVERITIES
        from sbbf_tool.verbs.check import FAILED, IN_BASELINE, NOTED

        findings = tuple(
            finding
            for finding in report.findings
            if (_absolute(finding.file), finding.rule, finding.column and escape_bytes(finding.column)) not in self._keys
        )
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
    try:
        with open(path, "rb") as stream:
            text = stream.read(4)
            is_parquet = text == b"PAR1"
            text += b"" if is_parquet else stream.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"the baseline cannot be read: {getattr(error, 'strerror', None) or 'invalid name'}".lower(), file=path) from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"a baseline must have at most {_MOST_BYTES:,} bytes", file=path)
    findings = _rows_of_parquet(path) if is_parquet else _findings_of_json(path, text)
    return Baseline(findings)


def _rows_of_parquet(path: str) -> list[tuple[str, str, str | None]]:
    from sbbf_tool.file.row_file import read_rows

    try:
        return [(str(file), str(rule), column) for file, rule, column in read_rows(path, _COLUMNS)]
    except UnreadableError:
        raise _no_report(path) from None


def _findings_of_json(path: str, text: bytes) -> list[tuple[str, str, str | None]]:
    try:
        documents = list(_documents(text))
        kinds = {document["schema"] for document in documents} - {"sbbf.summary", "sbbf.file"}
        if kinds - {"sbbf.check", *(f"sbbf.{name}" for name in named("rules"))}:
            raise _no_report(path)
        return [
            (finding["file"], finding["rule"], finding["column"])
            for document in documents
            if document["schema"] in kinds
            for finding in document["findings"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _no_report(path) from None


def _documents(text: bytes) -> Iterator[Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("empty")
    yield from map(json.loads, lines)


def _no_report(path: str) -> UsageError:
    hint = "save one with sbbf check --report FILE, where FILE ends with .json or .parquet"
    return UsageError("the baseline is not a report of sbbf check", file=path, hint=hint)


def _absolute(file: str) -> str:
    return escape_bytes(file if "://" in file else os.path.abspath(file))
