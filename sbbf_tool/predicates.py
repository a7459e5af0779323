"""Conditions as a tree of parts, such as `day >= '2026-01-01' AND (id IN (1, 2) OR city IS NULL)`,
judged by what each part may be.

`condition_parser` makes the tree from text. What a part may be is for its caller to say: see
`judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sbbf_tool.arguments import QuotedText, TypedText, UnquotedText
from sbbf_tool.errors import UsageError

_SHOWN_CHARACTERS = 60
_BARE_DATE = r"\b\d{4}-\d\d-\d\d"
UNDECIDED = "the values of columns do not show it"
BY_ENGINE = "use a query engine for this condition"


class Constant(NamedTuple):
    """A literal, by its text without quotes."""

    text: str
    kind: str = "text"
    """text, number or boolean, as it is written; typed for text after the name of a type, such as
    DATE '2026-01-01'."""


class Comparison(NamedTuple):
    """True if the comparison holds between the column and any of the constants."""

    column: str
    sign: str
    """=, <, <=, > or >=."""
    constants: tuple[Constant, ...]
    text: str
    """The part as it was written."""


class IsNull(NamedTuple):
    column: str
    text: str


class Other(NamedTuple):
    """A part that nothing answers."""

    text: str


class Not(NamedTuple):
    operand: Expression
    text: str


class AllOf(NamedTuple):
    operands: tuple[Expression, ...]
    text: str


class AnyOf(NamedTuple):
    operands: tuple[Expression, ...]
    text: str


Part = Comparison | IsNull | Other
Expression = Part | Not | AllOf | AnyOf


class Truth(NamedTuple):
    """What a part or a condition may be in some rows, as SQL has it. Each is a bool, or an array of
    one for each row.

    The negation of what may be true is what may be false: an absence is never negated.
    """

    may_be_true: Any
    may_be_false: Any
    may_be_null: Any


ANYTHING = Truth(True, True, True)
ONLY_TRUE = Truth(True, False, False)
ONLY_FALSE = Truth(False, True, False)
ONLY_NULL = Truth(False, False, True)


def judge(expression: Expression, judge_part: Callable[[Part], Truth]) -> Truth:
    """Return what a condition may be by what each of its parts may be."""
    if isinstance(expression, Comparison | IsNull | Other):
        return judge_part(expression)
    if isinstance(expression, Not):
        return negate(judge(expression.operand, judge_part))
    truths = [judge(operand, judge_part) for operand in expression.operands]
    if isinstance(expression, AllOf):
        return all_of(truths)
    return any_of(truths)


def negate(truth: Truth) -> Truth:
    return Truth(truth.may_be_false, truth.may_be_true, truth.may_be_null)


def all_of(truths: list[Truth]) -> Truth:
    """Return what the conjunction may be: null if no operand is false, and one is null."""
    may_be_true, may_be_false, may_be_null = truths[0]
    for truth in truths[1:]:
        both_hold = may_be_true | may_be_null
        holds = truth.may_be_true | truth.may_be_null
        may_be_null = (may_be_null & holds) | (truth.may_be_null & both_hold)
        may_be_true = may_be_true & truth.may_be_true
        may_be_false = may_be_false | truth.may_be_false
    return Truth(may_be_true, may_be_false, may_be_null)


def any_of(truths: list[Truth]) -> Truth:
    return negate(all_of(list(map(negate, truths))))


def parts_of(expression: Expression) -> Iterator[Part]:
    """Yield the parts of a condition, in order."""
    if isinstance(expression, Not):
        yield from parts_of(expression.operand)
    elif isinstance(expression, AllOf | AnyOf):
        for operand in expression.operands:
            yield from parts_of(operand)
    else:
        yield expression


def columns_of(expression: Expression) -> tuple[str, ...]:
    """Return the names of the columns of a condition, in order, each once."""
    columns: dict[str, None] = {}
    for part in parts_of(expression):
        if not isinstance(part, Other):
            columns[part.column] = None
    return tuple(columns)


def conjuncts_of(expression: Expression) -> Iterator[Expression]:
    """Yield the parts of a condition that are joined by AND, in order."""
    if isinstance(expression, AllOf):
        for operand in expression.operands:
            yield from conjuncts_of(operand)
    else:
        yield expression


def join(expressions: Sequence[Expression]) -> Expression:
    """Join conditions by AND."""
    if len(expressions) == 1:
        return expressions[0]
    texts = []
    for expression in expressions:
        text = expression.text
        texts.append(f"({text})" if isinstance(expression, AnyOf) else text)
    return AllOf(tuple(expressions), " AND ".join(texts))


class ColumnValues(NamedTuple):
    """The values of which a row must have one in a column."""

    column: str
    values: tuple[str | None, ...]
    """None is null."""


_VALUES = {"text": QuotedText, "typed": TypedText}


@lru_cache(maxsize=64)
def values_in(expression: Expression) -> ColumnValues | None:
    """Return the values that =, IN and IS NULL look for; None for other conditions. Cached, so that
    files share the question about the same values."""
    if isinstance(expression, IsNull):
        return ColumnValues(expression.column, (None,))
    if not isinstance(expression, Comparison) or expression.sign != "=":
        return None
    values = []
    for constant in dict.fromkeys(expression.constants):
        kind = _VALUES.get(constant.kind, UnquotedText)
        values.append(kind(constant.text))
    return ColumnValues(expression.column, tuple(values))


def ensure_answered(expression: Expression, reason: str, hint: str) -> None:
    """Raise UsageError if nothing answers a part of a condition."""
    for part in parts_of(expression):
        if isinstance(part, Other):
            text = part.text[:_SHOWN_CHARACTERS]
            raise UsageError(f"nothing decides {text}: {reason}", hint=quoting_of(part) or hint)


def quoting_of(part: Other) -> str | None:
    """Return which quotes a part that nothing answers seems to lack; None if it lacks none."""
    bare = re.sub("'[^']*'", "", part.text)
    if '"' in bare:
        return "in double quotes is a column, in single quotes text"
    if re.search(_BARE_DATE, bare):
        return "write a date in single quotes"
    return None
