"""Queries for `advise`, such as `user_id = 42 AND country IN ('SE', 'NO')`, and the number of row
groups that each query reads.

Names are written as elsewhere in this tool, or in double quotes. Values are written as in SQL:
numbers, 'text' with '' for a quote, and DATE '2026-01-31' or TIMESTAMP '...', in which the keyword
is optional. Only =, IN and IS NULL are accepted, and no filter answers the last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from sbbf_tool.errors import UsageError
from sbbf_tool.file.filter_answers import by_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import answers_by, answers_by_statistics, by_dictionary
from sbbf_tool.file.question import Candidates, Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet.columns import find_column, quote
from sbbf_tool.parquet.notation import MAYBE
from sbbf_tool.predicates import AllOf, Comparison, IsNull, Parser, Token
from sbbf_tool.reports.probe import RowGroupAnswer

# States of a condition in a row group: `filter passes` if a filter may hold a value, otherwise the
# answer of the dictionary.
PRESENT = "present"
NOT_PRESENT = "not present"
UNKNOWN = "unknown"
FILTER_PASSES = "filter passes"


class Condition(NamedTuple):
    """A column, and the values that satisfy the condition."""

    column: str
    values: tuple[str | None, ...]
    """None is null."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    conditions: tuple[Condition, ...]


class _QueryParser(Parser):
    name = "query"
    hint = (
        "write column = 'text or UUID', column IN (1, 2) or column IS NULL, joined by "
        "AND; a name with spaces in double quotes"
    )
    token = re.compile(
        r"""
        \s*(?:
            (?P<text>'(?:[^']|'')*')
            |(?P<quoted>"(?:[^"]|"")*")
            |(?P<name>(?:`(?:[^`]|``)*`|[^\W\d][\w$]*)(?:\.(?:`(?:[^`]|``)*`|[\w$]+))*)
            |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
            |(?P<sign>[=(),;])
        )
        """,
        re.VERBOSE,
    )
    comparisons = frozenset("=")
    prefixes = ("DATE", "TIME", "TIMESTAMP", "UUID", "DECIMAL")
    only_and = True

    def fail(self, token: Token) -> NoReturn:
        if token.text[:1] in ("<", ">", "!") or token.is_word("BETWEEN", "LIKE", "NOT"):
            reason = (
                "filters answer = and IN alone; of other conditions, min and max show "
                "which row groups are read"
            )
            raise UsageError(f"query {self.text!r} has {token.text}: {reason}")
        super().fail(token)

    def _split(self) -> list[Token]:
        tokens = super()._split()
        if tokens and tokens[-1].text == ";":
            tokens.pop()
        return tokens

    def check_literal(self, token: Token) -> Token:
        if token.is_word("NULL"):
            raise _build_null_error(self.text)
        if token.is_word("TRUE", "FALSE"):
            return token
        return super().check_literal(token)


def parse_query(text: str) -> Query:
    """Parse a query. Raises UsageError that quotes the part that cannot be parsed."""
    expression = _QueryParser(text).parse()
    operands = expression.operands if isinstance(expression, AllOf) else (expression,)
    conditions = []
    for operand in operands:
        if isinstance(operand, Comparison | IsNull):
            condition = _build_condition(operand)
            conditions.append(condition)
    words = " ".join(text.split())
    return Query(words.rstrip("; "), tuple(conditions))


def _build_condition(condition: Comparison | IsNull) -> Condition:
    column = condition.column
    name = quote((column.unquoted,)) if column.kind == "quoted" else column.text
    if isinstance(condition, IsNull) or not condition.literals:
        return Condition(name, (None,))
    return Condition(name, tuple(map(_value_of, condition.literals)))


def _value_of(literal: Token) -> str:
    return literal.unquoted if literal.kind == "text" else literal.text


def _build_null_error(text: str) -> UsageError:
    return UsageError(
        f"query {text!r}: no value equals NULL", hint="remove the condition; filters hold no nulls"
    )


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
            share = _estimate_share(conditions, fpps)
            remaining.append(row_groups * share)
        return sum(remaining)


def _estimate_share(
    conditions: tuple[tuple[str, str, int], ...], fpps: Mapping[str, float]
) -> float:
    """Estimate the share of row groups in these states that remain: one of one if no filter may
    exclude them."""
    share = 1.0
    for column, state, values in conditions:
        share *= _estimate_chance(state, values, fpps.get(column))
    return share


def _estimate_chance(state: str, values: int, fpp: float | None) -> float:
    if fpp is None or state in (PRESENT, FILTER_PASSES):
        return 1.0
    return 1 - (1 - fpp) ** values


def count_query(file: ParquetFile, query: Query, reuse: Reuse | None = None) -> QueryCounts:
    """Count the row groups that remain after min, max, dictionaries and filters have pruned a
    query.

    Raises UsageError for a value that a column cannot hold.
    """
    counts = QueryCounts()
    reuse = reuse or Reuse()
    questions: list[Question] = []
    missing = set()
    for condition in query.conditions:
        try:
            column = find_column(file.footer.columns, condition.column)
        except UsageError:
            missing.add(condition.column)
        else:
            with file.locate_errors():
                question = reuse.question_of(column, condition.values)
            if any(literal.is_null for literal in question.literals):
                raise _build_null_error(query.text)
            questions.append(question)
    counts.missing = frozenset(missing)
    if questions and not missing:
        for number in range(file.footer.num_row_groups):
            _count_row_group(file, number, questions, counts)
    return counts


def _count_row_group(
    file: ParquetFile, number: int, questions: Sequence[Question], counts: QueryCounts
) -> None:
    counts.row_groups += 1
    is_excluded = False
    for question in questions:
        may_hold = _may_hold_any(answers_by_statistics(file, number, question))
        counts.after_statistics_by_column[question.column.name] += may_hold
        counts.row_groups_by_column[question.column.name] += 1
        if not may_hold:
            is_excluded = True
    if is_excluded:
        return
    counts.after_statistics += 1
    is_in_dictionaries = True
    passes_filters = True
    states = []
    for question in questions:
        candidates = question.candidates()
        in_dictionary = _state_by_dictionary(file, number, question, candidates)
        if in_dictionary == NOT_PRESENT:
            is_in_dictionaries = False
        answers = answers_by(question, number, by_filter(file, number, question, candidates))
        state = in_dictionary
        if _holds_maybe(answers):
            state = FILTER_PASSES
        elif not _may_hold_any(answers):
            passes_filters = False
        states.append((question.column.name, state, len(question.literals)))
    if is_in_dictionaries:
        counts.after_dictionary += 1
    if passes_filters:
        counts.after_filters += 1
        counts.condition_states[tuple(states)] += 1


def _state_by_dictionary(
    file: ParquetFile, number: int, question: Question, candidates: Candidates
) -> str:
    """Return the answer of a dictionary for the values of a condition together."""
    dictionary = by_dictionary(file, number, question, candidates)
    if dictionary is None:
        return UNKNOWN
    answers = answers_by(question, number, dictionary)
    if _holds_maybe(answers):
        return PRESENT
    return UNKNOWN if _may_hold_any(answers) else NOT_PRESENT


def _holds_maybe(answers: Iterable[RowGroupAnswer]) -> bool:
    return any(answer.answer == MAYBE for answer in answers)


def _may_hold_any(answers: Iterable[RowGroupAnswer]) -> bool:
    return not all(answer.is_absent for answer in answers)
