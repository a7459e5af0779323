"""Predicates such as `dt >= '2026-01-01' AND region IN ('eu', 'us')`: parse text into an
expression. This module evaluates nothing.

A language is a subclass of `Parser` with its own names, operators and literals: `advice.queries`
accepts =, IN and IS NULL joined by AND, `file.partitions` the full syntax. Columns and literals
remain tokens, because each language has its own types of values.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple, NoReturn

from sbbf_tool.errors import UsageError

_MAX_DEPTH = 50


class Token(NamedTuple):
    """A token of the text; its kind is text, quoted, number, name, sign, or end."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words

    @property
    def unquoted(self) -> str:
        """Text between the quotes, with doubled quotes reduced to one."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


class Comparison(NamedTuple):
    """True if the comparison holds between the column and any of the literals."""

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

    name: ClassVar[str]
    """What error messages call the predicate."""
    hint: ClassVar[str]
    token: ClassVar[re.Pattern[str]]
    """Pattern of a token, with optional white space before it; the name of the group that matches
    is the token's kind."""
    comparisons: ClassVar[frozenset[str]]
    prefixes: ClassVar[tuple[str, ...]]
    """Words that may precede a literal in quotes, such as DATE."""
    only_and: ClassVar[bool]
    """Whether the language accepts only =, IN and IS NULL, joined by AND."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = [*self._split(), Token("end", "")]
        self._at = 0
        self._depth = 0

    def parse(self) -> Expression:
        """Parse the whole text as one expression. Raises UsageError with the malformed part."""
        expression = self._parse_all_of() if self.only_and else self._parse_any_of()
        if self._peek().kind != "end":
            self.fail(self._peek())
        return expression

    def fail(self, token: Token) -> NoReturn:
        place = repr(token.text)
        if token.kind == "end":
            place = "the end"
        raise UsageError(f"cannot parse {self.name} {self.text!r} at {place}", hint=self.hint)

    def check_literal(self, token: Token) -> Token:
        """Return the token if it is a literal; `fail` otherwise."""
        if token.kind not in ("text", "number"):
            self.fail(token)
        return token

    def _split(self) -> list[Token]:
        stripped = self.text.rstrip()
        position = 0
        tokens = []
        while position < len(stripped):
            match = self.token.match(stripped, position)
            if match is None or match.lastgroup is None:
                next_word = stripped[position:].split()[0]
                self.fail(Token("", next_word))
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
        is_match = self._peek().text in words or self._peek().is_word(*words)
        self._at += is_match
        return is_match

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            self.fail(self._peek())

    def _parse_any_of(self) -> Expression:
        operands = [self._parse_all_of()]
        while self._take("OR"):
            operands.append(self._parse_all_of())
        if len(operands) == 1:
            return operands[0]
        return AnyOf(tuple(operands))

    def _parse_all_of(self) -> Expression:
        parse_operand = self._parse_condition if self.only_and else self._parse_operand
        operands = [parse_operand()]
        while self._take("AND"):
            operands.append(parse_operand())
        if len(operands) == 1:
            return operands[0]
        return AllOf(tuple(operands))

    def _parse_operand(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UsageError(
                f"{self.name} {self.text[:60]!r}... has more than {_MAX_DEPTH} nested brackets"
            )
        try:
            if self._take("NOT"):
                return Not(self._parse_operand())
            if self._take("("):
                inner = self._parse_any_of()
                self._expect(")")
                return inner
            return self._parse_condition()
        finally:
            self._depth -= 1

    def _parse_condition(self) -> Expression:
        column = self._next()
        if column.kind not in ("name", "quoted"):
            self.fail(column)
        is_null = self._take("IS")
        is_negated = not self.only_and and self._take("NOT")
        condition: Expression
        if is_null:
            self._expect("NULL")
            condition = IsNull(column)
        else:
            condition = self._parse_comparison(column, is_negated)
        return Not(condition) if is_negated else condition

    def _parse_comparison(self, column: Token, is_negated: bool) -> Expression:
        if self._take("IN"):
            self._expect("(")
            literals = [self._parse_literal()]
            while self._take(","):
                literals.append(self._parse_literal())
            self._expect(")")
            return Comparison(column, "=", tuple(literals))
        if not self.only_and and self._take("BETWEEN"):
            low = Comparison(column, ">=", (self._parse_literal(),))
            self._expect("AND")
            high = Comparison(column, "<=", (self._parse_literal(),))
            return AllOf((low, high))
        sign = self._next()
        if is_negated or sign.text not in self.comparisons:
            self.fail(sign)
        return Comparison(column, sign.text, (self._parse_literal(),))

    def _parse_literal(self) -> Token:
        token = self._next()
        if token.is_word(*self.prefixes):
            token = self._next()
            if token.kind != "text":
                self.fail(token)
        return self.check_literal(token)
