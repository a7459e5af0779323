"""Result of `run_engines`: what query engines measured for one query, with filters and without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.plain import hints_of
from sbbf_tool.reports.tabular import Tabular

# Outcomes of a run.
EQUAL = "equal"
ROWS_DIFFER = "rows differ"
FAILS_WITH_FILTERS = "fails with filters"
NOT_INSTALLED = "not installed"

# What shows whether an engine uses filters.
METRIC = "metric"
ZEROED_PAGES = "zeroed pages"


class Measurement(Frozen):
    """What an engine measured for the query; None for a number that it does not report."""

    rows: int
    row_groups_read: int | None
    rows_scanned: int | None
    """Rows that the engine decoded, or on which it computed the condition."""
    bytes_read: int | None
    seconds: float
    """The shorter time of two runs, without the start of the engine."""


class EngineRun(Frozen):
    """The query in one engine."""

    engine: str
    name: str
    version: str | None
    outcome: str
    """`equal`, `rows differ`, `fails with filters`, `failed` (also without filters) or `not
    installed`."""
    reads: str | None = None
    """`table` if the engine read the table, `files` if it read its data files."""
    uses_filters: bool | None = None
    """Whether filters let the engine skip row groups in this query; None if nothing shows it."""
    evidence: str | None = None
    """How that is known: by a `metric` of the engine, or by `zeroed pages` of the row groups that
    only filters exclude."""
    row_groups_skipped: int | None = None
    """Row groups that the engine reads only without filters."""
    with_filters: Measurement | None = None
    without_filters: Measurement | None = None
    reason: str | None = None
    """Why the rows differ, the engine failed, or nothing shows whether it uses the filters."""
    install: str | None = None
    """The command that installs the engine, if it is not installed."""
    columns_left_out: tuple[str, ...] = ()
    """Columns that the query left out, because the engine cannot read their types."""

    @property
    def is_harmed(self) -> bool:
        """Whether the filters change the result of the query."""
        return self.outcome in (ROWS_DIFFER, FAILS_WITH_FILTERS)


_MEASURED = {"with_filters": "", "without_filters": "_without_filters"}
"""The measurements of a run, and what their numbers have behind their names in a row."""


def _hints_of_row() -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row: those of a run, in which `rows` and so on are those with
    filters."""
    for name, hint in hints_of(EngineRun):
        if name == "with_filters":
            for measured, kind in hints_of(Measurement):
                for suffix in _MEASURED.values():
                    yield f"{measured}{suffix}", kind | None
        elif name not in _MEASURED:
            yield name, hint


EngineRunRow: Any = type(
    "EngineRunRow", (Frozen,), {"__annotations__": dict(_hints_of_row()), "__module__": __name__}
)


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
    """Why some engine cannot show whether it uses the filters, and what to query instead, if the
    value is the reason."""
    engines: tuple[EngineRun, ...]
    exit_code: int
    """1 if filters change the result in some engine, otherwise 3 if some engine failed, otherwise
    0."""

    def _rows(self) -> Iterable[object]:
        for run in self.engines:
            values = {name: value for name, value in vars(run).items() if name not in _MEASURED}
            for name, suffix in _MEASURED.items():
                measurement = getattr(run, name)
                for field in fields(Measurement):
                    values[f"{field.name}{suffix}"] = getattr(measurement, field.name, None)
            yield EngineRunRow(**values)

    def _summary(self) -> str:
        return f"{self.path}: {format_count(len(self.engines), 'engine')}"
