"""Queries for `advise`, such as `user_id = 42 AND country IN ('SE', 'NO')`, and the number of row
groups that each query reads.

A query is a condition (`predicates`), or a SELECT with one. What = and IN look for is answered by
filters; of the other parts, those on partition columns choose files, and min, max and null counts
exclude row groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sbbf_tool.condition_parser import parse_condition
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.file.judgment import FileCondition
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import query_row_group, query_statistics, without_statistics
from sbbf_tool.file.question import Question
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from sbbf_tool.predicates import (
    ColumnValues,
    Expression,
    IsNull,
    columns_of,
    conjuncts_of,
    join,
    values_in,
)
from sbbf_tool.query_engines.steps import merge_answers

# States of a condition in a row group: `filter passes` if a filter may hold a value, otherwise the
# answer of the dictionary.
PRESENT = "present"
NOT_PRESENT = "not present"
UNKNOWN = "unknown"
FILTER_PASSES = "filter passes"
_STATES = {MAYBE: PRESENT, ABSENT: NOT_PRESENT}
"""State of a condition by the answer of a dictionary."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    conditions: tuple[ColumnValues, ...]
    """The values that rows must have by = and IN."""
    others: Expression | None = None
    """What rows must satisfy too."""


def parse_query(text: str) -> Query:
    """Parse a query. Raises UsageError that quotes the part that cannot be parsed."""
    conditions = []
    others = []
    for conjunct in conjuncts_of(parse_condition(text)):
        looked_for = values_in(conjunct)
        if looked_for is None or isinstance(conjunct, IsNull):
            others.append(conjunct)
        else:
            conditions.append(looked_for)
    words = " ".join(text.split())
    return Query(words.rstrip("; "), tuple(conditions), join(others) if others else None)


@dataclass(slots=True)
class QueryCounts:
    """Numbers of row groups that remain for one query; the counts of several files can be added."""

    row_groups: int = 0
    after_statistics: int = 0
    after_dictionary: int = 0
    after_filters: int = 0
    after_statistics_by_column: Counter[str] = field(default_factory=Counter)
    """Row groups that min and max leave for the conditions on one column alone."""
    row_groups_by_column: Counter[str] = field(default_factory=Counter)
    condition_states: Counter[tuple[tuple[str, str, int], ...]] = field(default_factory=Counter)
    """Row groups that remain after the filters, by column, state and number of values of each
    condition."""
    missing: frozenset[str] = frozenset()
    """Columns that no file has."""

    def add(self, counts: QueryCounts, *, first: bool) -> None:
        self.row_groups += counts.row_groups
        self.after_statistics += counts.after_statistics
        self.after_dictionary += counts.after_dictionary
        self.after_filters += counts.after_filters
        self.after_statistics_by_column.update(counts.after_statistics_by_column)
        self.row_groups_by_column.update(counts.row_groups_by_column)
        self.condition_states.update(counts.condition_states)
        self.missing = counts.missing if first else self.missing & counts.missing

    def estimate_remaining(self, fpps: Mapping[str, float]) -> float:
        """Estimate the average number of row groups that remain if these columns have filters with
        these FPPs.

        Row groups in an unknown state count as not holding the values.
        """
        remaining = []
        for conditions, row_groups in self.condition_states.items():
            # The share of these row groups that remain is one if no filter may exclude them.
            share = 1.0
            for column, state, values in conditions:
                share *= _estimate_chance(state, values, fpps.get(column))
            remaining.append(row_groups * share)
        return sum(remaining)


def _estimate_chance(state: str, values: int, fpp: float | None) -> float:
    if fpp is None or state in (PRESENT, FILTER_PASSES):
        return 1.0
    return 1 - (1 - fpp) ** values


def count_query(file: ParquetFile, query: Query) -> QueryCounts:
    """Count the row groups that remain after min, max, dictionaries and filters have pruned a
    query.

    A file that is not in the partitions of the query is not counted. Raises UsageError for a value
    that a column cannot hold.
    """
    reuse = file.context.reuse
    questions = []
    missing = set()
    for condition in query.conditions:
        about = _find_column(file, condition.column)
        if about is None:
            missing.add(condition.column)
        elif isinstance(about, Column):
            with file.locate_errors():
                question = reuse.question_of(about, condition.values)
            if any(literal.is_null for literal in question.literals):
                raise UsageError(
                    f"query {query.text!r}: no value equals NULL", hint="write column IS NULL"
                )
            questions.append(question)
        elif all(about.answer(value) == ABSENT for value in condition.values):
            return QueryCounts()
    others = None
    if query.others is not None:
        for name in columns_of(query.others):
            if _find_column(file, name) is None:
                missing.add(name)
        if not missing:
            others = FileCondition(file, query.others, strict=False)
            if _is_in_other_partition(others):
                return QueryCounts()
    counts = QueryCounts(missing=frozenset(missing))
    if not missing:
        _count_row_groups(file, questions, others, counts)
    return counts


