"""Result of `apply`: how the filters of a file compare with those that are declared, and what was changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.add import BuiltFilter
from sbbf_tool.reports.change import ChangeReport
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.remove import RemovedFilter
from sbbf_tool.reports.rows import OK, SKIPPED

NO_DECLARATION = "no filters are declared for this file"
NO_DEVIATION = "the file has the declared filters"
"""Why a file is skipped."""


@dataclass(frozen=True)
class DeclaredColumn:
    """One column of a file: its row groups by how their filters compare with the declaration, before the change."""

    column: str
    is_declared: bool
    """Whether a declaration names the column; if not, it has filters that none declares."""
    fpp: float | None
    """Target false-positive rate; None for a column that is not declared."""
    satisfied: int
    """Row groups whose filter satisfies the declaration, or that need none."""
    missing: int
    weaker: int
    """Row groups whose filter has a measured false-positive rate above 1.25 x the target."""
    too_large: int
    """Row groups whose filter has more than 4 x the size that its values need, or is above a limit."""
    broken: int
    """Row groups whose filter readers cannot use: unreadable, of a draft, or without the values."""
    undeclared: int
    """Row groups with a filter that no declaration names."""
    limited: int
    """Row groups whose filter, a present one that stays or a new one, a limit on the size keeps from the target rate, or prevents."""
    bytes: int
    """Bytes of the column's existing filters, as the footer states them."""
    bytes_to_replace: int
    """Of these, bytes of filters that the change replaces or removes."""
    estimated_bytes: int
    """Bytes of the filters to build, at most: every value counts as distinct."""
    fact: str | None
    """What is wrong with the first filter that does not satisfy the declaration."""

    @property
    def deviations(self) -> int:
        """Row groups whose filters do not satisfy the declaration."""
        return self.missing + self.weaker + self.too_large + self.broken

    def repeat(self, new_bytes: int, num_removals: int) -> DeclaredColumn:
        """Return the column in a second run, after a change that built `new_bytes` of filters and removed `num_removals` filters."""
        return replace(
            self,
            satisfied=self.satisfied + self.deviations,
            missing=0,
            weaker=0,
            too_large=0,
            broken=0,
            undeclared=0 if num_removals else self.undeclared,
            bytes=self.bytes - self.bytes_to_replace + new_bytes,
            bytes_to_replace=0,
            estimated_bytes=0,
            fact=None,
        )


@dataclass(frozen=True, repr=False)
class ApplyReport(ChangeReport):
    _row = DeclaredColumn

    holds: bool
    """Whether the file has the declared filters, after the change if there was one."""
    columns: tuple[DeclaredColumn, ...]
    named_columns: tuple[NamedColumn, ...]
    """What the file has under each of the declared names."""
    data_bytes: int
    """Compressed bytes of the column chunks to read."""
    estimated_seconds: float
    """Time of the change on one core, estimated from sizes; 0 if there is nothing to do."""
    filters: tuple[BuiltFilter, ...] = ()
    """The filters that were built."""
    removals: tuple[RemovedFilter, ...] = ()
    """The filters that were removed."""
    warnings: tuple[str, ...] = ()

    def outcome(self, *, in_table: bool = False) -> tuple[str, str | None]:
        is_same = self.holds and self.old_bytes == self.new_bytes and not (self.filters or self.removals)
        return (SKIPPED, NO_DEVIATION) if is_same else (OK, None)

    def repeat(self) -> ApplyReport:
        if not self.holds:
            return self
        new_bytes = Counter[str]()
        for bloom in self.filters:
            new_bytes[bloom.column] += bloom.header_bytes + bloom.bitset_bytes
        num_removals = Counter(removal.column for removal in self.removals)
        columns = (column.repeat(new_bytes[column.column], num_removals[column.column]) for column in self.columns)
        return replace(
            self,
            file=self.output,
            old_bytes=self.new_bytes,
            old_end_hash=self.new_end_hash,
            columns=tuple(column for column in columns if column.is_declared or column.undeclared),
            data_bytes=0,
            estimated_seconds=0.0,
            filters=(),
            removals=(),
            warnings=(),
        )

    def _rows(self) -> Iterable[object]:
        return self.columns

    def _summary(self) -> str:
        state = "as declared" if self.holds else format_count(sum(column.deviations for column in self.columns), "deviation")
        return f"{self.file}: {state}"
