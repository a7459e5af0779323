"""A value as a person writes it, and the plain bytes that a column would store for it (LogicalTypes.md, Encodings.md "Plain").

Some answers need no filter: a value finer than the column's unit cannot be stored in it, NaN is stored in many forms, null in none.
`parse` and `format_plain` are each other's inverse, as far as a form is the one that a writer would choose.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet import iso8601
from sbbf_tool.parquet.columns import Column

ABSENT, MAYBE, CANNOT_SAY = "absent", "maybe", "cannot say"

_TEXT_KINDS = ("STRING", "ENUM", "JSON")
_FLOAT_FORMATS = {2: "<e", 4: "<f", 8: "<d"}
_JULIAN_DAY_OF_EPOCH = 2_440_588
# Writers pad a BYTE_ARRAY decimal to a machine word, if at all; longer padding than this is not looked for.
_PADDED_DECIMAL_BYTES = 16
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Literal:
    """What to ask for: the value is there at most if one of `forms` is. `verdict` is the answer where no filter is needed."""

    text: str
    forms: tuple[bytes, ...] = ()
    verdict: str | None = None
    note: str | None = None


class _Notation(NamedTuple):
    """How values of a kind of column are written: both directions, and a description for the one who got it wrong.

    `parse` raises ValueError or OverflowError for what cannot be a value.
    """

    parse: Callable[[Column, str], Literal]
    format: Callable[[Column, bytes], str]
    expects: Callable[[Column], str]


def parse(column: Column, text: str | None) -> Literal:
    """`text` as a value of `column`; None asks for null, and so does the word in a column that is not text.

    Raises UsageError, saying what the column takes, where it cannot be a value of it.
    """
    if text is None or (text.lower() == "null" and not _takes_any_text(column)):
        return Literal("null", verdict=CANNOT_SAY, note="nulls are never in a Bloom filter")
    if column.physical == "BOOLEAN":
        return Literal(text, verdict=CANNOT_SAY, note="filters of BOOLEAN columns hold nothing (parquet-java) or are not written")
    notation = _notation(column)
    try:
        return notation.parse(column, text)
    except (ValueError, OverflowError):
        shown = repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
        raise UsageError(
            f"{shown} is not a value of {column.type_name}", place=f"column {column.name}", hint=f"it takes {notation.expects(column)}"
        ) from None


def parse_object(column: Column, value: object) -> Literal:
    """A Python value (int, float, str, bytes, Decimal, date, time, datetime, UUID or None) as a value of `column`; see `parse`."""
    import datetime
    import decimal
    import uuid

    if value is None or isinstance(value, str):
        return parse(column, value)
    is_text = column.logical is not None and column.logical.kind in _TEXT_KINDS
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Literal(f"0x{bytes(value).hex()}", (bytes(value),)) if is_text else parse(column, f"0x{bytes(value).hex()}")
    written = None
    if isinstance(value, float):
        written = repr(value)
    elif isinstance(value, datetime.date | datetime.time):
        written = value.isoformat()
    elif isinstance(value, decimal.Decimal | uuid.UUID) or hasattr(value, "__index__"):
        written = str(value) if not hasattr(value, "__index__") else str(value.__index__())
    if written is None or is_text or isinstance(value, bool):
        raise UsageError(
            f"{value!r} ({type(value).__name__}) is not a value of {column.type_name}", place=f"column {column.name}"
        )
    return parse(column, written)


def format_plain(column: Column, plain: bytes) -> str:
    """A stored value as `parse` takes it; in hexadecimal where the bytes are not a value of the logical type."""
    if column.physical == "BOOLEAN" or (column.width is not None and len(plain) != column.width):
        return f"0x{plain.hex()}"
    try:
        return _notation(column).format(column, plain)
    except (ValueError, OverflowError):
        return f"0x{plain.hex()}"


def _notation(column: Column) -> _Notation:
    kind = column.logical.kind if column.logical else ""
    return _BY_KIND.get(kind) or _BY_PHYSICAL[column.physical]


def _takes_any_text(column: Column) -> bool:
    return column.physical == "BYTE_ARRAY" and not (column.logical and column.logical.kind == "DECIMAL")


# Numbers


def _integer_range(column: Column) -> tuple[int, int]:
    bits = (column.width or 4) * 8
    signed = True
    if column.logical is not None and column.logical.kind == "INT":
        bits, signed = column.logical.bits or bits, column.logical.signed
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _parse_integer(column: Column, text: str) -> Literal:
    if not text.lstrip("+-").isdecimal() or not text.isascii() or len(text) > 40:
        raise ValueError
    value = int(text)
    low, high = _integer_range(column)
    if not low <= value <= high:
        raise ValueError
    return Literal(text, (_integer_bytes(column, value),))


def _integer_bytes(column: Column, value: int) -> bytes:
    width = column.width or 4
    return (value & (1 << width * 8) - 1).to_bytes(width, "little")


def _format_integer(column: Column, plain: bytes) -> str:
    low, high = _integer_range(column)
    value = int.from_bytes(plain, "little", signed=low < 0)
    if not low <= value <= high:
        raise ValueError
    return str(value)


def _expect_integer(column: Column) -> str:
    low, high = _integer_range(column)
    return f"an integer from {low} to {high}"


def _parse_float(column: Column, text: str) -> Literal:
    if "_" in text:
        raise ValueError
    value = float(text)
    if value != value:
        return Literal(text, verdict=MAYBE, note="NaN is stored in many forms, and a filter may know only some")
    layout = _FLOAT_FORMATS[column.width or 8]
    try:
        plain = struct.pack(layout, value)
    except (struct.error, OverflowError):
        raise ValueError from None
    if value == 0 or (not any(plain[:-1]) and plain[-1] in (0, 0x80)):
        # SQL calls both zeros equal; their bytes differ, and so do their hashes.
        return Literal(text, (struct.pack(layout, 0.0), struct.pack(layout, -0.0)))
    return Literal(text, (plain,))


def _format_float(column: Column, plain: bytes) -> str:
    value: float = struct.unpack(_FLOAT_FORMATS[len(plain)], plain)[0]
    if len(plain) == 8 or value != value or value in (float("inf"), float("-inf")):
        return repr(value)
    # The shortest digits that give the same narrow float back.
    layout = _FLOAT_FORMATS[len(plain)]
    for digits in range(1, 18):
        shortest = f"{value:.{digits}g}"
        if struct.pack(layout, float(shortest)) == plain:
            return repr(float(shortest))
    return repr(value)


def _expect_float(column: Column) -> str:
    return {2: "a number of half precision (to 65504)", 4: "a number of single precision", 8: "a number"}[column.width or 8]


def _parse_decimal(column: Column, text: str) -> Literal:
    from decimal import Context, Decimal, InvalidOperation

    assert column.logical is not None
    if "_" in text or len(text) > 1000:
        raise ValueError
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if not value.is_finite() or abs(value.adjusted()) > 2000:
        raise ValueError
    scaled = value.scaleb(column.logical.scale, Context(prec=4000))
    unscaled = int(scaled)
    if column.logical.precision and abs(unscaled) >= 10**column.logical.precision:
        raise ValueError
    if unscaled != scaled:
        return Literal(text, verdict=ABSENT, note=f"finer than the column's scale of {column.logical.scale}")
    if column.physical in ("INT32", "INT64"):
        return Literal(text, (unscaled.to_bytes(column.width or 8, "little", signed=True),))
    if column.physical == "FIXED_LEN_BYTE_ARRAY":
        return Literal(text, (unscaled.to_bytes(column.type_length, "big", signed=True),))
    if column.physical != "BYTE_ARRAY":
        raise ValueError
    minimal = max(1, ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8)
    widths = range(minimal, max(minimal, _PADDED_DECIMAL_BYTES) + 1)
    return Literal(
        text,
        tuple(unscaled.to_bytes(width, "big", signed=True) for width in widths),
        note=f"a BYTE_ARRAY decimal has other forms, with superfluous sign bytes: asked for those of {minimal} to {widths[-1]} bytes",
    )


def _format_decimal(column: Column, plain: bytes) -> str:
    assert column.logical is not None
    unscaled = int.from_bytes(plain, "little" if column.physical in ("INT32", "INT64") else "big", signed=True)
    digits = str(abs(unscaled)).rjust(column.logical.scale + 1, "0")
    point = len(digits) - column.logical.scale
    fraction = f".{digits[point:]}" if column.logical.scale > 0 else ""
    return ("-" if unscaled < 0 else "") + digits[:point] + fraction


def _expect_decimal(column: Column) -> str:
    assert column.logical is not None
    return f"a decimal number of {column.logical.precision} digits, {column.logical.scale} of them behind the point"


# Times


def _parse_date(column: Column, text: str) -> Literal:
    return Literal(text, (iso8601.parse_date(text).to_bytes(4, "little", signed=True),))


def _format_date(column: Column, plain: bytes) -> str:
    return iso8601.format_date(int.from_bytes(plain, "little", signed=True))


def _finer(text: str, unit: str) -> Literal:
    return Literal(text, verdict=ABSENT, note=f"finer than the column's unit, {unit.lower()}")


def _parse_time(column: Column, text: str) -> Literal:
    assert column.logical is not None
    instant = iso8601.parse_time(text)
    if instant.zoned and not column.logical.utc:
        raise ValueError
    count = instant.in_unit(column.logical.unit)
    if count is None:
        return _finer(text, column.logical.unit)
    return Literal(text, (_integer_bytes(column, count),))


def _format_time(column: Column, plain: bytes) -> str:
    assert column.logical is not None
    count = int.from_bytes(plain, "little", signed=True)
    if not 0 <= count * iso8601.UNIT_NANOS[column.logical.unit] < iso8601.NANOS_PER_DAY:
        raise ValueError
    return iso8601.format_time(count, column.logical.unit)


def _parse_timestamp(column: Column, text: str) -> Literal:
    assert column.logical is not None
    instant = iso8601.parse_timestamp(text)
    if instant.zoned and not column.logical.utc:
        raise ValueError
    count = instant.in_unit(column.logical.unit)
    if count is None:
        return _finer(text, column.logical.unit)
    note = "read as UTC" if column.logical.utc and not instant.zoned else None
    return Literal(text, (count.to_bytes(8, "little", signed=True),), note=note)


def _format_timestamp(column: Column, plain: bytes) -> str:
    assert column.logical is not None
    return iso8601.format_timestamp(int.from_bytes(plain, "little", signed=True), column.logical.unit, utc=column.logical.utc)


def _expect_time(column: Column) -> str:
    assert column.logical is not None
    zone = "" if column.logical.utc else ", without a zone"
    form = "HH:MM:SS" if column.logical.kind == "TIME" else "YYYY-MM-DDTHH:MM:SS"
    return f"{form} with fractions to {column.logical.unit.lower()}{zone}"


def _parse_int96(column: Column, text: str) -> Literal:
    if text.lower().startswith("0x"):
        return _parse_bytes(column, text)
    instant = iso8601.parse_timestamp(text)
    if instant.finer:
        return _finer(text, "NANOS")
    days, nanos = divmod(instant.nanos, iso8601.NANOS_PER_DAY)
    note = None if instant.zoned else "read as UTC"
    return Literal(text, (nanos.to_bytes(8, "little") + (days + _JULIAN_DAY_OF_EPOCH).to_bytes(4, "little", signed=True),), note=note)


def _format_int96(column: Column, plain: bytes) -> str:
    nanos = int.from_bytes(plain[:8], "little")
    days = int.from_bytes(plain[8:], "little", signed=True) - _JULIAN_DAY_OF_EPOCH
    if nanos >= iso8601.NANOS_PER_DAY:
        raise ValueError
    return iso8601.format_timestamp(days * iso8601.NANOS_PER_DAY + nanos, "NANOS", utc=True)


def _parse_interval(column: Column, text: str) -> Literal:
    if text.lower().startswith("0x"):
        return _parse_bytes(column, text)
    parts = iso8601.parse_duration(text)
    if parts is None:
        return _finer(text, "MILLIS")
    return Literal(text, (b"".join(part.to_bytes(4, "little") for part in parts),))


def _format_interval(column: Column, plain: bytes) -> str:
    months, days, millis = struct.unpack("<III", plain)
    return iso8601.format_duration(months, days, millis)


# Bytes


def _parse_text(column: Column, text: str) -> Literal:
    return Literal(text, (text.encode("utf-8", "surrogateescape"),))


def _format_text(column: Column, plain: bytes) -> str:
    return plain.decode("utf-8", "surrogateescape")


def _parse_bytes(column: Column, text: str) -> Literal:
    plain = bytes.fromhex(text[2:]) if text[:2] in ("0x", "0X") else text.encode("utf-8", "surrogateescape")
    if column.width is not None and len(plain) != column.width:
        raise ValueError
    return Literal(text, (plain,))


def _format_bytes(column: Column, plain: bytes) -> str:
    return f"0x{plain.hex()}"


def _expect_bytes(column: Column) -> str:
    return f"{column.width} bytes in hexadecimal, as 0x.." if column.width else "bytes in hexadecimal, as 0x.., or text"


def _parse_uuid(column: Column, text: str) -> Literal:
    import uuid

    return Literal(text, (_parse_bytes(column, text).forms if text[:2] == "0x" else (uuid.UUID(text).bytes,)))


def _format_uuid(column: Column, plain: bytes) -> str:
    import uuid

    return str(uuid.UUID(bytes=plain))


_INTEGERS = _Notation(_parse_integer, _format_integer, _expect_integer)
_FLOATS = _Notation(_parse_float, _format_float, _expect_float)
_TEXT = _Notation(_parse_text, _format_text, lambda column: "text")
_BYTES = _Notation(_parse_bytes, _format_bytes, _expect_bytes)

_BY_PHYSICAL = {
    "INT32": _INTEGERS,
    "INT64": _INTEGERS,
    "INT96": _Notation(_parse_int96, _format_int96, lambda column: "YYYY-MM-DDTHH:MM:SS with fractions to nanos, or 12 bytes as 0x.."),
    "FLOAT": _FLOATS,
    "DOUBLE": _FLOATS,
    "BYTE_ARRAY": _BYTES,
    "FIXED_LEN_BYTE_ARRAY": _BYTES,
}
_BY_KIND = {
    **dict.fromkeys(_TEXT_KINDS, _TEXT),
    "DECIMAL": _Notation(_parse_decimal, _format_decimal, _expect_decimal),
    "DATE": _Notation(_parse_date, _format_date, lambda column: "a date as YYYY-MM-DD"),
    "TIME": _Notation(_parse_time, _format_time, _expect_time),
    "TIMESTAMP": _Notation(_parse_timestamp, _format_timestamp, _expect_time),
    "UUID": _Notation(_parse_uuid, _format_uuid, lambda column: "a UUID, such as 123e4567-e89b-12d3-a456-426614174000"),
    "FLOAT16": _FLOATS,
    "INTERVAL": _Notation(_parse_interval, _format_interval, lambda column: "an ISO 8601 duration, such as P1M2DT3.004S"),
}
