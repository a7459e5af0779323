"""How the value of a partition compares with a written value: the one judge of the values of
folders and tables.

A table states the type of a partition column, and values compare as values of this type. A folder
states a text: readers take it for text, a number or a date, and `1` for `01` or not. Then every
order that some reader finds is possible, and only what no reader finds is excluded. The folder
value `__HIVE_DEFAULT_PARTITION__` means NULL, for which no comparison is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias
from uuid import UUID

from sbbf_tool.arguments import QuotedText, TypedText, UnquotedText
from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.parquet import iso8601
from sbbf_tool.predicates import ONLY_NULL, Comparison, Constant, IsNull, Truth, any_of

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{4,}-\d{1,2}-\d{1,2}[ T]\d|\d{2}:\d{2}"
_ZONE = r"([Zz]|UTC|:\d\d(\.\d+)?\s*[-+]\d\d(:?\d\d)?)$"
_RELATIVE_ERROR = Decimal("1e-6")
"""Difference below which two numbers may be the same value of a FLOAT."""
_MOST_OFFSET = 26 * 3600 * iso8601.NANOS_PER_SECOND
"""Nanoseconds between the local times of an instant in any two places."""
_TEXTS_OF_NULL = ("", "null")
"""Texts of folders that some readers take for null."""

Orders: TypeAlias = frozenset[str]
"""The orders that are possible of a stored value and another: `<`, `=` and `>`."""
LESS: Orders = frozenset("<")
EQUAL: Orders = frozenset("=")
GREATER: Orders = frozenset(">")
ANY_ORDER: Orders = frozenset("<=>")
UNEQUAL: Orders = frozenset("<>")


def truth_of(sign: str, orders: Orders, *, may_be_null: bool) -> Truth:
    """Return what a comparison may be if these orders are possible."""
    fitting = frozenset(sign)
    return Truth(bool(orders & fitting), bool(orders - fitting), may_be_null)


def judge_stated(part: Comparison | IsNull, stored: str | None, type_name: str | None) -> Truth:
    """Return what a part may be for the value of a partition; None is null. Raises UsageError if a
    constant is no value of the type."""
    is_doubtful = type_name is None and stored is not None and stored.lower() in _TEXTS_OF_NULL
    if isinstance(part, IsNull):
        return Truth(stored is None or is_doubtful, stored is not None, False)
    truths = []
    for constant in part.constants:
        with ErrorPlace(None, f"partition column {part.column}"):
            orders = _orders_of_constant(part.column, stored, constant, type_name)
        if orders is None:
            truths.append(ONLY_NULL)
        else:
            truths.append(truth_of(part.sign, orders, may_be_null=is_doubtful))
    return any_of(truths)


def _orders_of_constant(
    column: str, stored: str | None, constant: Constant, type_name: str | None
) -> Orders | None:
    """Return the possible orders; None for null."""
    is_text = type_name is None
    if type_name is not None:
        key = parse_value(constant.text, type_name)
        is_text = isinstance(key, str)
    if stored is None:
        return None
    if constant.kind in ("text", "typed"):
        quoted = QuotedText if constant.kind == "text" else TypedText
        return orders_of(stored, quoted(constant.text), type_name)
    if constant.kind != "number" or not is_text:
        return orders_of(stored, constant.text, type_name)
    orders = _orders_of_numbers(stored, constant.text)
    if orders is None:
        raise UsageError(
            f"partition {column}={stored} is not a number",
            hint=f"write '{constant.text}' to compare it as text",
        )
    return orders


def orders_of(stored: str, value: object, type_name: str | None) -> Orders:
    """Return the possible orders of a partition value and a value: text, or a Python object. Raises
    UsageError if the type has no such value."""
    if type_name is None:
        return _orders_without_type(stored, value)
    text = text_in_table(value)
    key = parse_value(text, type_name)
    try:
        stored_key = parse_value(stored, type_name)
    except UsageError:
        # The table has a value that is none of the column's type.
        return ANY_ORDER
    if key is None:
        # Bytes have several forms as text.
        return ANY_ORDER
    if _differ_in_zone(stored, text, type_name) and abs(stored_key[0] - key[0]) <= _MOST_OFFSET:
        # A reader may take a timestamp without a zone for local time.
        return ANY_ORDER
    if isinstance(key, tuple) and type(key[0]) is bool and stored_key[0] != key[0]:
        # Engines order NaN last, or not at all.
        return UNEQUAL
    if type_name.lower().startswith(("float", "double", "real")):
        return _orders_of_numbers(stored, text) or ANY_ORDER
    if isinstance(value, QuotedText) and isinstance(key, tuple) and stored_key != key:
        number = int(type(key[0]) is bool)
        if _is_rounded(stored_key[number], key[number]):
            return _order(stored_key, key) | EQUAL
    is_converted = isinstance(key, str) and isinstance(value, TypedText | UnquotedText)
    if is_converted and _shape(stored) != _shape(text):
        return ANY_ORDER
    return _order(stored_key, key)


def _shape(text: str) -> str:
    """Return text with all its digits alike. Texts of one shape have the order of the numbers or
    dates to which engines convert them."""
    return re.sub(r"\d", "0", text)


def is_certainly_equal(stored: str, value: object, type_name: str | None) -> bool:
    """Return whether a partition value certainly equals a value."""
    text = text_in_table(value)
    if type_name is None:
        # Without a type, some readers take these texts for null.
        return stored == str(value) and stored not in _TEXTS_OF_NULL
    try:
        return orders_of(stored, text, type_name) == EQUAL
    except UsageError:
        return False


def _order(first: Any, second: Any) -> Orders:
    if first == second:
        return EQUAL
    return LESS if first < second else GREATER


def _orders_without_type(stored: str, value: object) -> Orders:
    """Return the possible orders of a text of an unknown type and a value."""
    if not isinstance(value, str | int | float | Decimal | date):
        return ANY_ORDER
    text = text_in_table(value)
    if re.search(_TIME, stored) or re.search(_TIME, text):
        return ANY_ORDER
    as_text = _order(stored, text)
    padded_stored = _pad_date(stored.strip())
    padded_text = _pad_date(text.strip())
    if padded_stored.casefold() == padded_text.casefold():
        return as_text | EQUAL
    if re.fullmatch(_DATE, padded_stored):
        if re.fullmatch(_DATE, padded_text):
            return as_text | _order(padded_stored, padded_text)
        has_digits = any(map(str.isdigit, padded_text))
        return ANY_ORDER if has_digits else as_text
    as_numbers = _orders_of_numbers(padded_stored, padded_text)
    if as_numbers is None:
        return ANY_ORDER if padded_text.startswith(("0x", "0X")) else as_text
    if not isinstance(value, str):
        return as_numbers
    if isinstance(value, QuotedText) and _is_rounded(_number(padded_stored), _number(padded_text)):
        return as_text | as_numbers | EQUAL
    return (as_text - EQUAL) | as_numbers


def _orders_of_numbers(stored: str, text: str) -> Orders | None:
    """Return the possible orders of two numbers; None if one of the texts is no number."""
    stored_number = _number(stored)
    number = _number(text)
    if stored_number is None or number is None:
        return None
    if not (stored_number.is_finite() and number.is_finite()):
        return ANY_ORDER
    has_fraction = _is_float(stored) or _is_float(text)
    if has_fraction and stored_number != number and _are_close(stored_number, number):
        return ANY_ORDER
    return _order(stored_number, number)


def _is_rounded(stored: Any, other: Any) -> bool:
    """Return whether a reader may round a value in quotes to the stored one, which it does not
    equal: a number to the last digit, an instant to seconds."""
    if isinstance(stored, int):
        return bool(abs(stored - other) < iso8601.NANOS_PER_SECOND)
    try:
        exponent = stored.as_tuple().exponent
        return isinstance(exponent, int) and bool(abs(stored - other) < Decimal(1).scaleb(exponent))
    except ArithmeticError:
        # One of them is beyond the range of Decimal.
        return True


def _pad_date(text: str) -> str:
    """Write 2024-1-3, which DuckDB reads as a date, as 2024-01-03."""
    return re.sub(r"(?<=\d-)\d\b", r"0\g<0>", text)


def _are_close(first: Decimal, second: Decimal) -> bool:
    """Return whether two numbers may be the same value of a FLOAT."""
    try:
        largest = max(abs(first), abs(second))
        return abs(first - second) <= _RELATIVE_ERROR * largest
    except ArithmeticError:
        # One of them is beyond the range of Decimal.
        return True


def text_in_table(value: object) -> str:
    """Return the text of a value as tables write it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _differ_in_zone(stored: str, text: str, type_name: str) -> bool:
    if not type_name.lower().startswith("timestamp"):
        return False
    has_stored_zone = bool(re.search(_ZONE, stored))
    has_zone = bool(re.search(_ZONE, text))
    return has_stored_zone != has_zone


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return None


