"""Result of `explain`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import UnfitValue
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class RowGroupExplanation:
    """Answers of statistics, dictionary and filter for one value in one row group: `absent`, `maybe`, or `cannot say` with the reason."""

    row_group: int
    rows: int
    bytes: int
    """Compressed bytes of the pages of all column chunks."""
    column_bytes: int
    """Compressed bytes of the pages of the queried column."""
    min_value: str | None
    """Minimum and maximum, in the form that `probe` accepts; None if the footer has no reliable ones."""
    max_value: str | None
    statistics: str
    statistics_reason: str | None
    dictionary: str | None
    """None if the dictionary does not hold all values of the chunk."""
    dictionary_reason: str | None
    filter: str
    """`absent`, `maybe`, `cannot say` or `no filter`."""
    filter_reason: str | None

    @property
    def is_absent(self) -> bool:
        return "absent" in (self.statistics, self.dictionary, self.filter)


@dataclass(frozen=True)
class EngineExplanation:
    """Row groups of a file that one query engine skips and reads."""

    engine: str
    name: str
    steps: tuple[str, ...]
    """Per row group: `statistics`, `dictionary` or `filter` if that skips it; `read`; or `harm` if rows are lost or the query fails."""
    skipped_by_statistics: int
    skipped_by_dictionary: int
    skipped_by_filter: int
    row_groups_read: int
    bytes_skipped: int
    """Compressed bytes of the skipped row groups."""
    share_skipped: float
    share_of_column_skipped: float
    explanation: str
    """Why the engine uses filters of this column, or does not."""
    harm: str | None = None
    """Effect of a filter that harms the query: `loses rows` or `fails`."""


@dataclass(frozen=True, repr=False)
class ExplainReport(Tabular):
    _row = RowGroupExplanation
    _first = ("file", "column", "value")

    file: str
    column: str
    type: str | None
    """None if the file does not have the column, although its table does."""
    value: str
    note: str | None
    """Note on a value that filters, or min and max, cannot answer for."""
    absent: bool
    """Whether the value is certainly in no row group."""
    bytes: int
    column_bytes: int
    row_groups: tuple[RowGroupExplanation, ...]
    engines: tuple[EngineExplanation, ...]
    unreadable: tuple[str, ...] = ()
    """Filters and dictionaries whose bytes contradict the format, so that they cannot exclude their row group: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not those of filters."""
    unfit: tuple[UnfitValue, ...] = ()
    """The value, if the column cannot hold it."""
    warnings: tuple[str, ...] = ()
    """What may be meant otherwise than it was queried, such as bytes in another notation."""

    def _rows(self) -> Iterable[object]:
        return self.row_groups

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.row_groups), 'row group')}"
