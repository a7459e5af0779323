"""Result of `advise`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class ColumnAdvice:
    """Advice on whether one column, over all files, deserves a filter."""

    column: str
    type: str
    verdict: str
    """`add`, `keep`, `left out` (its type is seldom queried by equality) or `no gain`."""
    reason: str
    cautions: tuple[str, ...]
    """What to consider before a filter is added."""
    row_groups: int
    """Row groups in which the column has values."""
    bytes: int
    """Compressed bytes of the chunks of the column."""
    row_group_bytes: int
    """Compressed bytes of all columns of these row groups."""
    ndv: float | None
    """Distinct values in the row group that has the most; None if they were not counted, because the verdict does not depend on them."""
    ndv_is_exact: bool
    ndv_source: str | None
    dictionary_encoded: int
    """Row groups in which all pages of the column are dictionary-encoded."""
    after_statistics: float
    """Row groups that remain after min and max, on average for the given queries or, without any, for a value in a row group's range."""
    row_groups_with_value: float | None
    """Number of these row groups that hold the value, if it is present; estimated from the samples."""
    filters: int
    filter_bytes: int
    mean_fpp: float | None
    bitset_bytes: int | None
    """The largest bitset that a row group needs."""
    cost_bytes: int | None
    """Bytes of all filters."""
    skipped_if_absent: int
    """Bytes of row groups that a query for one absent value skips on average with filters."""
    skipped_if_present: int | None
    """The same for a present value; None if the number of row groups that hold the value is unknown."""


@dataclass(frozen=True)
class QueryAdvice:
    """Row groups that a query reads."""

    query: str
    row_groups: int
    after_statistics: int
    after_dictionary: int
    """Row groups that remain after min, max and dictionaries, for query engines that use dictionaries."""
    after_filters: int
    """Row groups that remain after min, max and the existing filters."""
    after_advice: float
    """The same with the advised filters added, on average; row groups without a dictionary are assumed not to hold the values."""


@dataclass(frozen=True)
class FoldedSize:
    """The filters of one column after a number of halvings, exactly, from their bits."""

    halvings: int
    bytes: int
    """Bytes of all bitsets; a filter that cannot be folded so often keeps its smallest size."""
    mean_fpp: float
    worst_fpp: float


@dataclass(frozen=True)
class ColumnSizes:
    """What the filters of one column take, and would take at smaller sizes."""

    column: str
    sizes: tuple[FoldedSize, ...]
    bytes_at_target: int
    """Bytes of the bitsets, each folded to the smallest size that meets the target false-positive rate, if any does."""


@dataclass(frozen=True)
class ColumnSettings:
    """What a writer is set to do for one column."""

    column: str
    ndv: int | None
    """None if the writer cannot be given it; so with `fpp`."""
    fpp: float | None
    bitset_bytes: int | None
    """The size that the writer chooses per row group; None if it chooses by other rules."""


@dataclass(frozen=True)
class WriterSettings:
    """The settings by which a writer adds the filters that are advised, and those that are kept, to new files."""

    writer: str
    text: str
    """Settings to paste, with the notes as comments."""
    columns: tuple[ColumnSettings, ...]
    notes: tuple[str, ...]
    """Conditions, and what the writer cannot be set to do."""


@dataclass(frozen=True, repr=False)
class AdviceReport(Tabular):
    _row = ColumnAdvice

    paths: tuple[str, ...]
    files: int
    row_groups: int
    bytes: int
    fpp: float
    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    sampled_files: tuple[str, ...]
    """Files whose data was sampled."""
    fix: Fix | None
    """The change that adds the advised filters; None if no filter is advised."""
    unreadable: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""
    filter_sizes: tuple[ColumnSizes, ...] = ()
    """The sizes to which the existing filters can be folded, for each column that has filters."""
    emit: WriterSettings | None = None
    """The settings of the writer that was requested."""
    exit_code: int = 0
    """The highest exit code of the files that could not be read."""

    def _rows(self) -> Iterable[object]:
        return self.columns

    def _summary(self) -> str:
        return f"{', '.join(self.paths)}: {format_count(len(self.columns), 'column')}"
