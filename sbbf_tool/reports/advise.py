"""What `advise` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.hints import Fix


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
    fix: Fix | None
    """The change that adds the filters; None where none is advised."""
    plan: dict[str, object] | None
    """What `--plan` saves, but for passwords and signatures in the names of its files."""
    unread: tuple[str, ...] = ()
    """Files that could not be read, and why."""
    exit_code: int = 0
    """The highest that one of these files stands for."""
