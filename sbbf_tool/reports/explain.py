"""What `explain` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class RowGroupExplanation:
    """What each means of pruning says of one value in one row group: `absent`, `maybe`, or `cannot say` with the reason."""

    row_group: int
    rows: int
    bytes: int
    """Compressed bytes of the pages of all its column chunks."""
    column_bytes: int
    """Those of the column that was asked for."""
    low: str | None
    """Min and max, as `probe` takes values; None where the footer has none that one may rely on."""
    high: str | None
    statistics: str
    statistics_reason: str | None
    dictionary: str | None
    """None where the dictionary does not hold all of the chunk's values."""
    dictionary_reason: str | None
    filter: str
    """Also `no filter`."""
    filter_reason: str | None

    @property
    def is_absent(self) -> bool:
        return "absent" in (self.statistics, self.dictionary, self.filter)


@dataclass(frozen=True)
class EngineExplanation:
    """What one engine makes of a file's row groups."""

    engine: str
    name: str
    steps: tuple[str, ...]
    """For each row group what skips it, `statistics`, `dictionary` or `filter`; or `read`; or `harm`: its filter loses rows or fails."""
    skipped_by_statistics: int
    skipped_by_dictionary: int
    skipped_by_filter: int
    read: int
    bytes_skipped: int
    """Of the row groups."""
    share_skipped: float
    share_of_column_skipped: float
    says: str
    """Why it asks filters of this column, or does not."""
    harm: str | None = None
    """What becomes of a query where a filter harms it: `loses rows` or `fails`."""


@dataclass(frozen=True)
class ExplainReport:
    file: str
    column: str
    type: str
    value: str
    note: str | None
    """Where the value is of a kind that no filter, or no min and max, knows."""
    absent: bool
    """Certainly in no row group."""
    bytes: int
    column_bytes: int
    row_groups: tuple[RowGroupExplanation, ...]
    engines: tuple[EngineExplanation, ...]


@dataclass(frozen=True)
class ExplainRow(FileRow):
    report: ExplainReport | None = None
