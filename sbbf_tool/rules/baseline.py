"""A baseline: the findings of an earlier check, which do not make a later one fail."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from operator import itemgetter
from pathlib import PurePath

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import named
from sbbf_tool.frozen import replace
from sbbf_tool.reports.findings import FAILS, IN_BASELINE, NOTED, SEVERITIES, CheckReport
from sbbf_tool.reports.plain import escape_bytes

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
            folders_above = map(str, PurePath(os.path.abspath(path)).parents)
            self._folders = list(dict.fromkeys([*folders_above, os.getcwd()]))
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
        findings = []
        failing = set()
        for finding in report.findings:
            if not self._has(finding.file, finding.rule, finding.column):
                findings.append(finding)
                failing.add(finding.rule)
        num_known = len(report.findings) - len(findings)
        if not num_known:
            return report
        self.covered += num_known
        outcomes = list(report.rules)
        for at, outcome in enumerate(report.rules):
            if outcome.outcome in (FAILS, NOTED) and outcome.rule not in failing:
                reason = "the baseline covers its findings"
                outcomes[at] = replace(outcome, outcome=IN_BASELINE, reason=reason)
        least = SEVERITIES.index(report.fail_on)
        failed = any(SEVERITIES.index(finding.severity) <= least for finding in findings)
        return replace(report, findings=tuple(findings), rules=tuple(outcomes), failed=failed)


def read_baseline(name: str | os.PathLike[str]) -> Baseline:
    """Read a report of `sbbf check`: JSON, JSON lines or Parquet. Raises UsageError for others."""
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"a baseline is the name of a file, not {name!r}")
    path = os.fsdecode(name)
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
        findings = []
        for file, rule, column in rows:
            findings.append((str(file), str(rule), column))
    except (UnreadableError, ValueError, KeyError, TypeError, RecursionError):
        hint = "save the report of a check as JSON or Parquet"
        raise UsageError("the baseline is not a report of a check", file=path, hint=hint) from None
    return Baseline(findings, path)


def _findings_of_json(text: bytes) -> list[tuple[str, str, str | None]]:
    reports = {"sbbf.check", *map("sbbf.{}".format, named("rules"))}
    findings: list[tuple[str, str, str | None]] = []
    is_empty = True
    for line in text.splitlines():
        if not line.strip():
            continue
        is_empty = False
        document = json.loads(line)
        schema = document["schema"]
        if schema in reports:
            findings += map(itemgetter("file", "rule", "column"), document["findings"])
        elif schema not in ("sbbf.summary", "sbbf.file"):
            raise ValueError("another report")
    if is_empty:
        raise ValueError("no report")
    return findings


def _key(file: str, rule: str, column: str | None) -> tuple[str, str, str | None]:
    if "://" not in file:
        file = os.path.normpath(file)
    return escape_bytes(file), rule, column and escape_bytes(column)
