"""Result of `probe`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class RowGroupAnswer:
    """Answer of the filter of one row group for one value: `absent`, `maybe`, `no filter`, or `cannot say` with the reason."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == "absent"


@dataclass(frozen=True)
class ValueAnswer:
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the value is certainly in no row group. True for a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


@dataclass(frozen=True)
class Answer:
    """Row of a table of answers."""

    value: str | None
    """None if the answer applies to all values."""
    row_group: int
    answer: str
    reason: str | None


@dataclass(frozen=True, repr=False)
class ProbeReport(Tabular):
    _row = Answer
    _first = ("file", "column")

    file: str
    column: str
    type: str | None
    """None if the file does not have the column, although its table does."""
    values: tuple[ValueAnswer, ...]
    bytes_read: int
    requests: int = 0
    """Requests to a server; 0 for a local file."""
    unreadable: tuple[str, ...] = ()
    """Filters whose bytes contradict the format, so that they cannot exclude their row group: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not those of filters."""

    @property
    def is_absent(self) -> bool:
        """Whether every value is certainly absent from the whole file."""
        return all(value.is_absent for value in self.values)

    def _rows(self) -> Iterable[object]:
        for value in self.values:
            for answer in value.row_groups:
                yield Answer(value.value, answer.row_group, answer.answer, answer.reason)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.values), 'value')}, {'absent' if self.is_absent else 'not excluded'}"


@dataclass(frozen=True)
class ProbeRow(FileRow):
    report: ProbeReport | None = None
