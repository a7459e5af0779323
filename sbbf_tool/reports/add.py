"""Result of `add_filters`; other operations that build filters use parts of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.change import ChangeReport
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class BuiltFilter:
    """One filter that was written or, in a dry run, would be written."""

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
    """Column chunks that already had a filter and keep it."""
    data_bytes_read: int
    """Bytes of the chunks that were read to build the filters; data pages that refer to a dictionary count only with their headers."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow also decoded, with equal values, because the tests do not cover the writer or there are no statistics."""
    not_cross_checked: int = 0
    """Column chunks that need a cross-check, but that pyarrow cannot decode."""
    undo: Fix | None = None
    """The change that restores the old file, byte for byte; None if there is none, or if the file was not changed in place."""

    @property
    def bytes_added(self) -> int:
        return self.new_bytes - self.old_bytes

    def _rows(self) -> Iterable[object]:
        return self.filters

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}"


@dataclass(frozen=True)
class AddRow(FileRow):
    report: AddReport | None = None
    """Also set for a file that was skipped because it has every filter; None for a file that was refused or failed."""


@dataclass(frozen=True, repr=False)
class AddPlan(Tabular):
    """Filters that a file would get, planned from its footer."""

    file: str
    bytes: int
    columns: tuple[str, ...]
    filters: int
    data_bytes: int
    """Compressed bytes of the column chunks to read."""

    def _summary(self) -> str:
        return f"{self.file}: {format_count(self.filters, 'filter')}"


@dataclass(frozen=True)
class PlanRow(FileRow):
    report: AddPlan | None = None
