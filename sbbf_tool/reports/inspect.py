"""What `inspect` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class FilterReport:
    """One column chunk and its filter; every field from `offset` on is None where it has none, or where it is `broken`."""

    row_group: int
    column: str
    physical_type: str
    logical_type: str | None
    chunk_bytes: int
    """Compressed bytes of the chunk's pages."""
    num_values: int
    """Values of the chunk as its metadata counts them, nulls included."""
    has_filter: bool
    offset: int | None = None
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    stated_length: int | None = None
    """`bloom_filter_length` of the footer."""
    blocks: int | None = None
    fill_ratio: float | None = None
    """Bits set, of all bits."""
    estimated_fpp: float | None = None
    """Share of absent values that the filter lets pass, from the bits that are set."""
    estimated_ndv: float | None = None
    """Distinct values, from the bits that are set; None where the filter is saturated."""
    bits_per_value: float | None = None
    share_of_chunk: float | None = None
    """Bytes of the filter for each byte of the chunk's pages."""
    oddities: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    """Of a filter with a draft's header: the dialects that the header fits."""
    dialect: str | None = None
    """Of these the one that the column's values are found in, where that is one."""
    broken: str | None = None
    """Why the filter cannot be read: its bytes contradict the format."""
    encrypted: bool = False
    """The column is encrypted; header and bitset then are modules, whose overhead `header_bytes` counts."""


@dataclass(frozen=True)
class ColumnTotal:
    """A column over all row groups."""

    column: str
    row_groups_with_filter: int
    row_groups: int
    filter_bytes: int
    chunk_bytes: int
    mean_fpp: float | None
    """Mean over the row groups whose filter could be measured: of row groups without the value, the share still read."""


@dataclass(frozen=True)
class UnusedRange:
    """Bytes that nothing in the footer leads to."""

    offset: int
    length: int
    what: str


@dataclass(frozen=True)
class InspectReport:
    file: str
    file_bytes: int
    footer_bytes: int
    created_by: str | None
    rows: int
    row_groups: int
    filters: tuple[FilterReport, ...]
    columns: tuple[ColumnTotal, ...]
    unused: tuple[UnusedRange, ...]
    notes: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Columns that may have filters and do not show them: their metadata are encrypted, and their key was not given."""

    @property
    def broken(self) -> tuple[FilterReport, ...]:
        return tuple(row for row in self.filters if row.broken)


@dataclass(frozen=True)
class InspectRow(FileRow):
    report: InspectReport | None = None
