"""The written form of a value, and the plain bytes that a column would store for it
(LogicalTypes.md, Encodings.md "Plain").

Some answers need no filter: a column cannot store a value finer than its unit, NaN has many stored
forms, and null has none. `parse` and `format_plain` are inverse to each other for the forms that
writers choose. Except in text columns, `0x` and hexadecimal digits stand for the plain bytes
themselves, so that bytes without a written form can be looked up too.
"""

from __future__ import annotations

import datetime
import re
import struct
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import QuotedText, TypedText, UnquotedText, as_value
from sbbf_tool.errors import UsageError
from sbbf_tool.hints import normal_form
from sbbf_tool.parquet import int96
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import narrow_bits
from sbbf_tool.parquet.notation import (
    ABSENT,
    BSON,
    BYTES,
    CANNOT_SAY,
    DECIMALS,
    FLOATS,
    GEOMETRIES,
    INTEGERS,
    TEXT,
    UUIDS,
    Literal,
    Notation,
)
from sbbf_tool.parquet.notation_of_times import DATES, INT96, INTERVALS, TIMES, TIMESTAMPS

if TYPE_CHECKING:
    from decimal import Decimal

_SHOWN_CHARACTERS = 60
BOOLEAN_FORMS = {"true": b"\1", "false": b"\0"}
"""Each BOOLEAN in one byte, by its text in lower case."""

