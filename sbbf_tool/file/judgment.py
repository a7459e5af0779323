"""What a condition may be in each row group of a file, without reading its pages.

Each part may be true, false or null. `=` and IN are answered by `pruning`, as in any other query;
other comparisons by min and max; IS NULL by counts of nulls; a column that the file lacks by the
value of the partition, or by null. Bounds ignore NaN, which engines order last: of a floating-point
column, no max excludes a larger value. A part that nothing answers may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.file.conditions import ColumnCondition, find_condition
from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.partition_order import truth_of
from sbbf_tool.file.pruning import (
    DICTIONARY,
    FILTER,
    STATISTICS,
    answer_null,
    format_bounds,
    narrow,
    query_statistics,
)
from sbbf_tool.file.question import Question
from sbbf_tool.parquet.literals import may_be_text
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.ordering import KeyRange, find_keys
from sbbf_tool.parquet.statistics import FLOAT, bounds, order_of
from sbbf_tool.predicates import (
    ANYTHING,
    ONLY_NULL,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Other,
    Part,
    Truth,
    all_of,
    any_of,
    conjuncts_of,
    judge,
    parts_of,
    quoting_of,
    values_in,
)

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.columns import Column


UNANSWERED = "nothing answers"
"""Beginning of a note on a part of a condition."""


class PartOfFile(NamedTuple):
    """A part of a condition, and what a file has of its column."""

    part: Comparison | IsNull
    condition: ColumnCondition
    keys: tuple[KeyRange, ...] | None = None
    """The keys of the constants in the order of the column; None without such an order."""

    @property
    def question(self) -> Question | None:
        """What `pruning` answers; None for comparisons other than equality."""
        about = self.condition.about
        is_equality = isinstance(self.part, IsNull) or self.part.sign == "="
        return about if is_equality and isinstance(about, Question) else None

    @property
    def is_answered(self) -> bool:
        """Whether the kind of the constants is that of the column, so that no reader converts
        them."""
        question = self.condition.about
        if isinstance(self.part, IsNull) or not isinstance(question, Question):
            return True
        if self.part.sign != "=":
            return self.keys is not None
        return self.fits

    @property
    def fits(self) -> bool:
        """Whether constants are written as values of the column are."""
        question = self.condition.about
        assert isinstance(self.part, Comparison)
        assert isinstance(question, Question)
        return all(fits(question.column, constant) for constant in self.part.constants)


class Exclusion(NamedTuple):
    """Why a row group has no row that satisfies a condition."""

    text: str
    """The part that excludes it, or the whole condition if no part alone does."""
    means: str
    """statistics, dictionary or filter; statistics also for the value of a partition."""
    reason: str | None = None


class FileCondition:
    """A condition, and what a file tells of its parts."""

    def __init__(
        self,
        file: ParquetFile,
        condition: Expression,
        *,
        filters_only: bool = False,
        strict: bool | None = None,
    ) -> None:
        """With `filters_only`, no statistics are used. `strict` is that of the run, unless given:
        whether a column that the file lacks is an error. Raises UsageError for a column that is
        nowhere, and for a value that its column cannot hold."""
        self.file = file
        self.condition = condition
        self.parts: dict[Part, PartOfFile] = {}
        for part in parts_of(condition):
            if not isinstance(part, Other):
                self.parts[part] = find_part(file, part, strict=strict)
        self._absent: dict[Part, dict[int, str]] = {}
        """By what row groups are excluded by the values of a part."""
        self.unreadable: list[str] = []
        self._filters_only = filters_only

    @property
    def conditions(self) -> list[ColumnCondition]:
        """The conditions on columns by its parts."""
        return [of_file.condition for of_file in self.parts.values()]

    def notes(self) -> list[str]:
        """Describe how values were read, and the parts that nothing answers."""
        texts: dict[str, None] = {}
        for of_file in self.parts.values():
            for keys in of_file.keys or ():
                if keys.note is not None:
                    texts[keys.note] = None
        for part in parts_of(self.condition):
            if part not in self.parts or not self.parts[part].is_answered:
                note = f"{UNANSWERED} {part.text}: any row may satisfy it"
                if isinstance(part, Other) and (quoting := quoting_of(part)):
                    note += f"; {quoting}"
                texts[note] = None
        return list(texts)

    def narrow(self, row_groups: Sequence[int], dialect: Dialect | None = None) -> list[int]:
        """Find the row groups that may have rows that satisfy the condition. Filters are read of
        those that statistics leave."""
        remaining = self.remaining(row_groups)
        for part, of_file in self.parts.items():
            if of_file.question is None or not of_file.is_answered:
                continue
            excluded = self._absent.setdefault(part, {})
            narrowed = narrow(
                self.file,
                of_file.question,
                remaining,
                dialect=dialect,
                filters_only=self._filters_only,
            )
            for answers in narrowed:
                self.unreadable += answers.unreadable
                if answers.is_absent:
                    excluded[answers.row_group] = answers.decided_by
            remaining = self.remaining(remaining)
        return remaining

    def remaining(self, row_groups: Sequence[int]) -> list[int]:
        """Find the row groups that may have such rows by what is known so far."""
        return [number for number in row_groups if self.judge(number).may_be_true]

    def judge(self, row_group: int, expression: Expression | None = None) -> Truth:
        """Return what the condition, or a part of it, may be in a row group."""
        return judge(expression or self.condition, partial(self._judge_part, row_group))

    def is_on_partitions(self, expression: Expression) -> bool:
        """Return whether a part of the condition has the same answer in all row groups, because the
        file lacks its columns."""
        for part in parts_of(expression):
            of_file = self.parts.get(part)
            if of_file is None or isinstance(of_file.condition.about, Question):
                return False
        return True

    def explain(self, row_group: int) -> Exclusion | None:
        """Return which part excludes a row group; None if it may have rows that satisfy the
        condition."""
        if self.judge(row_group).may_be_true:
            return None
        excluding = self.condition
        for conjunct in conjuncts_of(self.condition):
            if not self.judge(row_group, conjunct).may_be_true:
                excluding = conjunct
                break
        means = [STATISTICS]
        reasons = []
        for part in parts_of(excluding):
            of_file = self.parts.get(part)
            if of_file is not None:
                decided_by = self._absent.get(part, {}).get(row_group, STATISTICS)
                means.append(decided_by)
                if decided_by == STATISTICS:
                    reasons.append(self._reason_of(row_group, of_file))
        texts = dict.fromkeys(filter(None, reasons))
        return Exclusion(excluding.text, max(means, key=_ORDER.index), "; ".join(texts) or None)

    def _reason_of(self, row_group: int, of_file: PartOfFile) -> str | None:
        about = of_file.condition.about
        if not isinstance(about, Question):
            return about.reason
        column = about.column
        if self.file.footer.chunk_meta(row_group, column.index).has_only_nulls:
            return f"column {column.name}: all its values are null"
        limits = format_bounds(self.file, row_group, column)
        if limits is None:
            return None
        return f"column {column.name}: {limits[0]} to {limits[1]}"

    def _judge_part(self, row_group: int, part: Part) -> Truth:
        of_file = self.parts.get(part)
        if of_file is None:
            return ANYTHING
        about = of_file.condition.about
        if not isinstance(about, Question):
            return about.judge(of_file.part)
        if self._filters_only:
            truth = ANYTHING
        else:
            truth = judge_chunk(self.file, row_group, about, of_file)
        if row_group in self._absent.get(part, {}):
            return truth._replace(may_be_true=False)
        return truth


_ORDER = (STATISTICS, DICTIONARY, FILTER)


def find_part(file: ParquetFile, part: Comparison | IsNull, *, strict: bool | None) -> PartOfFile:
    """Return what a file has of the column of a part. Raises as `FileCondition` does."""
    looked_for = values_in(part)
    values: Sequence[object] = ()
    if looked_for is not None:
        values = looked_for.values
    condition = find_condition(file, part.column, values, strict=strict)
    about = condition.about
    if not isinstance(about, Question):
        about.judge(part)  # raises for a constant that is no value of the type
        return PartOfFile(part, condition)
    if any(literal.is_null for literal in about.literals) and isinstance(part, Comparison):
        with file.locate_errors():
            raise UsageError(f"{part.text}: no value equals NULL", hint="write column IS NULL")
    keys = None
    if isinstance(part, Comparison):
        keys = _find_keys(file, about.column, part)
    return PartOfFile(part, condition, keys)


def _find_keys(file: ParquetFile, column: Column, part: Comparison) -> tuple[KeyRange, ...] | None:
    """Return the keys of all constants; None if one of them has none."""
    strict = file.context.strict
    ranges = []
    for constant in part.constants:
        try:
            with file.locate_errors():
                keys = find_keys(column, constant.text, constant.kind, is_strict=strict)
        except UsageError:
            # The question has refused what no column of a single file can hold.
            if strict and part.sign != "=":
                raise
            return None
        if keys is None:
            return None
        ranges.append(keys)
    return tuple(ranges)


def fits(column: Column, constant: Constant) -> bool:
    """Return whether a constant is written as values of the column are. Readers convert text that
    is compared with a number or a date, in ways of their own."""
    if constant.kind == "text":
        return True
    if constant.kind == "boolean":
        return column.physical == "BOOLEAN"
    return column.physical != "BOOLEAN" and not may_be_text(column)


def judge_chunk(
    file: ParquetFile, row_group: int, question: Question, of_file: PartOfFile
) -> Truth:
    """Return what a part may be by the statistics of a chunk."""
    column = question.column
    part = of_file.part
    if doubt_of_chunk(file, row_group, column) or not of_file.is_answered:
        return ANYTHING
    meta = file.footer.chunk_meta(row_group, column.index)
    answer, _ = answer_null(file, row_group, column)
    may_be_null = answer != ABSENT
    if isinstance(part, IsNull):
        has_values = bool(column.max_repetition) or not meta.has_only_nulls
        return Truth(may_be_null, has_values, False)
    if meta.has_only_nulls and not column.max_repetition:
        return ONLY_NULL
    truths = [Truth(True, True, may_be_null)]
    if of_file.keys is not None:
        compare = partial(_compare, file, row_group, column, part.sign, may_be_null)
        truths = list(map(compare, of_file.keys))
    truth = any_of(truths)
    if part.sign == "=":
        statistics = query_statistics(file, row_group, question)
        truth = truth._replace(may_be_true=not statistics.is_absent)
    return truth


def _compare(
    file: ParquetFile, row_group: int, column: Column, sign: str, may_be_null: bool, keys: KeyRange
) -> Truth:
    """Return what a comparison may be by the bounds of a chunk."""
    limits = bounds(file.footer, row_group, column)
    unknown = Truth(True, True, may_be_null)
    if limits is None:
        return unknown
    orders = set()
    if limits.low < keys.high:
        orders.add("<")
    if limits.low <= keys.high and keys.low <= limits.high:
        orders.add("=")
        if not keys.is_exact:
            orders.update("<>")
    if limits.high > keys.low:
        orders.add(">")
    truth = truth_of(sign, frozenset(orders), may_be_null=may_be_null)
    if order_of(column) == FLOAT:
        # NaN is above all numbers, or every comparison with it is false.
        may_be_true = truth.may_be_true or ">" in sign
        truth = Truth(may_be_true, True, may_be_null)
    if column.max_repetition:
        # Readers differ in what they compare of a list.
        return all_of([truth, unknown])
    return truth
