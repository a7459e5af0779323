"""What each operation answers with: frozen dataclasses, plain values inside, ready for JSON by `dataclasses.asdict`.

Sizes are bytes, offsets are bytes from the start of the file, ratios and error rates are fractions from 0 to 1. `None` means
"not known" or "not there", never zero. Row groups count from 0. Columns are named with dots, and backticks where a part has a dot.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
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
    broken: str | None = None
    """Why the filter cannot be read: its bytes contradict the format."""


@dataclass(frozen=True, slots=True)
class ColumnTotal:
    """A column over all row groups."""

    column: str
    row_groups_with_filter: int
    row_groups: int
    filter_bytes: int
    chunk_bytes: int
    mean_fpp: float | None
    """Mean over the row groups whose filter could be measured: of row groups without the value, the share still read."""


@dataclass(frozen=True, slots=True)
class UnusedRange:
    """Bytes that nothing in the footer leads to."""

    offset: int
    length: int
    what: str


@dataclass(frozen=True, slots=True)
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

    @property
    def broken(self) -> tuple[FilterReport, ...]:
        return tuple(row for row in self.filters if row.broken)


@dataclass(frozen=True, slots=True)
class RowGroupAnswer:
    """What one row group's filter says of one value: `absent`, `maybe`, `no filter` or `cannot say`, with the reason for the last."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == "absent"


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Certainly in no row group. True of a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    file: str
    column: str
    type: str
    values: tuple[ValueAnswer, ...]
    bytes_read: int

    @property
    def is_absent(self) -> bool:
        """Every value is certainly absent from the whole file."""
        return all(value.is_absent for value in self.values)


@dataclass(frozen=True, slots=True)
class BuiltFilter:
    """One filter as it was written, or, of a dry run, as it would be."""

    row_group: int
    column: str
    values: int
    """Non-null values that were hashed."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """Error rate measured from the bits that are set."""


@dataclass(frozen=True, slots=True)
class AddReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[BuiltFilter, ...]
    data_bytes_read: int
    """Compressed bytes of the chunks that were read to build them."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    removed: tuple[tuple[int, str], ...]
    """(row group, column) of each filter taken away."""
    way: str
    """`cut back` to the footer before, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes left in the file that nothing leads to any more."""
    warnings: tuple[str, ...] = field(default=())
