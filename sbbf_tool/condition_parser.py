"""The grammar of conditions, such as `day >= '2026-01-01' AND (id IN (1, 2) OR city IS NULL)`.

`parse_condition` is the only parser: of conditions on partitions, of queries for `advise`, and of
what `probe` and `explain` look for. `x != 1` is NOT of `x = 1`, and BETWEEN two comparisons. A part
that nothing answers, such as LIKE or a function, is `Other`. `SELECT ... WHERE ...` means its
condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from sbbf_tool.errors import UsageError
from sbbf_tool.predicates import (
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Not,
    Other,
    Part,
)

_MAX_DEPTH = 50
_SHOWN_CHARACTERS = 60
HINT = (
    "write column = 'value', <, >=, IN (...), BETWEEN ... AND ..., IS NULL, joined by AND, OR, NOT "
    "and brackets; a name with spaces in double quotes"
)
_TOKEN = re.compile(
    r"""
    \s*(?:
        (?P<text>'(?:[^']|'')*')
        |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
        |(?P<name>
            (?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\W\d][\w$]*)
            (?:\.(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[\w$]+))*
            (?:\#\d+)?
        )
        |(?P<sign><=|>=|<>|!=|==|::|\|\||-(?!-)|[=<>(),;+*/%&|^~\[\]:])
    )
    """,
    re.VERBOSE,
)
_QUOTED_PART = re.compile(r'`(?:[^`]|``)*`|"((?:[^"]|"")*)"')
_SIGNS = {"==": "=", "<>": "!=", "!=": "!=", "=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS = frozenset(("+", "-", "*", "/", "%", "||", "::", "&", "|", "^"))
_TYPES = ("DATE", "TIME", "TIMESTAMP", "UUID", "DECIMAL")
"""Words that may precede a literal in quotes."""
_PATTERNS = ("LIKE", "ILIKE", "RLIKE", "REGEXP", "GLOB", "SIMILAR")
_VALUES_OF_NOW = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP")
_RESERVED = (
    *("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "SELECT", "FROM", "WHERE", "GROUP", "ORDER"),
    *("LIMIT", *_PATTERNS),
)
_AFTER_CONDITION = ("GROUP", "ORDER", "LIMIT", "OFFSET", "FETCH")
"""What may follow the condition of a SELECT; it does not change which rows satisfy it."""


class Token(NamedTuple):
    """A token of the text; its kind is text, typed, number, boolean, name, sign, or end."""

    kind: str
    text: str
    start: int = 0
    end: int = 0

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words

    @property
    def is_literal(self) -> bool:
        return self.kind in ("text", "typed", "number", "boolean")


def parse_condition(text: str) -> Expression:
    """Parse a condition, or that of `SELECT ... WHERE ...`. Raises UsageError with the malformed
    part."""
    return _Parser(text).parse()


class _MalformedError(UsageError):
    """A part of the text is no condition."""


class _Parser:
    """Recursive-descent parser of one condition: OR of ANDs of parts."""

    def __init__(self, text: str) -> None:
        self.text = text
        end = len(text.rstrip())
        self._tokens = [*self._split(), Token("end", "", end, end)]
        self._at = 0
        self._depth = 0
        self._tables: set[str] = set()
        """Names of the table of a SELECT, which may precede those of columns."""

    def parse(self) -> Expression:
        is_select = self._take("SELECT")
        if is_select:
            self._take_from()
        expression = self._parse_any_of()
        if is_select and self._peek().is_word(*_AFTER_CONDITION):
            self._skip_until(";")
        self._take(";")
        if self._peek().kind != "end":
            self._fail(self._peek())
        return expression

    def _fail(self, token: Token) -> NoReturn:
        place = repr(token.text)
        if token.kind == "end":
            place = "the end"
        raise _MalformedError(f"cannot parse condition {self.text!r} at {place}", hint=HINT)

    def _split(self) -> Iterator[Token]:
        stripped = self.text.rstrip()
        position = 0
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or match.lastgroup is None:
                next_word = stripped[position:].split()[0]
                self._fail(Token("", next_word))
            kind = match.lastgroup
            yield Token(kind, match[kind], match.start(kind), match.end(kind))
            position = match.end()

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._peek()
        self._at += token.kind != "end"
        return token

    def _take(self, *words: str) -> bool:
        token = self._peek()
        is_match = (token.kind == "sign" and token.text in words) or token.is_word(*words)
        self._at += is_match
        return is_match

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            self._fail(self._peek())

    def _text_from(self, start: int) -> str:
        """Return the text from a token on up to the next one."""
        first = self._tokens[start].start
        last = self._tokens[self._at - 1].end
        return " ".join(self.text[first:last].split())

    def _skip_brackets(self) -> None:
        """Skip up to the bracket that closes the one that was taken."""
        depth = 1
        while depth:
            token = self._next()
            if token.kind == "end":
                self._fail(token)
            if token.kind == "sign":
                depth += (token.text == "(") - (token.text == ")")

    def _skip_until(self, *words: str) -> None:
        """Skip to one of these words outside of brackets, or to the end."""
        while self._peek().kind != "end":
            token = self._peek()
            if token.text in words or token.is_word(*words):
                return
            self._at += 1
            if token.text == "(":
                self._skip_brackets()

    def _take_from(self) -> None:
        """Take the columns of a SELECT, and its table."""
        self._skip_until("FROM")
        self._expect("FROM")
        table = self._next()
        if table.kind not in ("name", "text"):
            self._fail(table)
        if self._take("("):
            self._skip_brackets()
        names = [table.text.rpartition(".")[2]]
        self._take("AS")
        if not self._peek().is_word("WHERE"):
            alias = self._next()
            if alias.kind != "name" or alias.is_word("JOIN", *_RESERVED):
                self._fail(alias)
            names.append(alias.text)
        self._tables = {name.casefold() for name in names}
        self._expect("WHERE")

    def _parse_any_of(self) -> Expression:
        expression = self._parse_joined("OR", AnyOf, self._parse_all_of)
        if isinstance(expression, AnyOf):
            return _join_values(expression)
        return expression

    def _parse_all_of(self) -> Expression:
        return self._parse_joined("AND", AllOf, self._parse_operand)

    def _parse_joined(
        self, word: str, kind: type[AnyOf | AllOf], parse: Callable[[], Expression]
    ) -> Expression:
        """Parse operands that this word joins, if there is more than one."""
        start = self._at
        operands = [parse()]
        while self._take(word):
            operands.append(parse())
        if len(operands) == 1:
            return operands[0]
        return kind(tuple(operands), self._text_from(start))

    def _parse_operand(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UsageError(
                f"condition {self.text[:_SHOWN_CHARACTERS]!r}... has more than {_MAX_DEPTH} nested "
                "brackets"
            )
        start = self._at
        try:
            if self._take("NOT"):
                operand = self._parse_operand()
                return Not(operand, self._text_from(start))
            if self._peek().text == "(":
                return self._parse_brackets()
            return self._parse_part()
        finally:
            self._depth -= 1

    def _parse_brackets(self) -> Expression:
        """Parse a condition in brackets, or a part that begins with a bracket."""
        start = self._at
        self._at += 1
        try:
            inner = self._parse_any_of()
            self._expect(")")
        except _MalformedError:
            # It may be a value, such as `(a + b) > 5`.
            self._at = start + 1
            self._skip_brackets()
            if not self._is_operator(self._peek()):
                raise
        if self._is_operator(self._peek()):
            self._at = start
            return self._parse_part()
        return inner

    def _is_operator(self, token: Token) -> bool:
        is_sign = token.text in _OPERATORS or token.text in _SIGNS
        return is_sign or token.is_word("IS", "IN", "BETWEEN", *_PATTERNS)

    def _parse_part(self) -> Expression:
        start = self._at
        if self._take("EXISTS"):
            self._expect("(")
            self._skip_brackets()
            return Other(self._text_from(start))
        value = self._parse_value()
        if self._take("IS"):
            return self._parse_is(start, value)
        is_negated = self._take("NOT")
        part: Expression
        if self._take("IN"):
            part = self._parse_in(start, value)
        elif self._take("BETWEEN"):
            part = self._parse_between(start, value)
        elif self._take(*_PATTERNS):
            self._take("TO")
            self._parse_value()
            if self._take("ESCAPE"):
                self._parse_value()
            part = Other(self._text_from(start))
        elif is_negated:
            self._fail(self._peek())
        else:
            part = self._parse_comparison(start, value)
        return Not(part, self._text_from(start)) if is_negated else part

    def _parse_is(self, start: int, value: Token | None) -> Expression:
        is_negated = self._take("NOT")
        if self._take("NULL") and value is not None and value.kind == "name":
            part = IsNull(self._column(value), self._text_from(start))
            return Not(part, self._text_from(start)) if is_negated else part
        if self._take("DISTINCT"):
            self._expect("FROM")
            if not self._take("NULL"):
                self._parse_value()
        elif not self._tokens[self._at - 1].is_word("NULL"):
            self._expect("TRUE", "FALSE", "UNKNOWN", "NULL")
        return Other(self._text_from(start))

    def _parse_in(self, start: int, value: Token | None) -> Expression:
        self._expect("(")
        if self._peek().is_word("SELECT", "WITH", "VALUES"):
            self._skip_brackets()
            return Other(self._text_from(start))
        values = [self._parse_value()]
        while self._take(","):
            values.append(self._parse_value())
        self._expect(")")
        return self._build(start, value, "=", values)

    def _parse_between(self, start: int, value: Token | None) -> Expression:
        low = self._parse_value()
        self._expect("AND")
        high = self._parse_value()
        parts = [self._build(start, value, ">=", [low]), self._build(start, value, "<=", [high])]
        for part in parts:
            if isinstance(part, Other):
                return part
        return AllOf(tuple(parts), self._text_from(start))

    def _parse_comparison(self, start: int, value: Token | None) -> Expression:
        sign = _SIGNS.get(self._peek().text)
        if sign is None:
            self._fail(self._peek())
        self._at += 1
        column = value
        literal = self._parse_value()
        if value is not None and value.is_literal:
            # `5 < x` is `x > 5`.
            sign = _MIRRORED.get(sign, sign)
            column = literal
            literal = value
        if sign != "!=":
            return self._build(start, column, sign, [literal])
        part = self._build(start, column, "=", [literal])
        return Not(part, self._text_from(start))

    def _build(
        self, start: int, value: Token | None, sign: str, others: list[Token | None]
    ) -> Part:
        """Build the comparison of a column with literals; a part that nothing answers if it is
        between anything else."""
        text = self._text_from(start)
        if value is None or value.kind != "name":
            return Other(text)
        constants = []
        for other in others:
            if other is None or not other.is_literal:
                return Other(text)
            constants.append(_constant_of(other))
        return Comparison(self._column(value), sign, tuple(constants), text)

    def _column(self, token: Token) -> str:
        """Return the name of a column in the notation of this tool, which has backticks."""
        first, dot, rest = token.text.partition(".")
        name = token.text
        if dot and first.casefold() in self._tables:
            name = rest
        return _QUOTED_PART.sub(_in_backticks, name)

    def _parse_value(self) -> Token | None:
        """Parse a value: return the column or the literal; None for anything else."""
        value = self._parse_term()
        while self._take_operator():
            self._parse_term()
            value = None
        return value

    def _take_operator(self) -> bool:
        token = self._peek()
        if token.kind == "number":
            # `a -1` has the tokens `a` and `-1`.
            return token.text[0] in "+-"
        return self._take(*_OPERATORS)

    def _parse_term(self) -> Token | None:
        token = self._next()
        if token.text in ("-", "+", "~"):
            self._parse_term()
            return None
        if token.text == "(":
            return self._parse_term_in_brackets()
        if token.is_literal:
            return token
        if token.kind != "name" or token.is_word(*_RESERVED):
            self._fail(token)
        return self._parse_word(token)

    def _parse_term_in_brackets(self) -> Token | None:
        inner = self._peek()
        self._skip_brackets()
        is_alone = self._tokens[self._at - 2] is inner
        return inner if is_alone and (inner.is_literal or inner.kind == "name") else None

    def _parse_word(self, token: Token) -> Token | None:
        """Parse a value that begins with a word."""
        if token.is_word("NULL"):
            raise UsageError(
                f"condition {self.text!r}: no value equals NULL", hint="write column IS NULL"
            )
        if token.is_word("TRUE", "FALSE"):
            return token._replace(kind="boolean")
        follows = self._peek()
        if follows.kind == "text" and token.is_word(*_TYPES):
            return self._next()._replace(kind="typed")
        if token.is_word("CASE"):
            self._skip_until("END")
            self._expect("END")
            return None
        if token.is_word("INTERVAL"):
            self._next()
            if self._peek().kind == "name" and not self._peek().is_word(*_RESERVED):
                self._at += 1
            return None
        if self._take("("):
            self._skip_brackets()
            return None
        return None if token.is_word(*_VALUES_OF_NOW) else token


def _join_values(expression: AnyOf) -> Expression:
    """Join the comparisons of a column by =, of which any may hold, to one with all the values."""
    groups: dict[int | str, list[Expression]] = {}
    for number, operand in enumerate(expression.operands):
        key: int | str = number
        if isinstance(operand, Comparison) and operand.sign == "=":
            key = operand.column
        groups.setdefault(key, []).append(operand)
    operands = tuple(map(_join_group, groups.values()))
    if len(operands) == 1:
        return operands[0]
    return expression._replace(operands=operands)


def _join_group(parts: list[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    constants: list[Constant] = []
    for part in parts:
        assert isinstance(part, Comparison)
        constants += part.constants
    first = parts[0]
    assert isinstance(first, Comparison)
    text = " OR ".join([part.text for part in parts])
    return Comparison(first.column, "=", tuple(constants), text)


def _constant_of(token: Token) -> Constant:
    text = token.text
    if token.kind in ("text", "typed"):
        text = text[1:-1].replace("''", "'")
    return Constant(text, token.kind)


def _in_backticks(match: re.Match[str]) -> str:
    """Return a part of a name in backticks, if it needs them, that may be in double quotes."""
    quoted = match[1]
    if quoted is None:
        return match[0]
    part = quoted.replace('""', '"')
    if part and "." not in part and "`" not in part:
        return part
    doubled = part.replace("`", "``")
    return f"`{doubled}`"
