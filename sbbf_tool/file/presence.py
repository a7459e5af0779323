"""The values that are present in a file, in which rows: its columns are read in the row groups that
may hold them, and rows that a table has deleted are left out.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sbbf_tool.file.condition_rows import (
    DecidedRows,
    ReadValues,
    decide_rows,
    find_rows,
    read_values,
)
from sbbf_tool.file.confirm import ROUNDED, Match, ValueRows, drop_deleted, keep_rows
from sbbf_tool.file.filter_answers import BulkAnswer
from sbbf_tool.file.hits import FileAnswers, find_answers, tuple_of_few
from sbbf_tool.file.question import Question
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY
from sbbf_tool.reports.probe import (
    PRESENT,
    Hit,
    InconclusiveRowGroups,
    LongSequence,
    RowGroupAnswer,
    RowMatch,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.file.conditions import NarrowedCondition
    from sbbf_tool.file.judgment import FileCondition
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.file.pruning import RowGroupAnswers


class _Subject(NamedTuple):
    """What rows are looked for."""

    name: str
    """The column."""
    text: Callable[[int], str]
    """Returns how the value at a position is reported."""


class _Presence:
    """The row groups that have each value, and in how many rows."""

    def __init__(self, subject: _Subject) -> None:
        self._subject = subject
        self._row_groups: dict[Match, list[int]] = {}
        self._counts: Counter[Match] = Counter()

    def add(self, row_group: int, values: Iterable[ValueRows]) -> None:
        for match, rows in values:
            self._row_groups.setdefault(match, []).append(row_group)
            self._counts[match] += len(rows)

    def count_rows(self) -> int:
        """Count the rows that certainly have a value, once for each value."""
        num_rows = 0
        for match, count in self._counts.items():
            if not match.is_rounded:
                num_rows += count
        return num_rows

    def hits(self, doubt: str | None) -> list[Hit]:
        """Return the row groups of each value. With a doubt, no row is certain."""
        matches = sorted(self._row_groups)
        hits = (self._hit(match, doubt) for match in matches)
        return [hit for hit in hits if hit.row_groups]

    def _hit(self, match: Match, doubt: str | None) -> Hit:
        at = match.position
        text = self._subject.text(at)
        row_groups = self._row_groups[match]
        if doubt is not None:
            return Hit(text, tuple(row_groups), CANNOT_SAY, doubt, position=at)
        if match.is_rounded:
            # Where the value itself is present, what is close to it does not matter.
            present = self._row_groups.get(Match(at), ())
            others = tuple(number for number in row_groups if number not in present)
            return Hit(text, others, CANNOT_SAY, ROUNDED, position=at)
        return Hit(text, tuple(row_groups), PRESENT, None, self._counts[match], at)


def confirm_values(
    file: ParquetFile,
    question: Question,
    answers: Sequence[RowGroupAnswers],
    also: Sequence[NarrowedCondition],
    condition: FileCondition | None,
    *,
    with_rows: bool,
) -> FileAnswers:
    """Read the columns of the row groups that may hold values: return the values that are there,
    and what reading cannot show. Rows must satisfy the other conditions too."""
    rest: list[RowGroupAnswers] = []
    unreadable: list[str] = []

    def values_by_row_group() -> Iterator[tuple[int, list[ValueRows]]]:
        for each in answers:
            content = read_values(file, question, each)
            if content.values or not content.rest.is_absent:
                content = _keep_rows(file, content, also, condition)
            unreadable.extend(content.unreadable)
            rest.append(content.rest)
            yield each.row_group, content.values

    subject = _Subject(question.column.name, question.text)
    present = _conclude(file, subject, values_by_row_group(), with_rows=with_rows)
    open_answers = find_answers(question, rest)
    return FileAnswers(
        (*present.hits, *open_answers.hits),
        open_answers.inconclusive,
        present.rows,
        [*unreadable, *present.unreadable],
    )


def confirm_condition(
    condition: FileCondition,
    row_groups: Iterable[int],
    column: str,
    text: str,
    *,
    with_rows: bool,
) -> FileAnswers:
    """Read the columns of a condition: return the rows that satisfy it, as those of the value
    `text` of a column, and what reading cannot show. Raises UsageError if nothing decides a
    part."""
    undecided: dict[str | None, list[int]] = {}
    unreadable: list[str] = []

    def read_rows() -> Iterator[tuple[int, list[ValueRows]]]:
        for row_group in row_groups:
            decided = decide_rows(condition, row_group)
            unreadable.extend(decided.unreadable)
            if decided.doubt is not None:
                undecided.setdefault(decided.doubt, []).append(row_group)
            rows = np.flatnonzero(decided.certain).astype(np.uint64)
            if len(rows):
                value = ValueRows(Match(0), array("Q", rows.tobytes()))
                yield row_group, [value]

    subject = _Subject(column, lambda at: text)
    present = _conclude(condition.file, subject, read_rows(), with_rows=with_rows)
    inconclusive = []
    for doubt, numbers in undecided.items():
        inconclusive.append(InconclusiveRowGroups(tuple(numbers), CANNOT_SAY, doubt))
    return present._replace(
        inconclusive=tuple(inconclusive), unreadable=[*unreadable, *present.unreadable]
    )


def _conclude(
    file: ParquetFile,
    subject: _Subject,
    values_by_row_group: Iterable[tuple[int, list[ValueRows]]],
    *,
    with_rows: bool,
) -> FileAnswers:
    """Leave out the rows that a table has deleted; return what is present, and the rows."""
    deletes = file.deletes
    keeps_rows = bool(with_rows or deletes)
    presence = _Presence(subject)
    kept = {}
    for row_group, values in values_by_row_group:
        if keeps_rows:
            kept[row_group] = values
        else:
            presence.add(row_group, values)
    doubt = None
    unreadable: Sequence[str] = ()
    first_rows = file.footer.first_rows() if kept else []
    if kept and deletes:
        remaining = drop_deleted(kept, first_rows, deletes)
        kept = remaining.by_row_group
        doubt = remaining.doubt
        unreadable = remaining.unreadable
    for row_group, values in kept.items():
        presence.add(row_group, values)
    rows: Sequence[RowMatch] = ()
    if with_rows and doubt is None:
        list_rows = partial(_list_rows, subject, kept, first_rows)
        num_rows = presence.count_rows()
        rows = tuple_of_few(LongSequence(RowMatch, list_rows, num_rows))
    return FileAnswers(tuple(presence.hits(doubt)), (), rows, unreadable)


def _list_rows(
    subject: _Subject, kept: Mapping[int, list[ValueRows]], first_rows: Sequence[int]
) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield the fields of a `RowMatch` for each row that certainly has a value, in order."""
    for row_group, values in kept.items():
        rows_of_values = [
            zip(rows, repeat(match.position)) for match, rows in values if not match.is_rounded
        ]
        first_row = first_rows[row_group]
        for row, at in merge(*rows_of_values):
            yield row_group, first_row + row, subject.text(at), subject.name, at


