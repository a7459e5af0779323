"""Totals of `inspect` over a lake, in memory that grows only with the number of columns."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.verbs.inspect import ColumnTotal, InspectReport


@dataclass(slots=True)
class LakeColumn:
    """Totals of a column over all files."""

    column: str
    files: int = 0
    """Number of files in which the column has a filter."""
    row_groups_with_filter: int = 0
    row_groups: int = 0
    """Number of row groups of the lake, including files without the column."""
    filter_bytes: int = 0
    chunk_bytes: int = 0
    """Bytes of the column in files in which it has a filter."""
    fpp_sum: float = 0.0
    measurable_filters: int = 0

    @property
    def mean_fpp(self) -> float | None:
        """Mean FPP over the row groups whose filters could be measured; None if there are none."""
        return self.fpp_sum / self.measurable_filters if self.measurable_filters else None


class InspectTotals:
    """Totals of the added reports."""

    def __init__(self) -> None:
        self.rows = self.row_groups = self.bytes = 0
        self._columns: dict[str, LakeColumn] = {}

    def add(self, report: InspectReport) -> None:
        self.rows += report.rows
        self.row_groups += report.row_groups
        self.bytes += report.file_bytes
        for total in report.columns:
            if total.row_groups_with_filter:
                self._add(self._columns.setdefault(total.column, LakeColumn(total.column)), total)

    def _add(self, column: LakeColumn, total: ColumnTotal) -> None:
        column.files += 1
        column.row_groups_with_filter += total.row_groups_with_filter
        column.filter_bytes += total.filter_bytes
        column.chunk_bytes += total.chunk_bytes
        if total.mean_fpp is not None:
            column.fpp_sum += total.mean_fpp * total.row_groups_with_filter
            column.measurable_filters += total.row_groups_with_filter

    def columns(self) -> list[LakeColumn]:
        """Return the columns that have a filter in any file, in the order in which they were first found."""
        for column in self._columns.values():
            column.row_groups = self.row_groups
        return list(self._columns.values())
