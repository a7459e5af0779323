"""The rules of `check`, as a report."""

from __future__ import annotations

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


class RuleReport(Frozen):
    """One rule."""

    name: str
    group: str
    severity: str
    reads: str
    """What the rule reads: `footer`, `filter` or `data`."""
    message: str
    why: str
    """Which writers make such filters, and which readers they harm."""
    readers: tuple[str, ...] = ()
    """Query engines and libraries that lose rows, fail or gain nothing; empty if that depends on more than the reader."""
    example: str | None = None
    """What the rule observes in a file with the defect."""
    fix: str | None = None
    """The command that fixes that file, named FILE; None if no command does."""

    @property
    def explanation(self) -> tuple[str, ...]:
        """Return the rule in sentences: what it finds, why, the readers, an example and the fix."""
        return (
            self.message,
            self.why,
            *([f"readers: {', '.join(self.readers)}"] if self.readers else []),
            *([f"example: {self.example}"] if self.example else []),
            f"fix: {self.fix}" if self.fix else "fix: none is proposed",
        )


class RulesReport(Tabular):
    rules: tuple[RuleReport, ...]

    _row = RuleReport

    def _summary(self) -> str:
        return format_count(len(self.rules), "rule")