def _keep_rows(
    file: ParquetFile,
    content: ReadValues,
    also: Sequence[NarrowedCondition],
    condition: FileCondition | None,
) -> ReadValues:
    """Keep the rows that satisfy the other conditions."""
    if not also and condition is None:
        return content
    values, rest, _ = content
    number = rest.row_group
    unreadable = [*content.unreadable]
    num_rows = file.footer.num_rows(number) or 0
    possible = np.full(num_rows, not rest.is_absent)
    for _, rows in values:
        possible[np.asarray(rows, np.int64)] = True
    certain = possible.copy()
    reason = None
    for each in also:
        satisfying = _find_rows(file, each, number, possible)
        unreadable += satisfying.unreadable
        certain &= satisfying.certain
        possible &= satisfying.possible
        if satisfying.doubt is not None and reason is None:
            reason = f"column {each.condition.named.name}: {satisfying.doubt}"
    if condition is not None and possible.any():
        decided = decide_rows(condition, number)
        unreadable += decided.unreadable
        certain &= decided.certain
        possible &= decided.possible
        reason = reason or decided.doubt
    is_any_possible = possible.any()
    is_any_open = (possible & ~certain).any()
    if not is_any_possible or is_any_open:
        answer = CANNOT_SAY if is_any_possible else ABSENT
        verdict = RowGroupAnswer(number, answer, reason)
        bulk_answer = BulkAnswer(b"", answer, reason)
        rest = rest._replace(data=bulk_answer, verdicts=dict.fromkeys(rest.verdicts, verdict))
    kept = keep_rows(values, certain.__getitem__)
    return ReadValues(kept, rest, unreadable)


def _find_rows(
    file: ParquetFile, condition: NarrowedCondition, row_group: int, possible: NDArray[np.bool_]
) -> DecidedRows:
    """Find the rows that satisfy a condition. Nothing is read if no row is possible."""
    certain = np.zeros_like(possible)
    about = condition.about
    if not isinstance(about, Question):
        certain |= any(map(about.is_in_all_rows, condition.condition.values))
        reason = None if certain.all() else about.reason
        return DecidedRows(certain, np.ones_like(possible), reason)
    if not possible.any():
        return DecidedRows(certain, certain)
    found = find_rows(file, about, condition.answers[row_group])
    if found.doubt == ROUNDED and not (possible & found.possible & ~found.certain).any():
        return found._replace(doubt=None)
    return found
