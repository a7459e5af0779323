"""Result of `run_engines`: what query engines measured for one query, with filters and without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular

EQUAL, ROWS_DIFFER, FAILS_WITH_FILTERS = "equal", "rows differ", "fails with filters"
FAILED, NOT_INSTALLED = "failed", "not installed"
METRIC, ZEROED_PAGES = "metric", "zeroed pages"


@dataclass(frozen=True)
class Measurement:
    """What an engine measured for the query; None for a number that it does not report."""

    rows: int
    row_groups_read: int | None
    rows_scanned: int | None
    """Rows that the engine decoded, or on which it computed the condition."""
    bytes_read: int | None
    seconds: float
    """The shorter time of two runs, without the start of the engine."""


@dataclass(frozen=True)
class EngineRun:
    """The query in one engine."""

    engine: str
    name: str
    version: str | None
    outcome: str
    """`equal`, `rows differ`, `fails with filters`, `failed` (also without filters) or `not installed`."""
    reads: str | None
    """`table` if the engine read the table, `files` if it read its data files."""
    uses_filters: bool | None
    """Whether filters let the engine skip row groups in this query; None if nothing shows it."""
    evidence: str | None
    """How that is known: by a `metric` of the engine, or by `zeroed pages` of the row groups that only filters exclude."""
    row_groups_skipped: int | None
    """Row groups that the engine reads only without filters."""
    with_filters: Measurement | None
    without_filters: Measurement | None
    reason: str | None
    """Why the rows differ, the engine failed, or nothing shows whether it uses the filters."""
    install: str | None
    """The command that installs the engine, if it is not installed."""
    columns_left_out: tuple[str, ...] = ()
    """Columns that the query left out, because the engine cannot read their types."""

    @property
    def is_harmed(self) -> bool:
        """Whether the filters change the result of the query."""
        return self.outcome in (ROWS_DIFFER, FAILS_WITH_FILTERS)


@dataclass(frozen=True)
class EngineRunRow:
    """The query in one engine, as a row: `rows` and so on are those with filters."""

    engine: str
    name: str
    version: str | None
    outcome: str
    reads: str | None
    uses_filters: bool | None
    evidence: str | None
    row_groups_skipped: int | None
    rows: int | None
    rows_without_filters: int | None
    row_groups_read: int | None
    row_groups_read_without_filters: int | None
    rows_scanned: int | None
    rows_scanned_without_filters: int | None
    bytes_read: int | None
    bytes_read_without_filters: int | None
    seconds: float | None
    seconds_without_filters: float | None
    reason: str | None
    install: str | None
    columns_left_out: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class EngineRunsReport(Tabular):
    _row = EngineRunRow
    _first = ("path", "column", "value")

    path: str
    table_format: str | None
    """`Delta` or `Iceberg`; None for files."""
    column: str
    type: str
    value: str
    files: int
    row_groups: int
    bytes: int
    """Bytes of the files."""
    filters: int
    """Filters of the column."""
    excluded_by_filters: int
    """Row groups that filters exclude, and neither min and max nor a dictionary."""
    note: str | None
    """Why some engine cannot show whether it uses the filters, and what to query instead, if the value is the reason."""
    engines: tuple[EngineRun, ...]
    exit_code: int
    """1 if filters change the result in some engine, otherwise 3 if some engine failed, otherwise 0."""

    def _rows(self) -> Iterable[object]:
        for run in self.engines:
            values = {name: getattr(run, name) for name in _names(EngineRunRow) if hasattr(run, name)}
            for suffix, measurement in (("", run.with_filters), ("_without_filters", run.without_filters)):
                values |= {f"{name}{suffix}": getattr(measurement, name, None) for name in _names(Measurement)}
            yield EngineRunRow(**values)

    def _summary(self) -> str:
        return f"{self.path}: {format_count(len(self.engines), 'engine')}"


def _names(row: type) -> list[str]:
    return [field.name for field in fields(row)]