def _find_column(file: ParquetFile, name: str) -> Column | MissingColumn | None:
    """Return the column with this name, or the value of the partition; None if the file has
    neither."""
    try:
        return find_column(file.footer.columns, name)
    except UsageError:
        missing = find_missing(file, name, strict=False)
    if missing is None:
        return None
    path = file.path
    is_partition = missing.is_partition or missing.partition_value is not None
    if isinstance(path, TableFile) and missing.name in path.partition_types:
        is_partition = True  # its value is null
    return missing if is_partition else None


def _is_in_other_partition(others: FileCondition) -> bool:
    """Return whether a part on partition columns alone excludes the file."""
    for conjunct in conjuncts_of(others.condition):
        if others.is_on_partitions(conjunct) and not others.judge(0, conjunct).may_be_true:
            return True
    return False


def _count_row_groups(
    file: ParquetFile,
    questions: Sequence[Question],
    others: FileCondition | None,
    counts: QueryCounts,
) -> None:
    row_groups = range(file.footer.num_row_groups)
    after_statistics = frozenset(row_groups)
    after_filters = after_statistics
    if others is not None:
        after_statistics = frozenset(others.remaining(row_groups))
        after_filters = frozenset(others.narrow(sorted(after_statistics)))
        _count_equalities(others, row_groups, counts)
    for number in row_groups:
        _count_row_group(
            file,
            number,
            questions,
            counts,
            is_excluded=number not in after_statistics,
            is_filtered=number not in after_filters,
        )


def _count_equalities(
    others: FileCondition, row_groups: Iterable[int], counts: QueryCounts
) -> None:
    """Count the row groups that min and max leave for each column that is compared by equality in a
    part, such as `a = 1 OR b = 2`."""
    for part, of_file in others.parts.items():
        question = of_file.question
        if question is None or isinstance(part, IsNull):
            continue
        for number in row_groups:
            name = question.column.name
            may_hold = not query_statistics(others.file, number, question).is_absent
            counts.after_statistics_by_column[name] += may_hold
            counts.row_groups_by_column[name] += 1


def _count_row_group(
    file: ParquetFile,
    number: int,
    questions: Sequence[Question],
    counts: QueryCounts,
    *,
    is_excluded: bool,
    is_filtered: bool,
) -> None:
    """Count a row group. `is_excluded` and `is_filtered` say whether statistics or filters exclude
    it by the other parts of the query."""
    counts.row_groups += 1
    for question in questions:
        may_hold = not query_statistics(file, number, question).is_absent
        counts.after_statistics_by_column[question.column.name] += may_hold
        counts.row_groups_by_column[question.column.name] += 1
        if not may_hold:
            is_excluded = True
    if is_excluded:
        return
    counts.after_statistics += 1
    is_in_dictionaries = True
    passes_filters = not is_filtered
    states = []
    for question in questions:
        known = without_statistics(file, number, question)
        answers = query_row_group(file, known, every_means=True)
        state = UNKNOWN
        # A filter that cannot be read excludes nothing; the advice on its column says so.
        if answers.dictionary is not None and answers.dictionary.unreadable:
            raise UnreadableError(answers.dictionary.unreadable, file=file.name)
        dictionary_answers = answers.by_dictionary()
        if dictionary_answers is not None:
            state = _STATES.get(merge_answers(dictionary_answers).answer, UNKNOWN)
        if state == NOT_PRESENT:
            is_in_dictionaries = False
        filter_answer = merge_answers(answers.by_filter())
        if filter_answer.answer == MAYBE:
            state = FILTER_PASSES
        elif filter_answer.is_absent:
            passes_filters = False
        states.append((question.column.name, state, len(question.literals)))
    if is_in_dictionaries:
        counts.after_dictionary += 1
    if passes_filters:
        counts.after_filters += 1
        counts.condition_states[tuple(states)] += 1
