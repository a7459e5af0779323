"""Values that all rows of a file have, or may have, since the file lacks the column: the folder or
the table states one, or they are null.

Such rows are counted and listed without reading a page. They are made when they are looked at, a
window at a time, and another process gets the ranges instead of the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.hits import FileAnswers, tuple_of_few
from sbbf_tool.file.missing_column import MissingColumn
from sbbf_tool.file.table_file import Deletes
from sbbf_tool.file.texts import text_of
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.notation import CANNOT_SAY, MAYBE
from sbbf_tool.reports.probe import (
    MANY_VALUES,
    PRESENT,
    Hit,
    InconclusiveRowGroups,
    LongSequence,
    QueriedValue,
    RowMatch,
)

if TYPE_CHECKING:
    from sbbf_tool.file.conditions import ColumnCondition, NarrowedCondition
    from sbbf_tool.file.parquet_file import ParquetFile

_WINDOW = 1 << 20
"""Rows that are compared with the deleted ones together."""


class RowRange(NamedTuple):
    """The rows of a row group."""

    row_group: int
    first: int
    """Number in the file of the first row."""
    end: int
    """That of the row after the last."""


class AllRows(Frozen):
    """All rows of row groups, except those that a table has deleted; each has all of the values."""

    ranges: tuple[RowRange, ...]
    deletes: tuple[Deletes, ...]
    values: tuple[str, ...]
    column: str

    def __call__(self) -> Iterator[tuple[int, int, str, str]]:
        """Yield the fields of a `RowMatch` for each row and value. Raises UnreadableError and
        RefusedError if the deletes cannot be read."""
        for each in self.ranges:
            for rows in self._windows(each):
                for row in rows:
                    for value in self.values:
                        yield each.row_group, row, value, self.column

    def counts(self) -> dict[int, int]:
        """Count the rows of each row group that has any. Raises as a call does."""
        counts = {}
        for each in self.ranges:
            count = each.end - each.first
            if self.deletes:
                count = sum(map(len, self._windows(each)))
            if count:
                counts[each.row_group] = count
        return counts

    def _windows(self, rows: RowRange) -> Iterator[Sequence[int]]:
        for start in range(rows.first, rows.end, _WINDOW):
            window = range(start, min(start + _WINDOW, rows.end))
            if self.deletes:
                yield _without(window, self.deletes)
            else:
                yield window


def _without(window: range, deletes: tuple[Deletes, ...]) -> list[int]:
    import numpy as np

    rows = np.arange(window.start, window.stop, dtype=np.int64)
    for each in deletes:
        if len(rows):
            rows = rows[~each.among(rows)]
    return rows.tolist()


def list_queried(condition: ColumnCondition) -> tuple[QueriedValue, ...]:
    """Return how the values of a column that the file lacks are reported, unless they are many."""
    about = condition.about
    assert isinstance(about, MissingColumn)
    if len(condition.values) > MANY_VALUES:
        return ()
    return tuple(
        QueriedValue(text_of(value), about.answer(value), about.reason)
        for value in condition.values
    )


def answer_for_all_rows(
    file: ParquetFile,
    first: ColumnCondition,
    also: Sequence[NarrowedCondition],
    row_groups: tuple[int, ...],
    *,
    confirms: bool,
    with_rows: bool,
) -> FileAnswers:
    """Return what is known of the values of a column that the file lacks, in row groups that may
    satisfy all conditions. No condition is about a column of the file.

    With `confirms`, a value that all rows certainly have is present.
    """
    about = first.about
    assert isinstance(about, MissingColumn)
    if not row_groups:
        return FileAnswers()
    if not about.is_certain:
        unknown = InconclusiveRowGroups(row_groups, CANNOT_SAY, about.reason)
        return FileAnswers(inconclusive=(unknown,))
    hits = []
    certain = {}
    for at, value in enumerate(first.values):
        if about.answer(value) == MAYBE:
            hits.append(Hit(text_of(value), row_groups, MAYBE, about.reason, position=at))
            if about.is_in_all_rows(value):
                certain[at] = text_of(value)
    if not confirms:
        return FileAnswers(tuple(hits))
    starts = file.footer.first_rows()
    ranges = tuple(RowRange(at, starts[at], starts[at + 1]) for at in row_groups)
    rows = AllRows(ranges, file.deletes, tuple(certain.values()), about.name)
    return _confirm(hits, certain, rows, _doubt_of(also) or "", with_rows=with_rows)


def _confirm(
    hits: Sequence[Hit], certain: Collection[int], rows: AllRows, doubt: str, *, with_rows: bool
) -> FileAnswers:
    """Return which of the values all rows have, and which rows these are. Those at the `certain`
    positions are present, unless the rows are in doubt."""
    counts = dict.fromkeys((each.row_group for each in rows.ranges), 0)
    unreadable: tuple[str, ...] = ()
    try:
        counts = rows.counts()
    except UnreadableError as error:
        unreadable = (str(error),)
        doubt = f"the deleted rows are unreadable: {error.message}"
    except RefusedError as error:
        doubt = error.message
    if not counts:
        return FileAnswers()
    if doubt:
        certain = ()
    row_groups = tuple(counts)
    num_rows = sum(counts.values())
    confirmed = []
    for hit in hits:
        at = hit.position
        if at in certain:
            confirmed.append(Hit(hit.value, row_groups, PRESENT, None, num_rows, at))
        else:
            reason = doubt or hit.reason
            confirmed.append(Hit(hit.value, row_groups, CANNOT_SAY, reason, position=at))
    listed: Sequence[RowMatch] = ()
    if with_rows and certain:
        listed = LongSequence(RowMatch, rows, num_rows * len(certain))
    return FileAnswers(tuple(confirmed), (), tuple_of_few(listed), unreadable)


def _doubt_of(also: Sequence[NarrowedCondition]) -> str | None:
    """Return why not all rows certainly satisfy conditions on columns that the file lacks."""
    for narrowed in also:
        each = narrowed.condition
        assert isinstance(each.about, MissingColumn)
        if not any(map(each.about.is_in_all_rows, each.values)):
            return f"column {each.named.name}: {each.about.reason}"
    return None
