"""Values that all rows of a file have, or may have, since the file lacks the column: the folder or
the table states one, or they are null.

Such rows are counted and listed without reading a page. They are made when they are looked at, a
window at a time, and another process gets the ranges instead of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


class AnswersForAllRows(NamedTuple):
    """What is known of values that a file has in all its rows, or in none."""

    queried: Sequence[QueriedValue]
    answers: FileAnswers


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


def answer_for_all_rows(
    file: ParquetFile,
    first: ColumnCondition,
    also: Sequence[NarrowedCondition],
    row_groups: tuple[int, ...],
    *,
    confirms: bool,
    with_rows: bool,
) -> AnswersForAllRows:
    """Return what is known of the values of a column that the file lacks, in row groups that may
    satisfy all conditions. No condition is about a column of the file.

    With `confirms`, a value that all rows certainly have is present.
    """
    about = first.about
    assert isinstance(about, MissingColumn)
    answers = [about.answer(value) for value in first.values]
    texts = [text_of(value) for value in first.values]
    queried: tuple[QueriedValue, ...] = ()
    if len(texts) <= MANY_VALUES:
        queried = tuple(
            QueriedValue(text, answer, about.reason)
            for text, answer in zip(texts, answers, strict=True)
        )
    if not row_groups:
        return AnswersForAllRows(queried, FileAnswers())
    if not about.is_certain:
        unknown = InconclusiveRowGroups(row_groups, CANNOT_SAY, about.reason)
        return AnswersForAllRows(queried, FileAnswers(inconclusive=(unknown,)))
    possible = [at for at, answer in enumerate(answers) if answer == MAYBE]
    if confirms:
        confirmed = _confirm(file, first, also, row_groups, possible, with_rows=with_rows)
        return AnswersForAllRows(queried, confirmed)
    hits = (Hit(texts[at], row_groups, MAYBE, about.reason, position=at) for at in possible)
    return AnswersForAllRows(queried, FileAnswers(tuple(hits)))


def _confirm(
    file: ParquetFile,
    first: ColumnCondition,
    also: Sequence[NarrowedCondition],
    row_groups: tuple[int, ...],
    possible: Sequence[int],
    *,
    with_rows: bool,
) -> FileAnswers:
    """Return which of the values at the `possible` positions all rows have, and which rows these
    are."""
    about = first.about
    assert isinstance(about, MissingColumn)
    texts = {at: text_of(first.values[at]) for at in possible}
    certain = [at for at in possible if about.is_in_all_rows(first.values[at])]
    certain_texts = tuple(texts[at] for at in certain)
    starts = file.footer.first_rows()
    ranges = tuple(RowRange(at, starts[at], starts[at + 1]) for at in row_groups)
    rows = AllRows(ranges, file.deletes, certain_texts, about.name)
    doubt = _doubt_of(also)
    counts = dict.fromkeys(row_groups, 0)
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
    if doubt is not None:
        certain = []
    groups = tuple(counts)
    num_rows = sum(counts.values())
    hits = []
    for at in possible:
        if at in certain:
            hits.append(Hit(texts[at], groups, PRESENT, None, num_rows, at))
        else:
            reason = doubt or about.reason
            hits.append(Hit(texts[at], groups, CANNOT_SAY, reason, position=at))
    listed: Sequence[RowMatch] = ()
    if with_rows and certain:
        listed = LongSequence(RowMatch, rows, num_rows * len(certain))
    return FileAnswers(tuple(hits), (), tuple_of_few(listed), unreadable)


def _doubt_of(also: Sequence[NarrowedCondition]) -> str | None:
    """Return why not all rows certainly satisfy conditions on columns that the file lacks."""
    for narrowed in also:
        each = narrowed.condition
        assert isinstance(each.about, MissingColumn)
        if not any(map(each.about.is_in_all_rows, each.values)):
            return f"column {each.named.name}: {each.about.reason}"
    return None
