"""Partition predicates, such as `dt >= '2026-01-01' and region in ('eu', 'us')`, on files in Hive-style folders such as `dt=2026-01-31`.

A value in quotes is compared as a string, which is correct for ISO 8601 dates; a number is compared as a number. The folder value
`__HIVE_DEFAULT_PARTITION__` means NULL, for which no comparison is true. Predicates are parsed, never executed as code.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from enum import Enum
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.predicates import AnyOf, Comparison, Expression, IsNull, Not, Parser, Token

_NULL = "__HIVE_DEFAULT_PARTITION__"
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FOLDERS_REMEMBERED = 10_000


class _Any(Enum):
    """Every value: the file was written before the table had this partition column, or after."""

    ANY = "any"


_ANY = _Any.ANY
Values = Mapping[str, str | None]
_Truth: TypeAlias = bool | _Any | None
_Test = Callable[[Mapping[str, str | _Any | None]], _Truth]
"""Function that returns true, false, None for unknown as in SQL, or `_ANY` if it depends on a value that the file may have."""


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in the folders of a path, such as `{"dt": "2026-01-31"}`; None for Hive's NULL."""
    values: dict[str, str | None] = {}
    for folder in re.split(r"[\\/]", path)[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            values[unquote(name)] = None if value == _NULL else unquote(value)
    return values


class PathPredicate(Protocol):
    """The condition on which a file in a listing is part of a run."""

    @property
    def is_choice(self) -> bool:
        """Whether the user chose it for one run, so that another run of the same request may include the other files."""

    def accepts(self, path: str) -> bool:
        """Return whether the file is part of the run."""

    def accepts_values(self, values: Values, unknown: AbstractSet[str] = frozenset()) -> bool:
        """Return whether files of a table with these partition values, and any of the columns `unknown`, are part of the run."""


class Predicate:
    """A parsed predicate. It is pickled as its text, and parsed again in other processes."""

    is_choice = True

    def __init__(self, text: str) -> None:
        self.text = text
        self._test = _test_of(_Parser(text).parse())
        self._results: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type[Predicate], tuple[str]]:
        return Predicate, (self.text,)

    def accepts(self, path: str) -> bool:
        """Return whether the predicate is true for a path. Raises UsageError if the path lacks a partition column of the predicate."""
        folder = os.path.dirname(path)
        if folder not in self._results:
            if len(self._results) >= _FOLDERS_REMEMBERED:
                self._results.clear()
            with ErrorPlace(path):
                self._results[folder] = self._test(partition_values(path)) is True
        return self._results[folder]

    def accepts_values(self, values: Values, unknown: AbstractSet[str] = frozenset()) -> bool:
        """Return whether the predicate can be true for these partition values; the columns `unknown` may have any value.

        Raises UsageError if a column of the predicate is in neither.
        """
        try:
            return self._test({**dict.fromkeys(unknown, _ANY), **values} if unknown else values) in (True, _ANY)
        except UsageError as error:
            raise error if values or unknown else UsageError(error.message, hint="the table has no partitions") from None


def parse_predicate(text: str) -> Predicate:
    """Parse a predicate. Raises UsageError with the part that cannot be parsed."""
    return Predicate(text)


class _Parser(Parser):
    name = "predicate"
    hint = "write column = 'value', <, >=, IN (...), BETWEEN ... AND ..., IS NULL, joined by AND, OR, NOT and brackets"
    token = re.compile(
        r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?![\w.]))"""
        r"""|(?P<name>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"""
    )
    comparisons = frozenset(_COMPARISONS)
    prefixes = ("DATE", "TIMESTAMP")
    only_and = False


def _test_of(expression: Expression) -> _Test:
    if isinstance(expression, Not):
        test = _test_of(expression.operand)
        return lambda values: _not(test(values))
    if isinstance(expression, IsNull):
        name = _name(expression.column)
        return lambda values: _ANY if (value := _value(values, name)) is _ANY else value is None
    if isinstance(expression, Comparison):
        column, compare = _name(expression.column), _COMPARISONS[expression.sign]
        literals = [token.unquoted if token.kind == "text" else Decimal(token.text) for token in expression.literals]
        return lambda values: _either([_compare(values, column, compare, literal) for literal in literals])
    tests = [_test_of(operand) for operand in expression.operands]
    if isinstance(expression, AnyOf):
        return lambda values: _either([test(values) for test in tests])
    return lambda values: _not(_either([_not(test(values)) for test in tests]))


def _name(column: Token) -> str:
    return column.unquoted if column.kind == "quoted" else column.text


def _compare(values: Mapping[str, str | _Any | None], column: str, compare: Callable[[Any, Any], bool], literal: str | Decimal) -> _Truth:
    value = _value(values, column)
    if value is None or value is _ANY:
        return value
    if isinstance(literal, str):
        return compare(value, literal)
    try:
        return compare(Decimal(value), literal)
    except InvalidOperation:
        raise UsageError(f"partition {column}={value} is not a number", hint=f"write '{literal}' to compare it as text") from None


def _value(values: Mapping[str, str | _Any | None], column: str) -> str | _Any | None:
    try:
        return values[column]
    except KeyError:
        near = get_close_matches(column, values, n=1)
        there = f"there are {', '.join(values)}" if values else "the path has no column=value folder"
        raise UsageError(f"no partition column {column!r}", hint=f"did you mean {near[0]}?" if near else there) from None


def _not(truth: _Truth) -> _Truth:
    return truth if truth is None or truth is _ANY else not truth


def _either(truths: list[_Truth]) -> _Truth:
    return True if True in truths else _ANY if _ANY in truths else None if None in truths else False
