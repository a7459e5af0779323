"""Queries for `advise`: `user_id = 42 AND country IN ('SE', 'NO')`, and the row groups that min, max, dictionaries and filters leave.

Names are written as elsewhere in this tool, or in double quotes; values as SQL has them: numbers, 'text' with '' for a quote, and DATE
'2026-01-31' or TIMESTAMP '...', whose first word may be left out. Filters answer only = and IN, so nothing else is accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.file.answers import ask_row_group
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import by_dictionary, by_statistics
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet.columns import find_column, quote
from sbbf_tool.parquet.literals import ABSENT, MAYBE
from sbbf_tool.predicates import AllOf, Comparison, Parser, Token

THERE, NOT_THERE, UNKNOWN, FILTER_PASSES = "there", "not there", "unknown", "filter passes"


class Condition(NamedTuple):
    """A column, and the values that satisfy the condition."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    conditions: tuple[Condition, ...]


class _Parser(Parser):
    what, hint = "query", "write column = value or column IN (value, ...), joined by AND"
    token = re.compile(
        r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<name>(?:`(?:[^`]|``)*`|[^\W\d][\w$]*)(?:\.(?:`(?:[^`]|``)*`|[\w$]+))*)"""
        r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<sign>[=(),;]))"""
    )
    comparisons = frozenset("=")
    prefixes = ("DATE", "TIME", "TIMESTAMP", "UUID", "DECIMAL")
    only_and = True

    def _split(self) -> list[Token]:
        tokens = super()._split()
        return tokens[:-1] if tokens and tokens[-1].text == ";" else tokens

    def literal(self, token: Token) -> Token:
        if token.is_word("NULL"):
            raise _nothing_equals_null(self.text)
        return token if token.is_word("TRUE", "FALSE") else super().literal(token)


def parse_query(text: str) -> Query:
    """Parse a query. Raises UsageError, with the part that is not understood."""
    parsed = _Parser(text).parse()
    operands = parsed.operands if isinstance(parsed, AllOf) else (parsed,)
    conditions = tuple(_condition(one) for one in operands if isinstance(one, Comparison))
    return Query(" ".join(text.split()).rstrip("; "), conditions)


def _condition(comparison: Comparison) -> Condition:
    column = comparison.column
    name = quote((column.unquoted,)) if column.kind == "quoted" else column.text
    return Condition(name, tuple(token.unquoted if token.kind == "text" else token.text for token in comparison.literals))


def _nothing_equals_null(text: str) -> UsageError:
    return UsageError(f"query {text!r}: nothing equals NULL", hint="a filter knows no nulls, and IS NULL does not ask it")


@dataclass(slots=True)
class QueryCounts:
    """The row groups that remain for one query; counts of several files add up.

    For each row group that min and max leave, `open` has the knowledge about each condition, and the number of its values.
    """

    row_groups: int = 0
    after_statistics: int = 0
    after_dictionary: int = 0
    after_filters: int = 0
    by_column: Counter[str] = field(default_factory=Counter)
    """Row groups that min and max leave of each condition of a column by itself."""
    asked_of_column: Counter[str] = field(default_factory=Counter)
    open: Counter[tuple[tuple[str, str, int], ...]] = field(default_factory=Counter)
    missing: frozenset[str] = frozenset()
    """Columns that are in none of the files."""

    def add(self, other: QueryCounts, *, first: bool) -> None:
        self.row_groups += other.row_groups
        self.after_statistics += other.after_statistics
        self.after_dictionary += other.after_dictionary
        self.after_filters += other.after_filters
        self.by_column.update(other.by_column)
        self.asked_of_column.update(other.asked_of_column)
        self.open.update(other.open)
        self.missing = other.missing if first else self.missing & other.missing

    def left_with(self, rates: Mapping[str, float]) -> float:
        """Return the average number of remaining row groups where these columns have filters of these FPPs.

        Row groups about which nothing is known count as not holding the values.
        """
        return sum(
            count * prod(_chance(state, values, rates.get(column)) for column, state, values in row) for row, count in self.open.items()
        )


def _chance(state: str, values: int, fpp: float | None) -> float:
    return 1.0 if fpp is None or state in (THERE, FILTER_PASSES) else 1 - (1 - fpp) ** values


def count_query(file: ParquetFile, query: Query, reuse: Reuse | None = None) -> QueryCounts:
    """Count the row groups that remain after min, max, dictionaries and filters have pruned a query.

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
            with file.named():
                question = reuse.question_of(column, condition.values)
            if any(literal.is_null for literal in question.literals):
                raise _nothing_equals_null(query.text)
            questions.append(question)
    counts.missing = frozenset(missing)
    if missing:
        return counts
    for number in range(file.footer.num_row_groups):
        counts.row_groups += 1
        left = [_any_maybe(answer.answer for answer in by_statistics(file, number, question)) for question in questions]
        for question, stays in zip(questions, left, strict=True):
            counts.by_column[question.column.name] += stays
            counts.asked_of_column[question.column.name] += 1
        if not all(left):
            continue
        counts.after_statistics += 1
        states = []
        for question in questions:
            known = by_dictionary(file, number, question)
            stays = known is None or _any_maybe(answer.answer for answer in known)
            there = known is not None and any(answer.answer == MAYBE for answer in known)
            filters = [answer.answer for answer in ask_row_group(file, number, question)]
            passes = FILTER_PASSES if MAYBE in filters else ABSENT if not _any_maybe(filters) else None
            states.append((question.column.name, THERE if there else NOT_THERE if not stays else UNKNOWN, len(question.literals), passes))
        counts.after_dictionary += all(state != NOT_THERE for _, state, _, _ in states)
        if all(passes != ABSENT for *_, passes in states):
            counts.after_filters += 1
            counts.open[tuple((name, passes or state, values) for name, state, values, passes in states)] += 1
    return counts


def _any_maybe(answers: Iterable[str]) -> bool:
    return any(answer != ABSENT for answer in answers)
