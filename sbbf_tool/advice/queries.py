"""Queries for `advise`, such as `user_id = 42 AND country IN ('SE', 'NO')`, and the number of row
groups that each query reads.

Names are written as elsewhere in this tool, or in double quotes. Values are written as in SQL:
numbers, 'text' with '' for a quote, and DATE '2026-01-31' or TIMESTAMP '...', in which the keyword
is optional. Only =, IN and IS NULL are accepted, and no filter answers the last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, NoReturn

from sbbf_tool.errors import UsageError
from sbbf_tool.file.filter_answers import by_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import answers_by, answers_by_statistics, by_dictionary
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet.columns import find_column, quote
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from sbbf_tool.predicates import AllOf, Comparison, IsNull, Parser, Token
from sbbf_tool.reports.probe import RowGroupAnswer

PRESENT, NOT_PRESENT, UNKNOWN, FILTER_PASSES = "present", "not present", "unknown", "filter passes"
"""States of a condition in a row group: `filter passes` if a filter may hold a value, otherwise the
answer of the dictionary."""


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
        r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<name>(?:`(?:[^`]|``)*`|[^\W\d][\w$]*)(?:\.(?:`(?:[^`]|``)*`|[\w$]+))*)"""
        r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<sign>[=(),;]))"""
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
        return tokens[:-1] if tokens and tokens[-1].text == ";" else tokens

    def check_literal(self, token: Token) -> Token:
        if token.is_word("NULL"):
            raise _build_null_error(self.text)
        return token if token.is_word("TRUE", "FALSE") else super().check_literal(token)


def parse_query(text: str) -> Query:
    """Parse a query. Raises UsageError that quotes the part that cannot be parsed."""
    expression = _QueryParser(text).parse()
    operands = expression.operands if isinstance(expression, AllOf) else (expression,)
    conditions = tuple(
        _build_condition(operand)
        for operand in operands
        if isinstance(operand, Comparison | IsNull)
    )
    return Query(" ".join(text.split()).rstrip("; "), conditions)


def _build_condition(condition: Comparison | IsNull) -> Condition:
    column = condition.column
    name = quote((column.unquoted,)) if column.kind == "quoted" else column.text
    literals = () if isinstance(condition, IsNull) else condition.literals
    return Condition(
        name,
        tuple(token.unquoted if token.kind == "text" else token.text for token in literals)
        or (None,),
    )


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
        return sum(
            count
            * prod(
                _estimate_chance(state, values, fpps.get(column)) for column, state, values in row
            )
            for row, count in self.condition_states.items()
        )


def _estimate_chance(state: str, values: int, fpp: float | None) -> float:
    return 1.0 if fpp is None or state in (PRESENT, FILTER_PASSES) else 1 - (1 - fpp) ** values


def count_query(file: ParquetFile, query: Query, reuse: Reuse | None = None) -> QueryCounts:
    """Count the row groups that remain after min, max, dictionaries and filters have pruned a
    query.

    Raises UsageError for a value that a column cannot hold.
    """
    counts, reuse = QueryCounts(), reuse or Reuse()
    questions, missing = [], set()
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
    if missing or not questions:
        return counts
    for number in range(file.footer.num_row_groups):
        counts.row_groups += 1
        may_match = [
            _may_hold_any(answers_by_statistics(file, number, question)) for question in questions
        ]
        for question, may_hold in zip(questions, may_match, strict=True):
            counts.after_statistics_by_column[question.column.name] += may_hold
            counts.row_groups_by_column[question.column.name] += 1
        if not all(may_match):
            continue
        counts.after_statistics += 1
        states = []
        for question in questions:
            dictionary = by_dictionary(file, number, question, question.candidates())
            dictionary_answers = (
                None if dictionary is None else answers_by(question, number, dictionary)
            )
            may_hold = dictionary_answers is None or _may_hold_any(dictionary_answers)
            is_present = dictionary_answers is not None and any(
                each.answer == MAYBE for each in dictionary_answers
            )
            filter_answers = answers_by(
                question, number, by_filter(file, number, question, question.candidates())
            )
            is_passed = any(each.answer == MAYBE for each in filter_answers)
            filter_state = (
                FILTER_PASSES if is_passed else None if _may_hold_any(filter_answers) else ABSENT
            )
            state = PRESENT if is_present else UNKNOWN if may_hold else NOT_PRESENT
            states.append((question.column.name, state, len(question.literals), filter_state))
        counts.after_dictionary += all(state != NOT_PRESENT for _, state, _, _ in states)
        if all(filter_state != ABSENT for *_, filter_state in states):
            counts.after_filters += 1
            counts.condition_states[
                tuple(
                    (name, filter_state or state, values)
                    for name, state, values, filter_state in states
                )
            ] += 1
    return counts


def _may_hold_any(answers: Iterable[RowGroupAnswer]) -> bool:
    return not all(answer.is_absent for answer in answers)
