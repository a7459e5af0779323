"""Types that tables give to columns, in the words of their formats, and the files that were written
before a column got a wider type.

Formats widen integers, FLOAT to DOUBLE, and the digits of decimals (in their specifications: "Type
Widening", "Schema Evolution", "Type Promotion"); some widen integers to decimals and DOUBLE, and
dates to timestamps without a zone. A value is one of the column if the table's type has it,
whatever a file can hold.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.iso8601 import NANOS_PER_DAY, format_date
from sbbf_tool.parquet.logical import AS_STORED, Logical
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, Literal

_BITS = {
    **dict.fromkeys(("byte", "tinyint", "int8", "uint8"), 8),
    **dict.fromkeys(("short", "smallint", "int16", "uint16"), 16),
    **dict.fromkeys(("integer", "int", "int32", "uint32"), 32),
    **dict.fromkeys(("long", "bigint", "int64", "uint64"), 64),
}
_DOUBLE = ("double", "float64")
_DECIMAL = r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)"
_DECIMAL_BYTES = 32
"""More than the digits of any table's decimals need."""
_LOCAL_TIMES = r"timestamp(_ntz|_s|_ms|_us|_ns)?"
_EXACT_BITS = 32
"""Bits of the widest integers that a DOUBLE holds exactly."""


def wider_column(column: Column, type_name: str) -> Column | None:
    """Return the column of a file as one of its table's type, if that is wider than the file's;
    None if it is not, or is not known here."""
    if column.doubt or column.physical == "BOOLEAN":
        return None
    name = type_name.strip().lower()
    kind = "" if column.logical is None else column.logical.kind
    if column.physical in ("INT32", "INT64") and kind in ("", "INT"):
        return _wider_integer(column, name)
    if kind == "DECIMAL":
        return _as_decimal(column, name)
    if kind == "DATE" and column.physical == "INT32" and re.fullmatch(_LOCAL_TIMES, name):
        return _as_type(column, "INT64", Logical("TIMESTAMP", unit="NANOS", utc=False))
    if column.physical == "FLOAT" and column.logical is None and name in _DOUBLE:
        return _as_type(column, "DOUBLE", None)
    return None


def _wider_integer(column: Column, name: str) -> Column | None:
    """Return a column of integers as one of the type `name`; None as `wider_column`."""
    bits = 8 * (column.width or 0)
    if column.logical is not None:
        bits = column.logical.bits
    if _BITS.get(name, 0) > bits:
        is_signed = not name.startswith("u")
        return _as_type(column, "INT64", Logical("INT", _BITS[name], is_signed))
    if name in _DOUBLE and bits <= _EXACT_BITS:
        return _as_type(column, "DOUBLE", None)
    return _as_decimal(column, name)


def _as_decimal(column: Column, name: str) -> Column | None:
    """Return a column of integers or decimals as one of the type `name`; None if that is no decimal
    or the file's."""
    match = re.fullmatch(_DECIMAL, name)
    if match is None:
        return None
    decimal = Logical("DECIMAL", precision=int(match[1]), scale=int(match[2]))
    if decimal == column.logical:
        return None
    return _as_type(column, "FIXED_LEN_BYTE_ARRAY", decimal, _DECIMAL_BYTES)


def _as_type(column: Column, physical: str, logical: Logical | None, length: int = 0) -> Column:
    return replace(
        column, physical=physical, type_length=length, logical=logical, reading=AS_STORED
    )


def parse_widened(column: Column, value: object, reason: str) -> Literal | None:
    """Return what a file answers for a value that `literals.parse_object` refuses for `reason`, but
    that the wider type of its table has; None if that type does not have it either."""
    wide = wider_column(column, column.reading.table_type)
    if wide is None:
        return None
    try:
        literal = literals.parse_object(wide, value)
    except UsageError:
        return None
    if literal.verdict == CANNOT_SAY:
        return literal
    absent = Literal(literal.text, verdict=ABSENT, note=reason)
    if not literal.forms:
        # It is finer than the table's type, or NaN, which no narrower type has.
        return absent
    text = _stored_text(wide, literal.forms[0])
    if text is None:
        return absent
    try:
        return literals.parse(column, text)._replace(text=literal.text)
    except UsageError:
        return absent


def _stored_text(wide: Column, plain: bytes) -> str | None:
    """Return how a file with a narrower type writes a value; None if it has no such value."""
    if wide.logical is not None and wide.logical.kind == "TIMESTAMP":
        nanos = int.from_bytes(plain, "little", signed=True)
        days, time_of_day = divmod(nanos, NANOS_PER_DAY)
        return None if time_of_day else format_date(days)
    if wide.physical == "DOUBLE":
        number = Decimal(*struct.unpack("<d", plain))
    else:
        number = Decimal(literals.format_plain(wide, plain))
    if not number.is_finite():
        return None
    if number == int(number):
        return str(int(number))
    return f"{number:f}"


def mark_rounded(column: Column, value: object, literal: Literal) -> Literal:
    """Mark the form of a FLOAT that is not the value of the table's DOUBLE, but close to it."""
    if column.physical != "FLOAT" or not literal.forms:
        return literal
    wide = wider_column(column, column.reading.table_type)
    if wide is None:
        return literal
    try:
        exact_form = literals.parse_object(wide, value).forms[0]
    except UsageError:
        return literal
    exact = struct.unpack("<d", exact_form)
    stored = struct.unpack("<f", literal.forms[0])
    return literal if exact == stored else literal._replace(rounded=literal.forms)
