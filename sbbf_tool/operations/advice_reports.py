"""What `advise` and `explain` answer with, beside the reports of the other operations and after their rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """Whether one column, over all files, deserves a filter."""

    column: str
    type: str
    verdict: str
    """`add`, `keep` or `no gain`."""
    reason: str
    cautions: tuple[str, ...]
    """What to know before a filter is added."""
    row_groups: int
    """Those in which it has values."""
    bytes: int
    """Compressed bytes of its chunks."""
    row_group_bytes: int
    """Compressed bytes of these row groups, all columns."""
    ndv: float | None
    """Distinct values of the row group that has the most; None where nothing was counted, because the verdict did not need it."""
    ndv_is_exact: bool
    ndv_source: str | None
    dictionary_encoded: int
    """Row groups in which all its pages are dictionary-encoded."""
    left_by_statistics: float
    """Row groups that min and max leave to read for one value: for the queries given, else for a value in the range of a row group."""
    holding: float | None
    """Of these, how many hold a value that is there, as far as the samples tell."""
    filters: int
    filter_bytes: int
    mean_fpp: float | None
    bitset_bytes: int | None
    """The largest bitset that a row group needs."""
    cost_bytes: int | None
    """All filters together."""
    skipped_if_absent: int
    """Bytes of row groups that filters let a query for one value skip, on average, where the value is absent."""
    skipped_if_present: int | None
    """The same where it is there; None where it is not known in how many row groups."""


@dataclass(frozen=True, slots=True)
class QueryAdvice:
    """Row groups that a query reads."""

    query: str
    row_groups: int
    left_by_statistics: int
    left_by_dictionary: int
    """After min and max, for engines that ask dictionaries."""
    left_by_filters: int
    """After min and max and the filters that are there."""
    left_with_advice: float
    """After those and the filters advised, on average; row groups of which no dictionary tells are taken not to hold the values."""


@dataclass(frozen=True, slots=True)
class AdviceReport:
    paths: tuple[str, ...]
    files: int
    row_groups: int
    bytes: int
    fpp: float
    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    sampled: tuple[str, ...]
    """Files whose data was looked into."""
    command: tuple[str, ...] | None
    """Program and arguments; None where no filter is advised."""
    plan: dict[str, object] | None
    """What `--plan` saves."""
    unread: tuple[str, ...] = ()
    """Files that could not be read, and why."""
