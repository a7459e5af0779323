"""Predicates such as `dt >= '2026-01-01' AND region IN ('eu', 'us')`: parse text to an expression. This module evaluates nothing.

A language is a subclass of `Parser` with its own names, signs and literals: that of `advice.queries` has = and IN joined by AND, that of
`runner.partitions` has the full syntax. Columns and literals remain tokens, since each language has its own values.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple, NoReturn

from sbbf_tool.errors import UsageError

_DEEPEST = 50


class Token(NamedTuple):
    """A token of the text. Its kind is text, quoted, number, name, sign, or end."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words

    @property
    def unquoted(self) -> str:
        """Text between the quotes, with doubled quotes as one."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


class Comparison(NamedTuple):
    """True where the comparison holds between the column and one of the literals."""

    column: Token
    sign: str
    literals: tuple[Token, ...]


class IsNull(NamedTuple):
    column: Token


class Not(NamedTuple):
    operand: Expression


class AllOf(NamedTuple):
    operands: tuple[Expression, ...]


class AnyOf(NamedTuple):
    operands: tuple[Expression, ...]


Expression = Comparison | IsNull | Not | AllOf | AnyOf


class Parser:
    """Recursive-descent parser of one predicate: OR of ANDs of conditions."""

    what: ClassVar[str]
    """Name of the text in errors."""
    hint: ClassVar[str]
    token: ClassVar[re.Pattern[str]]
    """Pattern of a token, in the group of its kind, and white space before it."""
    comparisons: ClassVar[frozenset[str]]
    prefixes: ClassVar[tuple[str, ...]]
    """Words that may precede a literal in quotes, such as DATE."""
    only_and: ClassVar[bool]
    """Whether the language has only = and IN, joined by AND."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = [*self._split(), Token("end", "its end")]
        self._at = 0
        self._depth = 0

    def parse(self) -> Expression:
        """Parse the whole text as one expression. Raises UsageError with the part that cannot be parsed."""
        expression = self._all_of() if self.only_and else self._any_of()
        if self._peek().kind != "end":
            self.fail(self._peek())
        return expression

    def fail(self, token: Token) -> NoReturn:
        raise UsageError(f"{self.what} {self.text!r} is not understood at {token.text!r}", hint=self.hint)

    def literal(self, token: Token) -> Token:
        """Return the token if it is a literal; `fail` otherwise."""
        if token.kind not in ("text", "number"):
            self.fail(token)
        return token

    def _split(self) -> list[Token]:
        position, stripped = 0, self.text.rstrip()
        tokens = []
        while position < len(stripped):
            match = self.token.match(stripped, position)
            if match is None or match.lastgroup is None:
                self.fail(Token("", stripped[position:].split()[0]))
            tokens.append(Token(match.lastgroup, match[match.lastgroup]))
            position = match.end()
        return tokens

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._peek()
        self._at += token.kind != "end"
        return token

    def _take(self, *words: str) -> bool:
        found = self._peek().text in words or self._peek().is_word(*words)
        self._at += found
        return found

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            self.fail(self._peek())

    def _any_of(self) -> Expression:
        operands = [self._all_of()]
        while self._take("OR"):
            operands.append(self._all_of())
        return operands[0] if len(operands) == 1 else AnyOf(tuple(operands))

    def _all_of(self) -> Expression:
        one = self._condition if self.only_and else self._one
        operands = [one()]
        while self._take("AND"):
            operands.append(one())
        return operands[0] if len(operands) == 1 else AllOf(tuple(operands))

    def _one(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UsageError(f"{self.what} {self.text[:60]!r}...: more than {_DEEPEST} brackets deep")
        try:
            if self._take("NOT"):
                return Not(self._one())
            if self._take("("):
                inner = self._any_of()
                self._expect(")")
                return inner
            return self._condition()
        finally:
            self._depth -= 1

    def _condition(self) -> Expression:
        column = self._next()
        if column.kind not in ("name", "quoted"):
            self.fail(column)
        if not self.only_and and self._take("IS"):
            negated = self._take("NOT")
            self._expect("NULL")
        else:
            negated = not self.only_and and self._take("NOT")
            condition = self._comparison(column, negated)
            return Not(condition) if negated else condition
        return Not(IsNull(column)) if negated else IsNull(column)

    def _comparison(self, column: Token, negated: bool) -> Expression:
        if self._take("IN"):
            self._expect("(")
            literals = [self._literal()]
            while self._take(","):
                literals.append(self._literal())
            self._expect(")")
            return Comparison(column, "=", tuple(literals))
        if not self.only_and and self._take("BETWEEN"):
            low = self._literal()
            self._expect("AND")
            return AllOf((Comparison(column, ">=", (low,)), Comparison(column, "<=", (self._literal(),))))
        sign = self._next()
        if negated or sign.text not in self.comparisons:
            self.fail(sign)
        return Comparison(column, sign.text, (self._literal(),))

    def _literal(self) -> Token:
        token = self._next()
        if token.is_word(*self.prefixes):
            token = self._next()
            if token.kind != "text":
                self.fail(token)
        return self.literal(token)
