"""The result of parsing a written value (`Literal`), and the notation of each kind of column
(`Notation`): LogicalTypes.md.

A value finer than a column's unit or scale cannot be stored in the column. It is absent: it is not
rounded to one that might be present. Text from a command line may contain bytes that are not UTF-8;
they become surrogates ("surrogateescape"), as in Python.
"""

from __future__ import annotations

import struct
import uuid
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Literal as OneOf
from typing import NamedTuple

from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical

_MAX_BLANKS = 64
"""Most blanks at the end of a CHAR with which text is queried: each number of them is another
form."""

ABSENT = "absent"
MAYBE = "maybe"
CANNOT_SAY = "cannot say"


class Literal(NamedTuple):
    """A value to look up: it can be present only if one of its `forms` is. `verdict` is the answer
    if no filter is needed."""

    text: str
    forms: tuple[bytes, ...] = ()
    verdict: str | None = None
    note: str | None = None
    is_null: bool = False
    """Whether the literal is null. Nulls are not stored as values, and no filter contains them."""
    rounded: tuple[bytes, ...] = ()
    """Those of `forms` that are not the value, but what it is in single precision: they may stand
    for it, and reading them does not show whether they do."""


class Notation(Frozen):
    """The written form of the values of a kind of column: a parser, a formatter, and a description
    for errors.

    `parse` raises ValueError or OverflowError for text that cannot be a value, `format` for bytes
    that cannot.
    """

    parse: Callable[[Column, str], Literal]
    format: Callable[[Column, bytes], str]
    expects: Callable[[Column], str]


def logical_of(column: Column) -> Logical:
    """Return the logical type of a column whose logical type selected its notation."""
    assert column.logical is not None
    return column.logical


def width_of(column: Column) -> int:
    """Return the width in bytes of the values of a column whose notation requires a fixed width."""
    assert column.width is not None
    return column.width


# --- Text, UUIDs, and bytes whose only written form is hexadecimal ("String Types", "UUID",
# "Geospatial Types") ---


def _parse_text(column: Column, text: str) -> Literal:
    plain = text.encode("utf-8", "surrogateescape")
    if column.width is not None and len(plain) != column.width:
        raise ValueError
    if column.reading.char_length:
        return _parse_padded(text, plain, column.reading.char_length)
    return Literal(text, (plain,))


def _parse_padded(text: str, plain: bytes, length: int) -> Literal:
    """Return the forms of a text in a column of type CHAR(`length`), with and without blanks at
    its end."""
    bare = plain.rstrip(b" ")
    blanks = length - len(bare.decode("utf-8", "surrogateescape"))
    if blanks > _MAX_BLANKS:
        return Literal(
            text,
            verdict=CANNOT_SAY,
            note=f"text of a CHAR({length}) column may be stored with fewer blanks at its end",
        )
    padded = [bare + b" " * number for number in range(blanks + 1)]
    return Literal(text, tuple(dict.fromkeys((plain, *padded))))


def _refuse_text(column: Column, text: str) -> Literal:
    raise ValueError


def _format_hex(column: Column, plain: bytes) -> str:
    return f"0x{plain.hex()}"


def _expect_bytes(column: Column) -> str:
    if column.width:
        return f"{column.width} bytes in hexadecimal, as 0x.., or as text"
    return "bytes in hexadecimal, as 0x.., or text"


def _parse_uuid(column: Column, text: str) -> Literal:
    return Literal(text, (uuid.UUID(text).bytes,))


def _format_uuid(column: Column, plain: bytes) -> str:
    return str(uuid.UUID(bytes=plain))


TEXT = Notation(
    _parse_text,
    lambda column, plain: plain.decode("utf-8", "surrogateescape"),
    lambda column: "text",
)
BYTES = Notation(_parse_text, _format_hex, _expect_bytes)
"""Bytes without an annotation, which may be text: anything but hexadecimal after 0x is parsed as
text."""
BSON = Notation(_refuse_text, _format_hex, lambda column: "a BSON document in hexadecimal, as 0x..")
GEOMETRIES = Notation(
    _refuse_text, _format_hex, lambda column: "well-known binary (WKB) in hexadecimal, as 0x.."
)
UUIDS = Notation(
    _parse_uuid, _format_uuid, lambda column: "a UUID, such as 123e4567-e89b-12d3-a456-426614174000"
)