def _is_float(text: str) -> bool:
    return not re.fullmatch(r"\s*[-+]?\d+\s*", text)


def _parse_number(text: str) -> tuple[bool, Decimal]:
    """Return whether it is NaN, which is above all numbers in query engines, and the number."""
    number = Decimal(text.replace("_", "?"))
    if number.is_nan():
        return True, Decimal(0)
    return False, number


_PARSERS: tuple[tuple[str, Callable[[str], Any], str], ...] = (
    (
        r"u?(tiny|small|big|huge)?int(eger)?\d*|byte|short|long|float\d*|double|real|decimal",
        _parse_number,
        "a number",
    ),
    ("string|varchar|char|text", str, "text"),
    ("date", iso8601.parse_date, "a date, such as '2026-01-31'"),
    (
        r"timestamp\w*",
        lambda text: iso8601.parse_timestamp(text)[:2],
        "a timestamp, such as '2026-01-31T12:30:00Z'",
    ),
    (
        "time",
        lambda text: iso8601.parse_time(text)[:2],
        "a time of day, such as '12:30:00'",
    ),
    (
        "bool(ean)?",
        lambda text: {"true": True, "false": False}[text.lower()],
        "true or false",
    ),
    ("uuid", UUID, "a UUID"),
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
        if not re.fullmatch(pattern, base):
            continue
        try:
            return parse(text)
        except (ValueError, ArithmeticError, KeyError):
            message = f"{text[:60]!r} is not a value of type {type_name[:60]}"
            raise UsageError(message, hint=f"it takes {form}") from None
    return None
