"""Partition predicates, such as `dt >= '2026-01-01' and region in ('eu', 'us')`, on files in
Hive-style folders such as `dt=2026-01-31`.

A table states the types of its partition columns, and values are compared as values of these types.
Names of folders have no types: there, a value in quotes is compared as a string, which is correct
for ISO 8601 dates, and a number as a number. The folder value `__HIVE_DEFAULT_PARTITION__` means
NULL, for which no comparison is true. A key that occurs twice in a path, with different values, may
have any of them: some readers take the first folder, others the last. Predicates are parsed, never
executed as code.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote
from uuid import UUID

from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.hints import suggest
from sbbf_tool.parquet import iso8601
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
    """Every value: the file was written before the table had this partition column, or after, or
    its value cannot be compared."""

    ANY = "any"


_ANY = _Any.ANY
Values = Mapping[str, str | None]
Types = Mapping[str, str]
"""Types of partition columns, by name and in the words of the table format. A column without a type
is compared as the literal is."""
_Truth: TypeAlias = bool | _Any | None
_Test = Callable[[Mapping[str, str | _Any | None], Types], _Truth]
"""Function that returns true, false, None for unknown as in SQL, or `_ANY` if it depends on a value
that the file may have."""


def _parse_number(text: str) -> tuple[bool, Decimal]:
    """Return whether it is NaN, which is above all numbers in query engines, and the number."""
    number = Decimal(text.replace("_", "?"))
    if number.is_nan():
        return True, Decimal(0)
    return False, number


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_PARSERS: tuple[tuple[re.Pattern[str], Callable[[str], Any], str], ...] = (
    (
        re.compile(
            r"u?(tiny|small|big|huge)?int(eger)?\d*|byte|short|long|float\d*|double|real|decimal"
        ),
        _parse_number,
        "a number",
    ),
    (re.compile("string|varchar|char|text"), str, "text"),
    (re.compile("date"), iso8601.parse_date, "a date, such as '2026-01-31'"),
    (
        re.compile(r"timestamp\w*"),
        lambda text: iso8601.parse_timestamp(text)[:2],
        "a timestamp, such as '2026-01-31T12:30:00Z'",
    ),
    (
        re.compile("time"),
        lambda text: iso8601.parse_time(text)[:2],
        "a time of day, such as '12:30:00'",
    ),
    (re.compile("bool(ean)?"), _parse_boolean, "true or false"),
    (re.compile("uuid"), UUID, "a UUID"),
)
"""How values of a type are parsed so that they compare as in the type, and what they are; bytes and
unknown types have no such form."""


def parse_value(text: str, type_name: str) -> Any:
    """Parse a value of a partition column; equal values of the type are equal, and have its order.

    Returns None for a type whose values have no certain form as text, such as binary. Raises
    UsageError for text that is no value.
    """
    base = type_name.partition("(")[0].strip().lower()
    for pattern, parse, form in _PARSERS:
        if not pattern.fullmatch(base):
            continue
        try:
            return parse(text)
        except (ValueError, ArithmeticError, KeyError):
            message = f"{text[:60]!r} is not a value of type {type_name[:60]}"
            raise UsageError(message, hint=f"it takes {form}") from None
    return None


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in the folders of a path, such as `{"dt": "2026-01-31"}`; None
    for Hive's NULL."""
    return dict(_folder_values(path))


def doubtful_keys(path: str) -> set[str]:
    """Return the names of partition columns to which folders of a path give different values, apart
    from case: `k=1/k=2`, `K=1/k=2`."""
    values: dict[str, set[str | None]] = {}
    for name, value in _folder_values(path):
        values.setdefault(name.casefold(), set()).add(value)
    return {name for name, _ in _folder_values(path) if len(values[name.casefold()]) > 1}


