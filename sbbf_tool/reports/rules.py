"""The rules of `check`, as a report."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class RuleReport:
    """One rule."""

    name: str
    group: str
    severity: str
    reads: str
    """What the rule reads: `footer`, `filter` or `data`."""
    message: str
    why: str


@dataclass(frozen=True, repr=False)
class RulesReport(Tabular):
    rules: tuple[RuleReport, ...]

    _row = RuleReport

    def _rows(self) -> tuple[RuleReport, ...]:
        return self.rules

    def _summary(self) -> str:
        return format_count(len(self.rules), "rule")
