"""A baseline: the findings of an earlier check, which do not make a later one fail."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import named
from sbbf_tool.frozen import replace
from sbbf_tool.reports.findings import SEVERITIES, CheckReport
from sbbf_tool.reports.plain import escape_bytes
from sbbf_tool.verbs.check import FAILS, IN_BASELINE, NOTED

_MOST_BYTES = 1 << 30


class Baseline:
    """Findings, each known by its file, rule and column, as a Parquet report has them: bytes that
    are not UTF-8 are escaped.

    A relative name is that of the file which is found from the folder of the baseline, from one
    above it, or from the working folder, in this order.
    """

    def __init__(
        self, findings: Iterable[tuple[str, str, str | None]] = (), path: str | None = None
    ) -> None:
        self._keys = {_key(*finding) for finding in findings}
        self._folders: list[str] = []
        if path is not None:
            self._folders = list(dict.fromkeys([*_folders_above(path), os.getcwd()]))
        self.covered = 0
        """Findings that `subtract` has removed."""

    def _has(self, file: str, rule: str, column: str | None) -> bool:
        if "://" in file:
            return _key(file, rule, column) in self._keys
        file = os.path.abspath(file)
        if _key(file, rule, column) in self._keys:
            return True
        for at, folder in enumerate(self._folders):
            name = os.path.relpath(file, folder)
            if _key(name, rule, column) in self._keys:
                nearer = self._folders[:at]
                return not any(os.path.lexists(os.path.join(each, name)) for each in nearer)
        return False

    def subtract(self, report: CheckReport) -> CheckReport:
        """Return the report of a file without the findings of the baseline; the outcome of a rule
        without other findings is `known`."""
        findings = [
            finding
            for finding in report.findings
            if not self._has(finding.file, finding.rule, finding.column)
        ]
        if len(findings) == len(report.findings):
            return report
        self.covered += len(report.findings) - len(findings)
        failing = {finding.rule for finding in findings}
        outcomes = list(report.rules)
        for at, outcome in enumerate(report.rules):
            if outcome.outcome in (FAILS, NOTED) and outcome.rule not in failing:
                reason = "the baseline covers its findings"
                outcomes[at] = replace(outcome, outcome=IN_BASELINE, reason=reason)
        least = SEVERITIES.index(report.fail_on)
        failed = any(SEVERITIES.index(finding.severity) <= least for finding in findings)
        return replace(report, findings=tuple(findings), rules=tuple(outcomes), failed=failed)


def read_baseline(path: str) -> Baseline:
    """Read a report of `sbbf check`: JSON, JSON lines or Parquet. Raises UsageError for others."""
    from sbbf_tool.file.row_file import read_rows  # which loads pyarrow

    try:
        with open(path, "rb") as stream:
            text = stream.read(4)
            is_parquet = text == b"PAR1"
            if not is_parquet:
                text += stream.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "invalid name"
        raise UsageError(f"the baseline cannot be read: {reason.lower()}", file=path) from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"a baseline must have at most {_MOST_BYTES:,} bytes", file=path)
    try:
        if is_parquet:
            rows = read_rows(path, ["file", "rule", "column"])
        else:
            rows = _findings_of_json(text)
        findings = [(str(file), str(rule), column) for file, rule, column in rows]
    except (UnreadableError, ValueError, KeyError, TypeError, RecursionError):
        hint = "save one with sbbf check --report FILE, where FILE ends with .json or .parquet"
        raise UsageError(
            "the baseline is not a report of sbbf check", file=path, hint=hint
        ) from None
    return Baseline(findings, path)


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folder of a file, and those above it."""
    folder = os.path.dirname(os.path.abspath(path))
    yield folder
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        yield folder


def _findings_of_json(text: bytes) -> list[tuple[str, str, str | None]]:
    documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    kinds = {document["schema"] for document in documents} - {"sbbf.summary", "sbbf.file"}
    reports = {"sbbf.check", *(f"sbbf.{name}" for name in named("rules"))}
    if not documents or kinds - reports:
        raise ValueError("another report")
    findings: list[dict[str, str]] = []
    for document in documents:
        if document["schema"] in kinds:
            findings += document["findings"]
    return [(finding["file"], finding["rule"], finding["column"]) for finding in findings]


def _key(file: str, rule: str, column: str | None) -> tuple[str, str, str | None]:
    if "://" not in file:
        file = os.path.normpath(file)
    return escape_bytes(file), rule, column and escape_bytes(column)
