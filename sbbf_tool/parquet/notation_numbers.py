"""Integers, floating-point numbers of three widths, and decimals in their four physical forms (LogicalTypes.md, "Numeric Types")."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Literal as OneOf

from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import ABSENT, MAYBE, Literal, Notation, logical_of, width_of

_FLOAT_NAMES = {"<e": "half", "<f": "single", "<d": "double"}

# Writers that pad a BYTE_ARRAY decimal pad it to a machine word; the widest word used for decimals has 256 bits.
_WORD_BYTES = 32
_MAX_DIGITS = 1000

_SIGNS_AND_DIGITS = b"+-0123456789"
_ARRAY_CODES = {(4, True): "i", (4, False): "I", (8, True): "q", (8, False): "Q"}
"""Type code of an array by the width in bytes and whether the integers are signed."""


def _integer_range(column: Column) -> tuple[int, int]:
    """Return the smallest and the largest number that readers show."""
    bits, signed = width_of(column) * 8, True
    if column.logical is not None and column.logical.kind == "INT":
        bits, signed = min(column.logical.bits or bits, bits), column.logical.signed
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _parse_integer(column: Column, text: str) -> Literal:
    if not text.isascii() or not text.lstrip("+-").isdecimal() or len(text) > _MAX_DIGITS:
        raise ValueError
    value, width, bits = int(text), width_of(column), equals.narrow_bits(column)
    if bits is not None:
        # Readers take the low bits, whatever a writer extended them with, so that -1 and 255 are one number of 8 bits.
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise ValueError
        low_bits = value & (1 << bits) - 1
        extended = dict.fromkeys((value, low_bits, low_bits - (1 << bits) if low_bits >> bits - 1 else low_bits))
        return Literal(text, tuple(number.to_bytes(width, "little", signed=number < 0) for number in extended))
    low, high = _integer_range(column)
    if not low <= value <= high:
        raise ValueError
    return Literal(text, ((value & (1 << width * 8) - 1).to_bytes(width, "little"),))


def parse_integers(column: Column, texts: Sequence[bytes]) -> array[int] | None:
    """Parse many integers as `literals.parse` does, to one number each; None if one is no integer that the column can hold.

    Their written form is ASCII digits and signs; None for any other, also if it is a value of the column, such as 0x2a.
    """
    if b"".join(texts).translate(None, _SIGNS_AND_DIGITS) or max(map(len, texts), default=0) > _MAX_DIGITS:
        return None
    low, _ = _integer_range(column)
    try:
        return array(_ARRAY_CODES[width_of(column), low < 0], map(int, texts))
    except (ValueError, OverflowError):
        return None


def _format_integer(column: Column, plain: bytes) -> str:
    low, _ = _integer_range(column)
    bits, value = equals.narrow_bits(column), int.from_bytes(plain, "little", signed=low < 0)
    if bits is not None:
        number = int.from_bytes(plain, "little", signed=True)
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise ValueError
        value = (number - low) % (1 << bits) + low
    return str(value)


def _expect_integer(column: Column) -> str:
    low, high = _integer_range(column)
    return f"an integer from {low} to {high}"


def _parse_float(column: Column, text: str) -> Literal:
    if "_" in text or not text.isascii():
        raise ValueError
    value = float(text)
    if value != value:
        return Literal(text, verdict=MAYBE, note="NaN has many stored forms, and a filter may hold only some")
    if abs(value) == float("inf") and "inf" not in text.lower():
        raise ValueError
    layout = _layout_of(column)
    plain = struct.pack(layout, value)
    (narrow,) = struct.unpack(layout, plain)
    if narrow == 0:
        # Both zeros are equal in SQL, but their bytes differ, and so do their hashes.
        return Literal(text, (struct.pack(layout, 0.0), struct.pack(layout, -0.0)))
    mirrored = value + (value - narrow)
    mirror = _packed(layout, mirrored)
    if narrow != value and mirror is not None and struct.unpack(layout, mirror) == (mirrored,):
        # The value is half way between two narrow numbers, at the precision of a double: the text may mean either.
        return Literal(text, (plain, mirror))
    return Literal(text, (plain,))


def _layout_of(column: Column) -> str:
    assert column.float_format is not None
    return column.float_format


def _packed(layout: str, value: float) -> bytes | None:
    try:
        return struct.pack(layout, value)
    except OverflowError:
        return None


def _format_float(column: Column, plain: bytes) -> str:
    layout = _layout_of(column)
    (value,) = struct.unpack(layout, plain)
    if len(plain) == 8 or value != value or abs(value) == float("inf"):
        return repr(value)
    # The shortest digits that parse to the same narrow number.
    tries = (float(f"{value:.{digits}g}") for digits in range(1, 17))
    return repr(next((number for number in tries if _packed(layout, number) == plain), value))


def _expect_float(column: Column) -> str:
    return f"a number of {_FLOAT_NAMES[_layout_of(column)]} precision"


def _parse_decimal(column: Column, text: str) -> Literal:
    from decimal import Context, Decimal, InvalidOperation

    logical = logical_of(column)
    if "_" in text or not text.isascii() or len(text) > _MAX_DIGITS:
        raise ValueError
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if not value.is_finite() or (value and abs(value.adjusted()) > 2 * _MAX_DIGITS):
        raise ValueError
    scaled_value = value.scaleb(logical.scale, Context(prec=4 * _MAX_DIGITS)) if value else Decimal(0)
    unscaled = int(scaled_value)
    if unscaled != scaled_value:
        return Literal(text, verdict=ABSENT, note=f"more digits than the column's scale of {logical.scale}")
    if column.physical != "BYTE_ARRAY":
        return Literal(text, (unscaled.to_bytes(width_of(column), _byte_order(column), signed=True),))
    widths = _widths(unscaled, logical.precision)
    return Literal(
        text,
        tuple(unscaled.to_bytes(width, "big", signed=True) for width in widths),
        note=f"a BYTE_ARRAY decimal has other forms, with superfluous sign bytes: queried are those of {widths[0]} to {widths[-1]} bytes",
    )


def _widths(unscaled: int, precision: int) -> range:
    """Return the bytes that a writer may use for a BYTE_ARRAY decimal: from the minimum to a word, or more if the precision needs it."""
    fewest = _fewest_bytes(unscaled)
    return range(fewest, max(fewest, _WORD_BYTES, _fewest_bytes(10**precision)) + 1)


def _fewest_bytes(value: int) -> int:
    """Return the minimum number of bytes for `value` in two's complement."""
    return ((value if value >= 0 else ~value).bit_length() + 8) // 8


def _byte_order(column: Column) -> OneOf["little", "big"]:
    return "little" if column.physical in ("INT32", "INT64") else "big"


def _format_decimal(column: Column, plain: bytes) -> str:
    if not plain:
        raise ValueError
    unscaled = int.from_bytes(plain, _byte_order(column), signed=True)
    scale = logical_of(column).scale
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], f".{digits[-scale:]}") if scale > 0 else (digits + "0" * -scale, "")
    return ("-" if unscaled < 0 else "") + whole + fraction


def _expect_decimal(column: Column) -> str:
    logical = logical_of(column)
    return f"a decimal number of {logical.precision} digits, {logical.scale} of them behind the point"


INTEGERS = Notation(_parse_integer, _format_integer, _expect_integer)
FLOATS = Notation(_parse_float, _format_float, _expect_float)
DECIMALS = Notation(_parse_decimal, _format_decimal, _expect_decimal)
