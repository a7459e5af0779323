"""Conditions in a query's WHERE clause that select files and chunks before any file is opened.

Spark evaluates all conditions on every row again, so conditions that are not recognized here are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conjunction of conditions; a field is None if there is no condition on it."""

    files: tuple[Filter, ...] = ()
    columns: frozenset[str] | None = None
    row_groups: frozenset[int] | None = None

    def wants_file(self, path: str) -> bool:
        return all(_holds(condition, path) for condition in self.files)

    @property
    def chooses_chunks(self) -> bool:
        return self.columns is not None or self.row_groups is not None

    def wants_chunk(self, row_group: int, column: str) -> bool:
        return (self.columns is None or column in self.columns) and (self.row_groups is None or row_group in self.row_groups)


def parse_conditions(conditions: Iterable[Filter]) -> Conditions:
    """Parse the conditions that PySpark 4.1 or newer passes to `DataSourceReader.pushFilters`."""
    from pyspark.sql.datasource import EqualTo, In

    files: list[Filter] = []
    columns: frozenset[str] | None = None
    row_groups: frozenset[int] | None = None
    for condition in conditions:
        match condition:
            case EqualTo(("column",), name):
                columns = _both(columns, [name])
            case In(("column",), names):
                columns = _both(columns, names)
            case EqualTo(("row_group",), number):
                row_groups = _both(row_groups, [number])
            case In(("row_group",), numbers):
                row_groups = _both(row_groups, numbers)
            case _ if _is_about_file(condition):
                files.append(condition)
    return Conditions(tuple(files), columns, row_groups)


def _both(chosen: frozenset[Name] | None, values: Iterable[Name]) -> frozenset[Name]:
    return frozenset(values) if chosen is None else chosen & frozenset(values)


def _is_about_file(condition: Filter) -> bool:
    from pyspark.sql.datasource import EqualTo, In, Not, StringContains, StringEndsWith, StringStartsWith

    match condition:
        case Not(child):
            return _is_about_file(child)
        case EqualTo(("file",)) | In(("file",)) | StringStartsWith(("file",)) | StringEndsWith(("file",)) | StringContains(("file",)):
            return True
    return False


def _holds(condition: Filter, path: str) -> bool:
    from pyspark.sql.datasource import EqualTo, In, Not, StringContains, StringEndsWith, StringStartsWith

    match condition:
        case EqualTo(_, text):
            return bool(path == text)
        case In(_, texts):
            return path in texts
        case StringStartsWith(_, text):
            return path.startswith(text)
        case StringEndsWith(_, text):
            return path.endswith(text)
        case StringContains(_, text):
            return text in path
        case Not(child):
            return not _holds(child, path)
    return True