def _folder_values(path: str) -> Iterator[tuple[str, str | None]]:
    for folder in re.split(r"[\\/]", path)[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            yield unquote(name), None if value == _NULL else unquote(value)


_UNTYPED: Types = {}


class PathPredicate(Protocol):
    """The condition on which a file in a listing is part of a run."""

    @property
    def is_choice(self) -> bool:
        """Whether the user chose it for one run, so that another run of the same request may
        include the other files."""

    def accepts(self, path: str) -> bool:
        """Return whether the file is part of the run."""

    def accepts_values(
        self, values: Values, unknown: AbstractSet[str] = frozenset(), types: Types = _UNTYPED
    ) -> bool:
        """Return whether files of a table with these partition values, and any of the columns
        `unknown`, are part of the run."""


class Predicate:
    """A parsed predicate. It is pickled as its text, and parsed again in other processes. Raises
    UsageError with the part that is wrong."""

    is_choice = True

    def __init__(self, text: str) -> None:
        self.text = text
        self._test = _test_of(_Parser(text).parse())
        self._results: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type[Predicate], tuple[str]]:
        return Predicate, (self.text,)

    def accepts(self, path: str) -> bool:
        """Return whether the predicate is true for a path. Raises UsageError if the path lacks a
        partition column of the predicate."""
        folder = os.path.dirname(path)
        result = self._results.get(folder)
        if result is not None:
            return result
        if len(self._results) >= _FOLDERS_REMEMBERED:
            # Other threads may read the dictionary.
            self._results = {}
        with ErrorPlace(path):
            values = {**partition_values(path), **dict.fromkeys(doubtful_keys(path), _ANY)}
            result = self._test(values, _UNTYPED) in (True, _ANY)
        self._results[folder] = result
        return result

    def accepts_values(
        self, values: Values, unknown: AbstractSet[str] = frozenset(), types: Types = _UNTYPED
    ) -> bool:
        """Return whether the predicate can be true for these partition values; the columns
        `unknown` may have any value.

        Raises UsageError if a column of the predicate is in neither, or if a literal is no value of
        its column's type.
        """
        possible_values: Mapping[str, str | _Any | None] = values
        if unknown:
            possible_values = {**dict.fromkeys(unknown, _ANY), **values}
        try:
            return self._test(possible_values, types) in (True, _ANY)
        except UsageError as error:
            if values or unknown:
                raise error from None
            raise UsageError(error.message, hint="the table has no partitions") from None


class _Parser(Parser):
    name = "predicate"
    hint = (
        "write column = 'value', <, >=, IN (...), BETWEEN ... AND ..., IS NULL, joined by "
        "AND, OR, NOT and brackets"
    )
    token = re.compile(
        r"""\s*(?:(?P<text>'(?:[^']|'')*')"""
        r"""|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)"""
        r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?![\w.]))"""
        r"""|(?P<name>[^\W\d]\w*)"""
        r"""|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"""
    )
    comparisons = frozenset(_COMPARISONS)
    prefixes = ("DATE", "TIMESTAMP")
    only_and = False

    def check_literal(self, token: Token) -> Token:
        if token.is_word("TRUE", "FALSE"):
            return Token("text", f"'{token.text}'")
        return super().check_literal(token)


def _test_of(expression: Expression) -> _Test:
    if isinstance(expression, Not):
        test = _test_of(expression.operand)
        return lambda values, types: _not(test(values, types))
    if isinstance(expression, IsNull):
        return _test_of_null(_name(expression.column))
    if isinstance(expression, Comparison):
        return _test_of_comparison(expression)
    tests = [_test_of(operand) for operand in expression.operands]
    if isinstance(expression, AnyOf):
        return lambda values, types: _either([test(values, types) for test in tests])
    return lambda values, types: _not(_either([_not(test(values, types)) for test in tests]))


def _test_of_null(column: str) -> _Test:
    def is_null(values: Mapping[str, str | _Any | None], types: Types) -> _Truth:
        value = _value(values, column)
        if value is _ANY:
            return _ANY
        return value is None

    return is_null


def _test_of_comparison(expression: Comparison) -> _Test:
    column = _name(expression.column)
    compare = _COMPARISONS[expression.sign]

    def is_any_true(values: Mapping[str, str | _Any | None], types: Types) -> _Truth:
        value = _value(values, column)
        type_name = types.get(column)
        return _either(
            [
                _compare(value, type_name, column, compare, literal)
                for literal in expression.literals
            ]
        )

    return is_any_true


def _name(column: Token) -> str:
    return column.unquoted if column.kind == "quoted" else column.text


def _compare(
    value: str | _Any | None,
    type_name: str | None,
    column: str,
    compare: Callable[[Any, Any], bool],
    literal: Token,
) -> _Truth:
    text = literal.unquoted if literal.kind == "text" else literal.text
    key = None
    if type_name is not None:
        with ErrorPlace(None, f"partition column {column}"):
            key = parse_value(text, type_name)
    if value is None or value is _ANY:
        return value
    if isinstance(key, str) or type_name is None:
        if literal.kind == "text":
            return compare(value, text)
        try:
            return compare(Decimal(value), Decimal(text))
        except InvalidOperation:
            raise UsageError(
                f"partition {column}={value} is not a number",
                hint=f"write '{text}' to compare it as text",
            ) from None
    if key is None:
        return _ANY
    try:
        return compare(parse_value(value, type_name), key)
    except UsageError:
        # The table has a value that is none of the column's type.
        return _ANY


def _value(values: Mapping[str, str | _Any | None], column: str) -> str | _Any | None:
    try:
        return values[column]
    except KeyError:
        there = "the path has no column=value folder"
        if values:
            there = f"there are {', '.join(values)}"
        hint = suggest(column, values, there)
        raise UsageError(f"no partition column {column!r}", hint=hint) from None


def _not(truth: _Truth) -> _Truth:
    if truth is None or truth is _ANY:
        return truth
    return not truth


def _either(truths: list[_Truth]) -> _Truth:
    for truth in (True, _ANY, None):
        if truth in truths:
            return truth
    return False
