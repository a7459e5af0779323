"""Result of `inspect`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class FilterReport:
    """Column chunk and its filter; all fields from `offset` on are None if there is no filter, or it is `unreadable`."""

    row_group: int
    column: str
    physical_type: str
    logical_type: str | None
    chunk_bytes: int
    """Compressed bytes of the pages of the chunk."""
    num_values: int
    """Number of values according to the metadata, including nulls."""
    has_filter: bool
    offset: int | None = None
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    stated_length: int | None = None
    """`bloom_filter_length` in the footer."""
    blocks: int | None = None
    fill_ratio: float | None = None
    """Share of bits set."""
    estimated_fpp: float | None = None
    """False-positive rate, estimated from the bits that are set."""
    estimated_ndv: float | None = None
    """Number of distinct values, estimated from the bits that are set; None if the filter is saturated."""
    bits_per_value: float | None = None
    share_of_chunk: float | None = None
    """Bytes of the filter per byte of the pages of the chunk."""
    warnings: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    """For a filter with the header of a draft: the dialects that the header fits."""
    dialect: str | None = None
    """The one of these dialects in which the filter holds the values of the column; None if there is none or several."""
    unreadable: str | None = None
    """Why the filter cannot be read: its bytes contradict the format."""
    saturated: bool = False
    """Whether the filter excludes fewer than half of the absent values."""
    encrypted: bool = False
    """Whether the column is encrypted. Header and bitset are then encrypted modules, whose overhead counts in `header_bytes`."""


@dataclass(frozen=True)
class ColumnTotal:
    """A column over all row groups."""

    column: str
    row_groups_with_filter: int
    """Number of row groups that have a filter; filters that are `unreadable` do not count."""
    row_groups: int
    filter_bytes: int
    chunk_bytes: int
    mean_fpp: float | None
    """Mean over the row groups whose fpp could be estimated: the share of row groups without the value that are read anyway."""


@dataclass(frozen=True)
class UnreferencedRange:
    """Bytes that nothing in the footer refers to."""

    offset: int
    length: int
    kind: str


@dataclass(frozen=True, repr=False)
class InspectReport(Tabular):
    _row = FilterReport
    _first = ("file",)

    file: str
    file_bytes: int
    footer_bytes: int
    created_by: str | None
    rows: int
    row_groups: int
    filters: tuple[FilterReport, ...]
    columns: tuple[ColumnTotal, ...]
    unreferenced: tuple[UnreferencedRange, ...]
    notes: tuple[str, ...] = ()
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose metadata is encrypted and whose key was not given; they may have filters."""

    @property
    def unreadable_filters(self) -> tuple[FilterReport, ...]:
        return tuple(row for row in self.filters if row.unreadable)

    def _rows(self) -> Iterable[object]:
        return self.filters

    def _summary(self) -> str:
        return f"{self.file}: {format_count(sum(chunk.has_filter for chunk in self.filters), 'filter')}"
