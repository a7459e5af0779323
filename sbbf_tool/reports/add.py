"""Report of `AddFilter`; other verbs that build filters use parts of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.change import ChangeReport, SaturatedFilter
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.rows import HAS_EVERY_FILTER, OK, SKIPPED


@dataclass(frozen=True)
class BuiltFilter:
    """One filter that was written."""

    row_group: int
    column: str
    values: int
    """Number of non-null values that were hashed; each value of a dictionary page counts once."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """False-positive rate estimated from the bits that are set."""


@dataclass(frozen=True, repr=False)
class AddReport(ChangeReport):
    _row = BuiltFilter

    filters: tuple[BuiltFilter, ...]
    skipped: int
    """Column chunks that already had a filter and keep it, whether or not it satisfies the request."""
    data_bytes_read: int
    """Bytes of the chunks that were read to build the filters; data pages that refer to a dictionary count only with their headers."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow also decoded, with equal values, because the tests do not cover the writer or there are no statistics."""
    not_cross_checked: int = 0
    """Column chunks that need a cross-check, but that pyarrow cannot decode."""
    weaker: int = 0
    """Of the skipped column chunks, those with a measured false-positive rate above 1.25 x the target."""
    too_large: int = 0
    """Of the skipped column chunks, those with a filter of more than 4 x the size that its values need, or above the limit."""
    broken: int = 0
    """Of the skipped column chunks, those with a filter that readers cannot use: unreadable, of a draft, or without the values."""
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""
    planned_filters: int = 0
    """In a dry run: number of filters that would be built."""
    planned_bytes: int = 0
    """In a dry run: bytes of their bitsets, at most: every value counts as distinct."""
    data_bytes: int = 0
    """Compressed bytes of the column chunks whose filters are built."""
    undo: Fix | None = None
    """The change that restores the old file, byte for byte; None if there is none, or if the file was not changed in place."""
    leftover_bytes: int = 0
    """Bytes of earlier changes by this package that the new file still has, but no longer needs: `append` leaves them, the next copy drops
    them.
    """

    @property
    def bytes_added(self) -> int:
        return self.new_bytes - self.old_bytes

    def outcome(self, *, in_table: bool = False) -> tuple[str, str | None]:
        if self.saturated_filters:
            return super().outcome()
        return (OK, None) if self.filters or self.planned_filters else (SKIPPED, HAS_EVERY_FILTER)

    def repeat(self) -> AddReport:
        return replace(
            self,
            file=self.output,
            old_bytes=self.new_bytes,
            old_end_hash=self.new_end_hash,
            filters=(),
            skipped=self.skipped + len(self.filters),
            data_bytes_read=0,
            data_bytes=0,
            warnings=(),
            cross_checked=0,
            not_cross_checked=0,
            undo=None,
        )

    def _rows(self) -> Iterable[object]:
        return self.filters

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters) or self.planned_filters, 'filter')}"