_BY_PHYSICAL = {
    "INT32": INTEGERS,
    "INT64": INTEGERS,
    "INT96": INT96,
    "FLOAT": FLOATS,
    "DOUBLE": FLOATS,
    "BYTE_ARRAY": BYTES,
    "FIXED_LEN_BYTE_ARRAY": BYTES,
}
NOTATIONS: dict[str, tuple[Notation, tuple[str, ...]]] = {
    "INT": (INTEGERS, ("INT32", "INT64")),
    "DECIMAL": (DECIMALS, ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")),
    "FLOAT16": (FLOATS, ("FIXED_LEN_BYTE_ARRAY(2)",)),
    "DATE": (DATES, ("INT32",)),
    "TIME": (TIMES, ("INT32 MILLIS", "INT64 MICROS", "INT64 NANOS")),
    "TIMESTAMP": (TIMESTAMPS, ("INT64 MILLIS", "INT64 MICROS", "INT64 NANOS")),
    "INTERVAL": (INTERVALS, ("FIXED_LEN_BYTE_ARRAY(12)",)),
    "STRING": (TEXT, ("BYTE_ARRAY",)),
    "ENUM": (TEXT, ("BYTE_ARRAY",)),
    "JSON": (TEXT, ("BYTE_ARRAY",)),
    "BSON": (BSON, ("BYTE_ARRAY",)),
    "GEOMETRY": (GEOMETRIES, ("BYTE_ARRAY",)),
    "GEOGRAPHY": (GEOMETRIES, ("BYTE_ARRAY",)),
    "UUID": (UUIDS, ("FIXED_LEN_BYTE_ARRAY(16)",)),
}
"""Notation of the values of each logical type, and the physical types that the specification allows
for it, with the length or the unit if only one is allowed. On any other physical type, the
annotation has no meaning.
"""


def parse(column: Column, text: str | None) -> Literal:
    """Parse `text` as a value of `column`; None means null, and so does the word "null" in a column
    that is not text.

    Raises UsageError, with the notation of the column's values, if `text` is not a value of the
    column.
    """
    if text is None or (text.lower() == "null" and not may_be_text(column)):
        return Literal(
            "null", verdict=CANNOT_SAY, note="nulls are never in a Bloom filter", is_null=True
        )
    if column.physical == "BOOLEAN":
        if text.lower() not in BOOLEAN_FORMS:
            raise UsageError(
                f"{_shorten(text)} is not a value of BOOLEAN",
                place=f"column {column.name}",
                hint="it takes true or false",
            )
        return Literal(
            text,
            verdict=CANNOT_SAY,
            note="filters of BOOLEAN columns are empty (parquet-java) or are not written",
        )
    if column.doubt:
        return Literal(text, verdict=CANNOT_SAY, note=column.doubt)
    notation = notation_of(column)
    try:
        if text[:2] in ("0x", "0X") and notation is not TEXT:
            return _parse_plain(column, notation, text)
        return notation.parse(column, text)
    except (ValueError, OverflowError):
        message = f"{_shorten(text)} is not a value of {column.type_name}"
        raise UsageError(
            message, place=f"column {column.name}", hint=f"it takes {notation.expects(column)}"
        ) from None


def _shorten(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return repr(text)
    return repr(text[:_SHOWN_CHARACTERS] + "...")


def parse_object(column: Column, value: object) -> Literal:
    """Convert a Python value to a value of `column`; see `parse`.

    It may be None, text, bytes (the plain form), a number, Decimal, date, time, datetime,
    timedelta, UUID, or a scalar of numpy, pandas or pyarrow that means one of these, or null.
    """
    value = as_value(value)
    if value is None:
        return parse(column, None)
    if column.physical == "BOOLEAN" or column.doubt:
        return parse(column, str(value))
    if converts_text(column, value):
        return Literal(str(value), verdict=CANNOT_SAY, note=CONVERTED)
    if isinstance(value, str):
        return _as_converted(value, parse(column, str(value)))
    is_text = notation_of(column) is TEXT
    if isinstance(value, (bytes, bytearray, memoryview)):
        plain = bytes(value)
        hexadecimal = f"0x{plain.hex()}"
        if is_text:
            text = plain.decode("utf-8", "surrogateescape")
            return parse(column, text)._replace(text=hexadecimal)
        return parse(column, hexadecimal)
    is_rounded = _is_rounded(column, value)
    written = None if is_text or is_rounded else write_object(value)
    if written is None:
        raise UsageError(
            f"{value!r} ({type(value).__name__}) is not a value of {column.type_name}",
            place=f"column {column.name}",
            hint="give a Decimal or text: a float is rounded" if is_rounded else None,
        )
    return parse(column, written)


CONVERTED = "readers convert the text of the column to compare it; write text in single quotes"


def converts_text(column: Column, value: object) -> bool:
    """Return whether readers convert the text of a column, in ways of their own, to compare it with
    this value of a condition."""
    return isinstance(value, TypedText | UnquotedText) and may_be_text(column)


def _as_converted(text: str, literal: Literal) -> Literal:
    """Answer `cannot say` for a value in quotes that engines may round before they compare it."""
    if literal.verdict == ABSENT and isinstance(text, QuotedText):
        return literal._replace(verdict=CANNOT_SAY, note=f"{literal.note}; engines may round it")
    return literal


_EXACT_IN_DOUBLE = 1 << 53


def parse_unfit(column: Column, value: object, reason: str) -> Literal:
    """Return what a file answers for a value that `parse_object` refuses, but that the type of the
    same column in other files may hold.

    Readers widen numbers: a number that this type cannot hold is in no row. They also convert other
    types, in ways of their own.
    """
    text = str(value)
    unsure = Literal(text, verdict=CANNOT_SAY, note=f"{reason}; readers may convert it")
    absent = Literal(text, verdict=ABSENT, note=reason)
    if isinstance(value, QuotedText):
        absent = unsure
    if column.physical == "BOOLEAN" or column.doubt:
        return unsure
    notation = notation_of(column)
    is_numeric = notation in (INTEGERS, DECIMALS, FLOATS)
    if not is_numeric or isinstance(value, bytes | bytearray | memoryview):
        return unsure
    number = parse_number(text)
    if number is None:
        return unsure
    if notation is INTEGERS:
        is_exact = abs(number) < _EXACT_IN_DOUBLE
        if is_exact and number == int(number):
            with suppress(UsageError):
                return parse(column, str(int(number)))._replace(text=text)
        return absent if is_exact or text.lstrip("+-").isdecimal() else unsure
    try:
        parse(column, text)
    except UsageError:
        return unsure if column.physical == "DOUBLE" else absent
    # Refused for another reason, such as a float in a column of decimals.
    return unsure


def with_single_precision(column: Column, literal: Literal) -> Literal:
    """Add the form that a value of a DOUBLE has if it came from a FLOAT of the same table: rounded,
    and widened again."""
    if column.physical != "DOUBLE" or len(literal.forms) != 1:
        return literal
    (exact,) = literal.forms
    (number,) = struct.unpack("<d", exact)
    try:
        single = struct.pack("<f", number)
    except OverflowError:
        return literal
    (rounded,) = struct.unpack("<f", single)
    other = struct.pack("<d", rounded)
    if other == exact:
        return literal
    return literal._replace(forms=(exact, other), rounded=(other,))


def parse_number(text: str) -> Decimal | None:
    """Return the number that a text of reasonable length means; None if it means none, or no finite
    one."""
    from decimal import Decimal, InvalidOperation

    # Python reads 1_000 and digits of other scripts, which no query engine does everywhere.
    if len(text) > _SHOWN_CHARACTERS or not text.isascii() or "_" in text:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) >= _MOST_DIGITS:
        return None
    return number


_MOST_DIGITS = 1000
_SHOWN_DIGITS = 2 * _SHOWN_CHARACTERS + 8
_HEXADECIMAL = (
    r"(?i)(?:0x|\\x|x')((?:[0-9a-f]{2})+)'?|((?:[0-9a-f]{2}){4,})|\[((?:[0-9a-f]{2} ?)+)\]"
)
"""Bytes as SQL clients print them: `\\x00ff`, `X'00ff'`, `00ff00ff`, and `[00 FF]` as Spark
does."""
_ESCAPED = rb"\\x([0-9a-fA-F]{2})"
_OTHER_FORM = {"NFC": "NFD", "NFD": "NFC"}
_ALPHANUMERIC = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TO_LETTERS = bytes.maketrans(_ALPHANUMERIC, b"a" * len(_ALPHANUMERIC))
_UUID = r"(?i)([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})"


def other_meaning(column: Column, text: str) -> str | None:
    """Return the words in which to warn that text may be the notation of another value than its own
    characters; None if it is not."""
    if not may_be_text(column) or text[:2] in ("0x", "0X"):
        return None
    shown = f"the characters {text[:_SHOWN_CHARACTERS]} were queried"
    form = normal_form(text)
    if form is not None:
        return f"{shown}, in Unicode normal form {form}: they may be stored in {_OTHER_FORM[form]}"
    if notation_of(column) is TEXT:
        uuid = re.fullmatch(_UUID, text)
        if uuid is None:
            return None
        separator = "" if "-" in text else "-"
        return f"{shown}: a UUID may be stored as {separator.join(uuid.groups())}"
    plain = _plain_meant(text)
    if plain is None:
        return None
    digits = plain[:_SHOWN_DIGITS]
    ending = "..." if len(plain) > _SHOWN_DIGITS else ""
    return f"{shown}: write bytes in hexadecimal, as 0x{digits}{ending}"


def _plain_meant(text: str) -> str | None:
    """Return the bytes that text may be a notation of, in hexadecimal; None if it is none."""
    uuid = re.fullmatch(_UUID, text)
    if uuid is not None:
        return "".join(uuid.groups()).lower()
    match = re.fullmatch(_HEXADECIMAL, text)
    if match is not None:
        digits = next(group for group in match.groups() if group is not None)
        return digits.replace(" ", "").lower()
    encoded = text.encode("utf-8", "surrogateescape")
    if not re.search(_ESCAPED, encoded):
        return None
    plain = re.sub(_ESCAPED, _byte_of, encoded)
    return plain.hex()


def _byte_of(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode())


def are_alike(first: bytes, second: bytes) -> bool:
    """Return whether texts have the same length and the same punctuation, or are both in the same
    Unicode normal form."""
    form = normal_form(first.decode("utf-8", "replace"))
    if form is not None and form == normal_form(second.decode("utf-8", "replace")):
        return True
    return first.translate(_TO_LETTERS) == second.translate(_TO_LETTERS)


def format_plain(column: Column, plain: bytes) -> str:
    """Format a stored value in the notation of `parse`; in hexadecimal if the bytes are not a value
    of the logical type."""
    has_other_width = column.width is not None and len(plain) != column.width
    if column.physical == "BOOLEAN" or column.doubt or has_other_width:
        return f"0x{plain.hex()}"
    try:
        return notation_of(column).format(column, plain)
    except (ValueError, OverflowError):
        return f"0x{plain.hex()}"


def format_short(column: Column, plain: bytes, most: int = _SHOWN_CHARACTERS) -> str:
    """Format a stored value, in words if it is a BOOLEAN, in at most so many characters."""
    text = None
    if column.physical == "BOOLEAN":
        words = {form: word for word, form in BOOLEAN_FORMS.items()}
        text = words.get(plain)
    if text is None:
        text = format_plain(column, plain)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def notation_of(column: Column) -> Notation:
    logical = column.logical
    usual = _BY_PHYSICAL[column.physical]
    if logical is None:
        return usual
    notation, stored_as = NOTATIONS.get(logical.kind, (usual, ()))
    is_defined = (
        column.physical in stored_as
        or f"{column.physical}({column.type_length})" in stored_as
        or f"{column.physical} {logical.unit}" in stored_as
    )
    return notation if is_defined else usual


def may_be_text(column: Column) -> bool:
    """Return whether text is stored in the column as its own bytes, unless it is plain bytes in
    hexadecimal, as 0x.."""
    if column.physical == "BOOLEAN" or column.doubt:
        return False
    notation = notation_of(column)
    return notation is TEXT or (notation is BYTES and column.width is None)


def are_text(column: Column) -> bool:
    """Return whether every text is stored in the column as its own bytes."""
    return may_be_text(column) and notation_of(column) is TEXT


def are_integers(column: Column) -> bool:
    """Return whether `parse_integers` can parse values of the column."""
    is_plain = not column.doubt and narrow_bits(column) is None
    return column.physical in ("INT32", "INT64") and is_plain and notation_of(column) is INTEGERS


def _parse_plain(column: Column, notation: Notation, text: str) -> Literal:
    """Parse plain bytes; the forms to look up are these bytes and all others in which their value
    may be stored."""
    plain = bytes.fromhex(text[2:])
    if column.width is not None and len(plain) != column.width:
        raise ValueError
    notation_text = format_plain(column, plain)
    if not notation_text.startswith("0x"):
        literal = notation.parse(column, notation_text)
        if literal.verdict != CANNOT_SAY:
            return Literal(
                text,
                tuple(dict.fromkeys((plain, *literal.forms))),
                literal.verdict,
                f"plain bytes, which stand for {notation_text}",
            )
    if column.physical == "INT96":
        return Literal(text, (plain, *int96.other_forms_of(plain)))
    return Literal(text, (plain,))


def _is_rounded(column: Column, value: object) -> bool:
    """Return whether `value` is a binary fraction but the column is DECIMAL: readers compare the
    nearest double, not its digits."""
    if notation_of(column) is not DECIMALS:
        return False
    from numbers import Real  # values of a command line are text

    return isinstance(value, Real) and not hasattr(value, "__index__")


def write_object(value: object) -> str | None:
    """Write a Python object in its usual notation; None for objects that no column can store."""
    import decimal
    from numbers import Real

    type_name = type(value).__name__
    # numpy's, by either of its names
    if isinstance(value, bool) or type_name in ("bool", "bool_"):
        return None
    if type_name == "timedelta64":
        value = _duration_of(value)
    if isinstance(value, datetime.timedelta):
        nanos = value.microseconds * 1000 + getattr(value, "nanoseconds", 0)
        return f"P{value.days}DT{value.seconds}.{nanos:09d}S"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if isinstance(value, Real):
        return repr(float(value))
    return str(value) if type_name == "datetime64" else None


def _duration_of(value: Any) -> object:
    """Convert a duration of numpy, which counts any unit; None for months and years, whose length
    is unknown, and for too many units."""
    import numpy as np

    unit, step = np.datetime_data(value.dtype)
    number = value.item()
    if isinstance(number, datetime.timedelta):
        return number
    if unit != "ns":
        return None
    whole, rest = divmod(number * step, 1000)
    return None if rest else datetime.timedelta(microseconds=whole)
