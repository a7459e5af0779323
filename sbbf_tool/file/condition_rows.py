"""The rows of a row group that satisfy a condition: its columns are read, and every part is decided
row by row. What no part decides is an error, and never a longer list of rows.

NaN is equal to itself and above all numbers, as in most query engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbbf_tool.errors import UsageError
from sbbf_tool.file.confirm import ROUNDED, ValueRows, can_confirm, find_values
from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.filter_answers import BulkAnswer
from sbbf_tool.file.judgment import FileCondition, PartOfFile
from sbbf_tool.file.pruning import (
    RowGroupAnswers,
    answer_null,
    query_or_doubt,
    without_statistics,
)
from sbbf_tool.file.question import Question
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY
from sbbf_tool.parquet.ordering import find_sides
from sbbf_tool.parquet.statistics import order_of
from sbbf_tool.predicates import (
    ANYTHING,
    BY_ENGINE,
    UNDECIDED,
    IsNull,
    Other,
    Part,
    Truth,
    ensure_answered,
    judge,
)
from sbbf_tool.reports.probe import RowGroupAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.columns import Column


class DecidedRows(NamedTuple):
    """The rows of a row group, by a flag for each."""

    certain: NDArray[np.bool_]
    """Rows that satisfy the condition."""
    possible: NDArray[np.bool_]
    """These, and rows of which reading does not show it."""
    doubt: str | None = None
    """Why reading does not show it."""
    unreadable: Sequence[str] = ()


class ReadValues(NamedTuple):
    """The values that were read in a row group."""

    values: list[ValueRows]
    rest: RowGroupAnswers
    """What reading does not show."""
    unreadable: Sequence[str] = ()
    """Column chunks that cannot be read: place and reason."""


def decide_rows(condition: FileCondition, row_group: int) -> DecidedRows:
    """Read the columns of a condition in a row group. Raises UsageError if nothing decides a part,
    UnreadableError and RefusedError."""
    ensure_decided(condition)
    reader = _PartsInRows(condition, row_group)
    truth = judge(condition.condition, reader.judge)
    certain = truth.may_be_true & ~(truth.may_be_false | truth.may_be_null)
    doubt = None
    if (truth.may_be_true & ~certain).any():
        doubt = "; ".join(reader.doubts)
    return DecidedRows(certain, truth.may_be_true, doubt, reader.unreadable)


def ensure_decided(condition: FileCondition) -> None:
    """Raise UsageError if reading does not decide a part of a condition."""
    ensure_answered(condition.condition, UNDECIDED, BY_ENGINE)
    with condition.file.locate_errors():
        for of_file in condition.parts.values():
            about = of_file.condition.about
            if not isinstance(about, Question):
                continue
            if about.column.max_repetition:
                reason = f"column {about.column.name} is in a list"
                raise UsageError(f"nothing decides {of_file.part.text}: {reason}", hint=BY_ENGINE)
            if not of_file.is_answered:
                reason = f"readers convert values of {about.column.type_name} for it"
                hint = "write a value of the column; text is in single quotes"
                if of_file.fits and order_of(about.column) is None:
                    reason = f"readers share no order of values of {about.column.type_name}"
                    hint = BY_ENGINE
                raise UsageError(f"nothing decides {of_file.part.text}: {reason}", hint=hint)


class _PartsInRows:
    """Decides the parts of a condition in the rows of a row group."""

    def __init__(self, condition: FileCondition, row_group: int) -> None:
        self._condition = condition
        self._file = condition.file
        self._row_group = row_group
        self._num_rows = self._file.footer.num_rows(row_group) or 0
        self._truths: dict[Part, Truth] = {}
        self._nulls: dict[int, NDArray[np.bool_]] = {}
        """Which rows are null, by the index of a column."""
        self.doubts: dict[str, None] = {}
        self.unreadable: list[str] = []

    def judge(self, part: Part) -> Truth:
        """Return what a part may be in each row."""
        assert not isinstance(part, Other), "nothing answers the part"
        truth = self._truths.get(part)
        if truth is None:
            truth = self._decide(self._condition.parts[part])
            self._truths[part] = truth
        return truth

    def _decide(self, of_file: PartOfFile) -> Truth:
        about = of_file.condition.about
        if not isinstance(about, Question):
            truth = about.judge(of_file.part)
            if sum(truth) > 1:
                self._doubt(about.name, about.reason)
            return self._for_all_rows(truth)
        column = about.column
        doubt = doubt_of_chunk(self._file, self._row_group, column)
        if doubt is not None:
            return self._unknown(column, doubt)
        return self._read(of_file, about)

    def _read(self, of_file: PartOfFile, question: Question) -> Truth:
        column = question.column
        if isinstance(of_file.part, IsNull):
            decide: Any = self._decide_nulls
        elif of_file.part.sign == "=":
            decide = self._find_equals
        else:
            decide = self._compare
        truth: Truth | BulkAnswer = query_or_doubt("column chunk", decide, of_file, question)
        if not isinstance(truth, BulkAnswer):
            return truth
        assert truth.unreadable is not None
        self.unreadable.append(truth.unreadable)
        return self._unknown(column, truth.reason or CANNOT_SAY)

    def _doubt(self, column: str, reason: str) -> None:
        self.doubts[f"column {column}: {reason}"] = None

    def _unknown(self, column: Column, reason: str) -> Truth:
        self._doubt(column.name, reason)
        return self._for_all_rows(ANYTHING)

    def _for_all_rows(self, truth: Truth) -> Truth:
        return Truth(*(np.full(self._num_rows, each) for each in truth))

    def _find_nulls(self, column: Column) -> NDArray[np.bool_]:
        nulls = self._nulls.get(column.index)
        if nulls is not None:
            return nulls
        answer, _ = answer_null(self._file, self._row_group, column)
        if column.max_definition == 0 and answer == ABSENT:
            return np.zeros(self._num_rows, np.bool_)
        nulls = np.ones(self._num_rows, np.bool_)
        for values in self._file.values(self._row_group, column, with_rows=True):
            nulls[values.rows] = False
        self._nulls[column.index] = nulls
        return nulls

    def _decide_nulls(self, of_file: PartOfFile, question: Question) -> Truth:
        nulls = self._find_nulls(question.column)
        return Truth(nulls, ~nulls, np.zeros_like(nulls))

    def _find_equals(self, of_file: PartOfFile, question: Question) -> Truth:
        """Find the rows that have one of the values, as `probe` confirms them."""
        column = question.column
        nulls = self._find_nulls(column)
        answers = without_statistics(self._file, self._row_group, question)
        found = find_rows(self._file, question, answers)
        self.unreadable += found.unreadable
        if found.doubt is not None:
            self._doubt(column.name, found.doubt)
        return Truth(found.possible, ~(found.certain | nulls), nulls)

    def _compare(self, of_file: PartOfFile, question: Question) -> Truth:
        """Compare all values of a chunk with the constant of a part."""
        column = question.column
        part = of_file.part
        assert not isinstance(part, IsNull)
        assert of_file.keys is not None
        (keys,) = of_file.keys
        nulls = np.ones(self._num_rows, np.bool_)
        may_be_true = np.zeros_like(nulls)
        may_be_false = np.zeros_like(nulls)
        for values in self._file.values(self._row_group, column, with_rows=True):
            sides = find_sides(values, keys)
            equal = ~(sides.below | sides.above)
            holds = np.zeros_like(equal)
            for sign, flags in zip("<=>", (sides.below, equal, sides.above), strict=True):
                if sign in part.sign:
                    holds |= flags
            fails = ~holds
            if not keys.is_exact:
                holds |= equal
                fails |= equal
                if equal.any():
                    self._doubt(column.name, ROUNDED)
            nulls[values.rows] = False
            may_be_true[values.rows] = holds
            may_be_false[values.rows] = fails
        self._nulls[column.index] = nulls
        return Truth(may_be_true, may_be_false, nulls)


def find_rows(file: ParquetFile, question: Question, answers: RowGroupAnswers) -> DecidedRows:
    """Find the rows of a row group that have one of the values, as `probe` confirms them."""
    content = read_values(file, question, answers)
    num_rows = file.footer.num_rows(answers.row_group) or 0
    certain = np.zeros(num_rows, np.bool_)
    rounded = np.zeros_like(certain)
    for match, rows in content.values:
        flags = rounded if match.is_rounded else certain
        flags[np.asarray(rows, np.int64)] = True
    doubt = _find_doubt(content.rest)
    if doubt is not None:
        return DecidedRows(certain, np.ones_like(certain), doubt, content.unreadable)
    if (rounded & ~certain).any():
        doubt = ROUNDED
    return DecidedRows(certain, certain | rounded, doubt, content.unreadable)


def read_values(file: ParquetFile, question: Question, answers: RowGroupAnswers) -> ReadValues:
    """Read a column chunk: return the rows of the values that are there, and what reading does not
    show."""
    if answers.doubt is not None:
        return ReadValues([], answers)
    values = query_or_doubt("column chunk", find_values, file, question, answers)
    if isinstance(values, BulkAnswer):
        assert values.unreadable is not None
        unread = answers._replace(data=values)
        return ReadValues([], unread, (values.unreadable,))
    verdicts = {**answers.verdicts}
    for at in verdicts:
        if can_confirm(question, at):
            verdicts[at] = RowGroupAnswer(answers.row_group, ABSENT)
    answer = BulkAnswer()
    uncertain = equals.uncertainty(file.footer, question.column)
    if uncertain:
        answer = BulkAnswer(answer=CANNOT_SAY, reason=uncertain)
    rest = answers._replace(data=answer, verdicts=verdicts)
    return ReadValues(values, rest)


def _find_doubt(answers: RowGroupAnswers) -> str | None:
    """Return why a row group may hold values that reading does not show; None if it holds none."""
    if answers.is_absent:
        return None
    if answers.answers.reason:
        return answers.answers.reason
    for verdict in answers.verdicts.values():
        if not verdict.is_absent and verdict.reason:
            return verdict.reason
    return CANNOT_SAY
