"""Partition predicates: `dt >= '2026-01-01' and region in ('eu', 'us')` of files in folders named `dt=2026-01-31`, as Hive lays them out.

A value in quotes is compared as text, which is right for dates as ISO 8601 writes them; a number as a number. The folder
`__HIVE_DEFAULT_PARTITION__` stands for NULL, which no comparison is true of. Nothing is evaluated but what this module parses.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import unquote

from sbbf_tool.errors import UsageError

_NULL = "__HIVE_DEFAULT_PARTITION__"
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?![\w.]))"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"""
)
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
_DEEPEST = 50
_FOLDERS_REMEMBERED = 10_000
_HINT = "write column = 'value', <, >=, IN (...), BETWEEN ... AND ..., IS NULL, joined by AND, OR, NOT and brackets"

Values = Mapping[str, str | None]
_Test = Callable[[Values], bool | None]
"""True, false, or None where it is unknown, as SQL has it."""


def partition_values(path: str) -> dict[str, str | None]:
    """What the folders of a path say, such as `{"dt": "2026-01-31"}`; None for Hive's NULL."""
    found: dict[str, str | None] = {}
    for folder in re.split(r"[\\/]", path)[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


class Predicate:
    """See `parse_predicate`. Travels to other processes as its text, and is parsed again where it arrives."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._test = _Parser(text).parse()
        self._known: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type[Predicate], tuple[str]]:
        return Predicate, (self.text,)

    def accepts(self, path: str) -> bool:
        """Whether a file of this path is meant. UsageError where its folders lack a column that is asked for."""
        folder = os.path.dirname(path)
        if folder not in self._known:
            if len(self._known) >= _FOLDERS_REMEMBERED:
                self._known.clear()
            try:
                self._known[folder] = self._test(partition_values(path)) is True
            except UsageError as error:
                raise error.at(file=path) from None
        return self._known[folder]


def parse_predicate(text: str) -> Predicate:
    """Raises UsageError, with the part that was not understood."""
    return Predicate(text)


class _Token(NamedTuple):
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words


class _Parser:
    """By recursive descent: OR of ANDs of conditions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*self._split(), _Token("end", "its end")]
        self._at = 0
        self._depth = 0

    def parse(self) -> _Test:
        test = self._any_of()
        if self._peek().kind != "end":
            raise self._wrong(self._peek())
        return test

    def _split(self) -> Iterator[_Token]:
        position, stripped = 0, self._text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or match.lastgroup is None:
                raise self._wrong(_Token("", stripped[position:].split()[0]))
            yield _Token(match.lastgroup, match[match.lastgroup])
            position = match.end()

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._peek()
        self._at += token.kind != "end"
        return token

    def _take(self, *words: str) -> bool:
        found = self._peek().text in words or self._peek().is_word(*words)
        self._at += found
        return found

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            raise self._wrong(self._peek())

    def _any_of(self) -> _Test:
        tests = [self._all_of()]
        while self._take("OR"):
            tests.append(self._all_of())
        return tests[0] if len(tests) == 1 else lambda values: _either([test(values) for test in tests])

    def _all_of(self) -> _Test:
        tests = [self._one()]
        while self._take("AND"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda values: _not(_either([_not(test(values)) for test in tests]))

    def _one(self) -> _Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UsageError(f"predicate {self._text[:60]!r}...: more than {_DEEPEST} brackets deep")
        try:
            if self._take("NOT"):
                test = self._one()
                return lambda values: _not(test(values))
            if self._take("("):
                inner = self._any_of()
                self._expect(")")
                return inner
            return self._condition()
        finally:
            self._depth -= 1

    def _condition(self) -> _Test:
        token = self._next()
        if token.kind == "quoted":
            quote = token.text[0]
            column = token.text[1:-1].replace(quote * 2, quote)
        elif token.kind == "name":
            column = token.text
        else:
            raise self._wrong(token)
        if self._take("IS"):
            wanted = not self._take("NOT")
            self._expect("NULL")
            return lambda values: (_value(values, column) is None) is wanted
        negated = self._take("NOT")
        test = self._membership(column, negated)
        return (lambda values: _not(test(values))) if negated else test

    def _membership(self, column: str, negated: bool) -> _Test:
        if self._take("IN"):
            self._expect("(")
            tests = [_comparison(column, "=", self._literal())]
            while self._take(","):
                tests.append(_comparison(column, "=", self._literal()))
            self._expect(")")
            return lambda values: _either([test(values) for test in tests])
        if self._take("BETWEEN"):
            low = _comparison(column, ">=", self._literal())
            self._expect("AND")
            high = _comparison(column, "<=", self._literal())
            return lambda values: _not(_either([_not(low(values)), _not(high(values))]))
        sign = self._next()
        if negated or sign.text not in _COMPARISONS:
            raise self._wrong(sign)
        return _comparison(column, sign.text, self._literal())

    def _literal(self) -> str | Decimal:
        token = self._next()
        if token.is_word("DATE", "TIMESTAMP"):
            token = self._next()
            if token.kind != "text":
                raise self._wrong(token)
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            return Decimal(token.text)
        raise self._wrong(token)

    def _wrong(self, token: _Token) -> UsageError:
        return UsageError(f"predicate {self._text!r} is not understood at {token.text!r}", hint=_HINT)


def _comparison(column: str, sign: str, literal: str | Decimal) -> _Test:
    compare = _COMPARISONS[sign]

    def test(values: Values) -> bool | None:
        value = _value(values, column)
        if value is None:
            return None
        if isinstance(literal, str):
            return compare(value, literal)
        try:
            return compare(Decimal(value), literal)
        except InvalidOperation:
            raise UsageError(f"partition {column}={value} is no number", hint=f"write '{literal}' to compare it as text") from None

    return test


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
