"""What rules find, and what `check` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.hints import Fix
from sbbf_tool.reports.rows import FileRow

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Error: a filter contradicts its data or the format, gives data away, or breaks a limit that was asked for. Warning: it is legal, and
released readers lose rows, fail, or gain nothing by it. Info: it costs a little, or promises less than one may think."""


@dataclass(frozen=True)
class Evidence:
    """What a rule saw, and in which row group; None where it is about the column as a whole."""

    row_group: int | None
    fact: str


@dataclass(frozen=True)
class Finding:
    """What one rule found wrong with a file: with the filters of one column of it, or with its index."""

    rule: str
    severity: str
    """One of `SEVERITIES`."""
    file: str
    column: str | None
    """None where it is about the file as a whole."""
    message: str
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    """The change that resolves it; None where no function of this package does."""


@dataclass(frozen=True)
class RuleOutcome:
    """What became of one rule on one file: `passed`, `failed` or `not run`, with the reason for the last."""

    rule: str
    severity: str
    outcome: str
    reason: str | None = None


@dataclass(frozen=True)
class CheckReport:
    file: str
    failed: bool
    """Some finding is at least as bad as `fail_on`."""
    fail_on: str
    rules: tuple[RuleOutcome, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()
    """What could not be read, the whole file or a chunk's pages, so that rules could not be run on it: place and reason."""


@dataclass(frozen=True)
class CheckRow(FileRow):
    report: CheckReport | None = None
    """Also of a file that could not be opened: then no rule was run."""
