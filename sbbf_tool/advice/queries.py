"""Queries as `advise` takes them: `user_id = 42 AND country IN ('SE', 'NO')`, and what min, max, dictionaries and filters leave of them.

Names are written as elsewhere in this tool, or in double quotes; values as SQL has them: numbers, 'text' with '' for a quote, and
DATE '2026-01-31' or TIMESTAMP '...', whose first word may be left out. A filter is asked by = and IN alone, so nothing else is taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import by_dictionary, by_statistics
from sbbf_tool.file.question import ask_row_group, question_of
from sbbf_tool.parquet.columns import find_column, quote
from sbbf_tool.parquet.literals import ABSENT, MAYBE

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<name>(?:`(?:[^`]|``)*`|[^\W\d][\w$]*)(?:\.(?:`(?:[^`]|``)*`|[\w$]+))*)"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<sign>[=(),;]))"""
)
_PREFIXES = ("DATE", "TIME", "TIMESTAMP", "UUID", "DECIMAL")
_WORDS_FOR_VALUES = ("TRUE", "FALSE")

THERE, NOT_THERE, UNKNOWN, FILTER_PASSES = "there", "not there", "unknown", "filter passes"


class Condition(NamedTuple):
    """A column, and the values of which it is to be one."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    conditions: tuple[Condition, ...]


class _Token(NamedTuple):
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words


def parse_query(text: str) -> Query:
    """Raises UsageError, with the part that was not understood."""
    tokens = list(_tokens(text))
    if tokens and tokens[-1].text == ";":
        tokens.pop()
    stream = iter((*tokens, _Token("end", "its end")))
    conditions = []
    while True:
        conditions.append(_condition(text, stream))
        last = next(stream)
        if last.kind == "end":
            return Query(" ".join(text.split()).rstrip("; "), tuple(conditions))
        if not last.is_word("AND"):
            raise _wrong(text, last)


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None or match.lastgroup is None:
            rest = stripped[position:].split()
            raise _wrong(text, _Token("", rest[0]))
        yield _Token(match.lastgroup, match[match.lastgroup])
        position = match.end()


def _condition(text: str, stream: Iterator[_Token]) -> Condition:
    name, sign = next(stream), next(stream, _Token("end", "its end"))
    if name.kind not in ("name", "quoted"):
        raise _wrong(text, name)
    column = quote((name.text[1:-1].replace('""', '"'),)) if name.kind == "quoted" else name.text
    if sign.text == "=":
        return Condition(column, (_value(text, next(stream), stream),))
    if not sign.is_word("IN"):
        raise _wrong(text, sign)
    if (bracket := next(stream)).text != "(":
        raise _wrong(text, bracket)
    values = []
    while True:
        values.append(_value(text, next(stream), stream))
        after = next(stream)
        if after.text == ")":
            return Condition(column, tuple(values))
        if after.text != ",":
            raise _wrong(text, after)


def _value(text: str, token: _Token, stream: Iterator[_Token]) -> str:
    if token.is_word(*_PREFIXES):
        token = next(stream)
        if token.kind != "text":
            raise _wrong(text, token)
    if token.kind == "text":
        return token.text[1:-1].replace("''", "'")
    if token.kind == "number" or token.is_word(*_WORDS_FOR_VALUES):
        return token.text
    if token.is_word("NULL"):
        raise _nothing_equals_null(text)
    raise _wrong(text, token)


def _nothing_equals_null(text: str) -> UsageError:
    return UsageError(f"query {text!r}: nothing equals NULL", hint="a filter knows no nulls, and IS NULL does not ask it")


def _wrong(text: str, token: _Token) -> UsageError:
    return UsageError(
        f"query {text!r} is not understood at {token.text!r}", hint="write column = value or column IN (value, ...), joined by AND"
    )


@dataclass(slots=True)
class QueryCounts:
    """What is left of one query's row groups; counts of several files add up. `open` tells, for each row group that min and max leave,
    what is known of each condition, and how many values it asks for.
    """

    row_groups: int = 0
    left_by_statistics: int = 0
    left_by_dictionary: int = 0
    left_by_filters: int = 0
    by_column: Counter[str] = field(default_factory=Counter)
    """Row groups that min and max leave of a column's conditions, each for itself."""
    asked_of_column: Counter[str] = field(default_factory=Counter)
    open: Counter[tuple[tuple[str, str, int], ...]] = field(default_factory=Counter)
    missing: frozenset[str] = frozenset()
    """Columns that were not in any of the files."""

    def add(self, other: QueryCounts, *, first: bool) -> None:
        self.row_groups += other.row_groups
        self.left_by_statistics += other.left_by_statistics
        self.left_by_dictionary += other.left_by_dictionary
        self.left_by_filters += other.left_by_filters
        self.by_column.update(other.by_column)
        self.asked_of_column.update(other.asked_of_column)
        self.open.update(other.open)
        self.missing = other.missing if first else self.missing & other.missing

    def left_with(self, rates: Mapping[str, float]) -> float:
        """Row groups that are left on average where these columns have filters of these error rates, and row groups of which nothing
        is known do not hold the values.
        """
        return sum(
            count * prod(_chance(state, values, rates.get(column)) for column, state, values in row) for row, count in self.open.items()
        )


def _chance(state: str, values: int, fpp: float | None) -> float:
    return 1.0 if fpp is None or state in (THERE, FILTER_PASSES) else 1 - (1 - fpp) ** values


def count_query(file: ParquetFile, query: Query) -> QueryCounts:
    """What a file's means of pruning leave of a query. Raises UsageError for a value that a column cannot hold."""
    counts = QueryCounts()
    questions, missing = [], set()
    for condition in query.conditions:
        try:
            column = find_column(file.footer.columns, condition.column)
        except UsageError:
            missing.add(condition.column)
        else:
            with file.named():
                question = question_of(column, condition.values)
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
        counts.left_by_statistics += 1
        states = []
        for question in questions:
            known = by_dictionary(file, number, question)
            stays = known is None or _any_maybe(answer.answer for answer in known)
            there = known is not None and any(answer.answer == MAYBE for answer in known)
            filters = [answer.answer for answer in ask_row_group(file, number, question)]
            passes = FILTER_PASSES if MAYBE in filters else ABSENT if not _any_maybe(filters) else None
            states.append((question.column.name, THERE if there else NOT_THERE if not stays else UNKNOWN, len(question.literals), passes))
        counts.left_by_dictionary += all(state != NOT_THERE for _, state, _, _ in states)
        if all(passes != ABSENT for *_, passes in states):
            counts.left_by_filters += 1
            counts.open[tuple((name, passes or state, values) for name, state, values, passes in states)] += 1
    return counts


def _any_maybe(answers: Iterable[str]) -> bool:
    return any(answer != ABSENT for answer in answers)