_FLOAT_NAMES = {"<e": "half", "<f": "single", "<d": "double"}

# Writers that pad a BYTE_ARRAY decimal pad it to a machine word; the widest word used for decimals
# has 256 bits.
_WORD_BYTES = 32
_MAX_DIGITS = 1000
_DIGITS_OF_64_BITS = 19
"""Digits of which each number has at most 64 bits."""
_SIGNS_AND_DIGITS = b"+-0123456789"
_ARRAY_CODES = {(4, True): "i", (4, False): "I", (8, True): "q", (8, False): "Q"}
"""Type code of an array by the width in bytes and whether the integers are signed."""


def _integer_range(column: Column) -> tuple[int, int]:
    """Return the smallest and the largest number that readers show."""
    bits = width_of(column) * 8
    signed = True
    if column.logical is not None and column.logical.kind == "INT":
        bits = min(column.logical.bits or bits, bits)
        signed = column.logical.signed
    if not signed:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _parse_integer(column: Column, text: str) -> Literal:
    if not text.isascii() or not text.lstrip("+-").isdecimal() or len(text) > _MAX_DIGITS:
        raise ValueError
    value = int(text)
    width = width_of(column)
    bits = equals.narrow_bits(column)
    if bits is not None:
        forms = [
            number.to_bytes(width, "little", signed=number < 0)
            for number in _extended_numbers(value, bits)
        ]
        return Literal(text, tuple(forms))
    low, high = _integer_range(column)
    if not low <= value <= high:
        raise ValueError
    wrapped = value & (1 << width * 8) - 1
    return Literal(text, (wrapped.to_bytes(width, "little"),))


def _extended_numbers(value: int, bits: int) -> Iterable[int]:
    """Return the numbers that may be stored for a value of so many bits, the value first.

    Readers take the low bits, whatever a writer extended them with, so that -1 and 255 are one
    number of 8 bits.
    """
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise ValueError
    low_bits = value & (1 << bits) - 1
    is_sign_set = low_bits >> bits - 1
    sign_extended = low_bits - (1 << bits) if is_sign_set else low_bits
    return dict.fromkeys((value, low_bits, sign_extended))


def parse_integers(column: Column, texts: Sequence[bytes]) -> array[int] | None:
    """Parse many integers as `literals.parse` does, to one number each; None if one is no integer
    that the column can hold.

    Their written form is ASCII digits and signs; None for any other, also if it is a value of the
    column, such as 0x2a.
    """
    other_characters = b"".join(texts).translate(None, _SIGNS_AND_DIGITS)
    if other_characters or max(map(len, texts), default=0) > _MAX_DIGITS:
        return None
    low, _ = _integer_range(column)
    try:
        return array(_ARRAY_CODES[width_of(column), low < 0], map(int, texts))
    except (ValueError, OverflowError):
        return None


def parse_block_of_integers(
    column: Column, data: bytes, offsets: memoryview[int]
) -> array[int] | None:
    """Parse very many integers as `parse_integers` does: value i is bytes `offsets[i]` to
    `offsets[i + 1]`. None also for a value of 20 digits, or with a plus.

    All last digits are read at once, then those before them.
    """
    import numpy as np  # few questions have so many values

    characters = np.frombuffer(data, np.uint8)
    starts = np.asarray(offsets[:-1])
    places = np.array(offsets[1:])
    if (places == starts).any():
        return None
    is_negative = characters[starts] == ord("-")
    num_digits = places - starts - is_negative
    shortest = int(num_digits.min())
    longest = int(num_digits.max())
    if shortest < 1 or longest > _DIGITS_OF_64_BITS:
        return None
    numbers = np.zeros(len(places), np.uint64)
    for position in range(longest):
        places -= 1
        digits = characters[places] - np.uint8(ord("0"))
        if position >= shortest:
            digits[num_digits <= position] = 0
        if digits.max() > 9:
            return None
        numbers += digits * np.uint64(10**position)
    low, high = _integer_range(column)
    if (numbers[is_negative] > -low).any() or (numbers[~is_negative] > high).any():
        return None
    code = _ARRAY_CODES[width_of(column), low < 0]
    signed = np.where(is_negative, np.negative(numbers), numbers)
    return array(code, signed.astype(code).tobytes())


