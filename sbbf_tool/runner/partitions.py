"""Partition predicates, such as `dt >= '2026-01-01' and region in ('eu', 'us')`, on files in Hive-style folders such as `dt=2026-01-31`.

A value in quotes is compared as a string, which is correct for ISO 8601 dates; a number is compared as a number. The folder value
`__HIVE_DEFAULT_PARTITION__` means NULL, for which no comparison is true. Predicates are parsed, never executed as code.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any
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

Values = Mapping[str, str | None]
_Test = Callable[[Values], bool | None]
"""Function that returns true, false, or None for unknown as in SQL."""


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in the folders of a path, such as `{"dt": "2026-01-31"}`; None for Hive's NULL."""
    values: dict[str, str | None] = {}
    for folder in re.split(r"[\\/]", path)[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            values[unquote(name)] = None if value == _NULL else unquote(value)
    return values


class Predicate:
    """A parsed predicate. It is pickled as its text, and parsed again in other processes."""

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
        return lambda values: _value(values, name) is None
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


def _compare(values: Values, column: str, compare: Callable[[Any, Any], bool], literal: str | Decimal) -> bool | None:
    value = _value(values, column)
    if value is None:
        return None
    if isinstance(literal, str):
        return compare(value, literal)
    try:
        return compare(Decimal(value), literal)
    except InvalidOperation:
        raise UsageError(f"partition {column}={value} is not a number", hint=f"write '{literal}' to compare it as text") from None


def _value(values: Values, column: str) -> str | None:
    try:
        return values[column]
    except KeyError:
        near = get_close_matches(column, values, n=1)
        there = f"there are {', '.join(values)}" if values else "the path has no column=value folder"
        raise UsageError(f"no partition column {column!r}", hint=f"did you mean {near[0]}?" if near else there) from None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _either(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False
