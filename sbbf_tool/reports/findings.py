"""Findings of rules, and the result of `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Error: a filter contradicts its data or the format, discloses encrypted data, or breaks a given limit. Warning: a filter is valid, but
released readers lose rows, fail, or gain nothing. Info: a filter costs a little, or does less than expected."""


class Evidence(Frozen):
    """Observation of a rule, and its row group; None if the observation concerns the whole column."""

    row_group: int | None
    fact: str


class Finding(Frozen):
    """What one rule found: a defect in the filters of one column, or in the index of a file."""

    rule: str
    severity: str
    """One of `SEVERITIES`."""
    file: str
    column: str | None
    """None if the finding concerns the whole file."""
    message: str
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    """The change that resolves the finding; None if no function of this package can resolve it."""


class RuleOutcome(Frozen):
    """Outcome of one rule on one file: `passed`; `failed`; `noted`, if its findings are too mild to fail; or `not run` with the reason."""

    rule: str
    severity: str
    outcome: str
    reason: str | None = None


class FindingRow(Frozen):
    """Row of a table of findings."""

    file: str
    rule: str
    severity: str
    column: str | None
    message: str
    row_groups: tuple[int, ...]
    """Empty if the finding concerns the whole column or file."""
    fix: str | None
    """The change as a call in Python, or as a command on the command line."""


class CheckReport(Tabular):
    _row = FindingRow

    file: str
    failed: bool
    """Whether a finding is at least as severe as `fail_on`."""
    fail_on: str
    rules: tuple[RuleOutcome, ...]
    findings: tuple[Finding, ...]
    unreadable: tuple[str, ...] = ()
    """Parts that could not be read (the whole file, or pages of a chunk), and on which rules did not run: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not checked, because their keys were not given; whether such a column has filters may be unknown."""

    def _rows(self) -> Iterable[object]:
        return self.rows()

    def rows(self, write_fix: Callable[[Fix], str] = str) -> Iterator[FindingRow]:
        """Yield the rows of the table, with fixes as `write_fix` writes them."""
        for finding in self.findings:
            row_groups = sorted({evidence.row_group for evidence in finding.evidence if evidence.row_group is not None})
            fix = None if finding.fix is None else write_fix(finding.fix)
            yield FindingRow(finding.file, finding.rule, finding.severity, finding.column, finding.message, tuple(row_groups), fix)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.findings), 'finding')}"