def _format_integer(column: Column, plain: bytes) -> str:
    low, _ = _integer_range(column)
    bits = equals.narrow_bits(column)
    if bits is None:
        return str(int.from_bytes(plain, "little", signed=low < 0))
    number = int.from_bytes(plain, "little", signed=True)
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise ValueError
    return str((number - low) % (1 << bits) + low)


def _expect_integer(column: Column) -> str:
    low, high = _integer_range(column)
    return f"an integer from {low} to {high}"


def _parse_float(column: Column, text: str) -> Literal:
    if "_" in text or not text.isascii():
        raise ValueError
    value = float(text)
    if value != value:
        return Literal(
            text, verdict=MAYBE, note="NaN has many stored forms, and a filter may hold only some"
        )
    if abs(value) == float("inf") and "inf" not in text.lower():
        raise ValueError
    layout = _layout_of(column)
    plain = struct.pack(layout, value)
    (narrow,) = struct.unpack(layout, plain)
    if narrow == 0:
        # Both zeros are equal in SQL, but their bytes differ, and so do their hashes.
        zeros = (struct.pack(layout, 0.0), struct.pack(layout, -0.0))
        rounded: tuple[bytes, ...] = ()
        if value:
            rounded = zeros
        return Literal(text, zeros, rounded=rounded)
    mirrored = value + (value - narrow)
    mirror = _packed(layout, mirrored)
    if narrow != value and mirror is not None and struct.unpack(layout, mirror) == (mirrored,):
        # The value is half way between two narrow numbers, at the precision of a double: the text
        # may mean either.
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
    for digits in range(1, 17):
        number = float(f"{value:.{digits}g}")
        if _packed(layout, number) == plain:
            return repr(number)
    return repr(value)


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
    scaled_value = Decimal(0)
    if value:
        scaled_value = value.scaleb(logical.scale, Context(prec=4 * _MAX_DIGITS))
    unscaled = int(scaled_value)
    if unscaled != scaled_value:
        return Literal(
            text, verdict=ABSENT, note=f"more digits than the column's scale of {logical.scale}"
        )
    if column.physical != "BYTE_ARRAY":
        plain = unscaled.to_bytes(width_of(column), _byte_order(column), signed=True)
        return Literal(text, (plain,))
    widths = _widths(unscaled, logical.precision)
    return Literal(
        text,
        tuple(unscaled.to_bytes(width, "big", signed=True) for width in widths),
        note="a BYTE_ARRAY decimal has other forms, with superfluous sign bytes: "
        f"queried are those of {widths[0]} to {widths[-1]} bytes",
    )


def _widths(unscaled: int, precision: int) -> range:
    """Return the bytes that a writer may use for a BYTE_ARRAY decimal: from the minimum to a word,
    or more if the precision needs it."""
    fewest = _fewest_bytes(unscaled)
    return range(fewest, max(fewest, _WORD_BYTES, _fewest_bytes(10**precision)) + 1)


def _fewest_bytes(value: int) -> int:
    """Return the minimum number of bytes for `value` in two's complement."""
    magnitude = value if value >= 0 else ~value
    return (magnitude.bit_length() + 8) // 8


def _byte_order(column: Column) -> OneOf["little", "big"]:
    return "little" if column.physical in ("INT32", "INT64") else "big"


def _format_decimal(column: Column, plain: bytes) -> str:
    if not plain:
        raise ValueError
    unscaled = int.from_bytes(plain, _byte_order(column), signed=True)
    scale = logical_of(column).scale
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    if scale > 0:
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
    zeros = "0" * -scale
    return f"{sign}{digits}{zeros}"


def _expect_decimal(column: Column) -> str:
    logical = logical_of(column)
    return (
        f"a decimal number of {logical.precision} digits, {logical.scale} of them behind the point"
    )


INTEGERS = Notation(_parse_integer, _format_integer, _expect_integer)
FLOATS = Notation(_parse_float, _format_float, _expect_float)
DECIMALS = Notation(_parse_decimal, _format_decimal, _expect_decimal)
