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

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.iso8601 import NANOS_PER_DAY, format_date
from sbbf_tool.parquet.logical import AS_STORED, Logical
from sbbf_tool.parquet.notation import ABSENT, Literal

_BITS = {
    **dict.fromkeys(("byte", "tinyint", "int8", "uint8"), 8),
    **dict.fromkeys(("short", "smallint", "int16", "uint16"), 16),
    **dict.fromkeys(("integer", "int", "int32", "uint32"), 32),
    **dict.fromkeys(("long", "bigint", "int64", "uint64"), 64),
}
_DECIMAL = r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)"
_DECIMAL_BYTES = 32
"""More than the digits of any table's decimals need."""
_LOCAL_TIMES = r"timestamp(_ntz|_s|_ms|_us|_ns)?"
_EXACT_BITS = 32
"""Bits of the widest integers that a DOUBLE holds exactly."""


def wider_column(column: Column, type_name: str) -> Column | None:
    """Return the column of a file as one of its table's type, if that is wider than the file's;
    None if it is not, or is not known here."""
    name, stored = type_name.strip().lower(), column.logical
    if column.doubt or column.physical == "BOOLEAN":
        return None
    kind = stored.kind if stored is not None else ""
    decimal = re.fullmatch(_DECIMAL, name)
    is_integer = column.physical in ("INT32", "INT64") and kind in ("", "INT")
    bits = 8 * (column.width or 0)
    if is_integer and stored is not None:
        bits = stored.bits
    if name in _BITS and is_integer and _BITS[name] > bits:
        logical = Logical("INT", _BITS[name], not name.startswith("u"))
        return _as_type(column, "INT64", logical)
    if name in ("double", "float64"):
        is_narrower = is_integer and bits <= _EXACT_BITS
        is_narrower = is_narrower or (column.physical == "FLOAT" and stored is None)
        return _as_type(column, "DOUBLE", None) if is_narrower else None
    if decimal is not None and (is_integer or kind == "DECIMAL"):
        wide = Logical("DECIMAL", precision=int(decimal[1]), scale=int(decimal[2]))
        return None if wide == stored else _as_type(column, "FIXED_LEN_BYTE_ARRAY", wide)
    if kind == "DATE" and column.physical == "INT32" and re.fullmatch(_LOCAL_TIMES, name):
        return _as_type(column, "INT64", Logical("TIMESTAMP", unit="NANOS", utc=False))
    return None


def _as_type(column: Column, physical: str, logical: Logical | None) -> Column:
    length = _DECIMAL_BYTES if physical == "FIXED_LEN_BYTE_ARRAY" else 0
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
    from decimal import Decimal

    if wide.logical is not None and wide.logical.kind == "TIMESTAMP":
        days, time_of_day = divmod(int.from_bytes(plain, "little", signed=True), NANOS_PER_DAY)
        return None if time_of_day else format_date(days)
    if wide.physical == "DOUBLE":
        number = Decimal(*struct.unpack("<d", plain))
    else:
        number = Decimal(literals.format_plain(wide, plain))
    if not number.is_finite():
        return None
    return str(int(number)) if number == int(number) else f"{number:f}"


def mark_rounded(column: Column, value: object, literal: Literal) -> Literal:
    """Mark the form of a FLOAT that is not the value of the table's DOUBLE, but close to it."""
    if column.physical != "FLOAT" or not literal.forms:
        return literal
    wide = wider_column(column, column.reading.table_type)
    try:
        exact = None if wide is None else literals.parse_object(wide, value).forms[0]
    except UsageError:
        return literal
    (stored,) = struct.unpack("<f", literal.forms[0])
    if exact is None or struct.unpack("<d", exact) == (stored,):
        return literal
    return literal._replace(rounded=literal.forms)
