"""Result of a lookup of many values in one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import Answer, UnfitValue
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class KeyHit:
    """Row groups that may hold a value."""

    value: str
    row_groups: tuple[int, ...]


@dataclass(frozen=True)
class InconclusiveRowGroups:
    """Row groups that may hold any of the values, since no filter excludes them: `no filter`, or `cannot say` with the reason."""

    row_groups: tuple[int, ...]
    answer: str
    reason: str | None


@dataclass(frozen=True, repr=False)
class LookupReport(Tabular):
    """Answers of the filters of one file for many values. Values that are certainly absent are not listed."""

    _row = Answer
    _first = ("file", "column")

    file: str
    column: str
    type: str | None
    """None if the file does not have the column, although its table does."""
    keys: int
    """Number of values that were looked up."""
    row_groups: int
    hits: tuple[KeyHit, ...]
    inconclusive: tuple[InconclusiveRowGroups, ...]
    bytes_read: int
    requests: int = 0
    """Requests to a server; 0 for a local file."""
    unreadable: tuple[str, ...] = ()
    """Filters whose bytes contradict the format, so that they cannot exclude their row group: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not those of filters."""
    unfit: tuple[UnfitValue, ...] = ()
    """The values, at most 1,000, that the column cannot hold."""
    warnings: tuple[str, ...] = ()
    """What may be meant otherwise than it was queried, such as bytes in another notation."""

    notes: tuple[str, ...] = ()
    """How values were read, such as `read as UTC`."""

    @property
    def is_absent(self) -> bool:
        """Whether every value is certainly absent from the whole file."""
        return not self.hits and not self.inconclusive

    def _rows(self) -> Iterable[object]:
        """Return the row groups of each value that may be there, then those that may hold any of the values."""
        for hit in self.hits:
            for row_group in hit.row_groups:
                yield Answer(hit.value, row_group, "maybe", None)
        for row_groups in self.inconclusive:
            for row_group in row_groups.row_groups:
                yield Answer(None, row_group, row_groups.answer, row_groups.reason)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(self.keys, 'value')}, {'absent' if self.is_absent else 'not excluded'}"


@dataclass(frozen=True)
class LookupRow(FileRow):
    report: LookupReport | None = None
