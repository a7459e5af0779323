"""Result of `repair`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.add import BuiltFilter
from sbbf_tool.reports.change import ChangeReport, SaturatedFilter
from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.named_columns import NamedColumn


@dataclass(frozen=True)
class RepairStep:
    """Fix of one column chunk's filter that was applied or, in a dry run, would be applied."""

    row_group: int
    column: str
    fix: str
    """`set length`, `drop` or `rebuild`."""
    rules: tuple[str, ...]
    """Rules that found a defect of the filter."""
    facts: tuple[str, ...]
    """What each of these rules observed."""
    new_filter: BuiltFilter | None = None
    """The filter that replaces the old one."""


@dataclass(frozen=True)
class AppliedFix:
    """Row of a table of steps: a step, and the figures of its new filter, None if there is none."""

    row_group: int
    column: str
    fix: str
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    offset: int | None
    bitset_bytes: int | None
    fpp: float | None


@dataclass(frozen=True, repr=False)
class RepairReport(ChangeReport):
    _row = AppliedFix

    steps: tuple[RepairStep, ...] = ()
    remaining: tuple[Finding, ...] = ()
    """Findings that were not resolved: they need a new filter from the data, or a key."""
    needs_rebuild: tuple[str, ...] = ()
    """Rules of `remaining` whose findings new filters resolve, which `drop` does not build."""
    unreadable: tuple[str, ...] = ()
    """Chunks whose filters cannot be verified, because pages cannot be decoded: place and reason."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not checked, because their keys were not given; whether such a column has filters may be unknown."""
    truncated_to: int | None = None
    """Length of the file before an interrupted append, to which the file was truncated. A dry run then checks nothing else."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow also decoded, with equal values, because the tests do not cover the writer or there are no statistics."""
    not_cross_checked: int = 0
    """Column chunks that need a cross-check, but that pyarrow cannot decode."""
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""

    @property
    def is_clean(self) -> bool:
        """Whether there was nothing to do."""
        return not self.steps and self.truncated_to is None

    @property
    def is_sound(self) -> bool:
        """Whether no remaining finding is an error."""
        return not any(finding.severity == ERROR for finding in self.remaining)

    def _rows(self) -> Iterable[object]:
        for step in self.steps:
            new = step.new_filter
            size = (None, None, None) if new is None else (new.offset, new.bitset_bytes, new.fpp)
            yield AppliedFix(step.row_group, step.column, step.fix, step.rules, step.facts, *size)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.steps), 'filter')}, {format_count(len(self.remaining), 'remaining finding')}"
