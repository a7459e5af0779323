"""Partition values: their directories, and Paimon's BinaryRow, their encoding in manifests
(data/BinaryRow.java, utils/SerializationUtils.java).

    i32 big-endian   number of fields (added by the manifest)
    nulls            a byte for the row's kind, then a bit for each field; rounded up to 8 bytes
    8 bytes a field  little-endian: the value itself, or its offset and length
    the rest         values longer than 8 bytes, each aligned to 8

Text and binary values of up to 7 bytes are stored inline, with 0x80 | length in the last of the 8
bytes; for longer values, the 8 bytes are offset << 32 | length. Offsets count from the first byte
of the row. Timestamps finer than milliseconds (offset of the milliseconds << 32 | nanoseconds) and
decimals of more than 18 digits (big-endian two's complement) are stored the same way.

The directory of a partition is `key=value/` for each column (utils/PartitionPathUtils.java,
InternalRowPartitionComputer.java). The value is Java's `toString` of Paimon's internal
representation (a DATE is its number of days) or, if `partition.legacy-name` is false, the value
cast to a string. Null and blank values are replaced with `partition.default-name`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.table_schema import DataType
from sbbf_tool.gregorian import date_of

_INLINE = 7
_FIXED_FORMATS = {
    "BOOLEAN": "?7x",
    "TINYINT": "b7x",
    "SMALLINT": "<h6x",
    "INT": "<i4x",
    "DATE": "<i4x",
    "TIME": "<i4x",
    "BIGINT": "<q",
    "FLOAT": "<f4x",
    "DOUBLE": "<d",
}
_TEXT = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_COMPACT_DECIMAL = 18
_MAX_DECIMAL = 38
_COMPACT_TIMESTAMP = 3
_LOW_32 = (1 << 32) - 1


class Timestamp(NamedTuple):
    """Epoch milliseconds, and nanoseconds (0..999,999) within the millisecond."""

    millis: int
    nanos: int


Value = None | bool | int | float | str | bytes | Decimal | Timestamp


def parse_row(data: bytes, types: Sequence[DataType]) -> tuple[Value, ...]:
    """Parse the values of a row, None for null.

    Raises UnreadableError for a wrong number of fields, a truncated row, or nested types.
    """
    if len(data) < 4 or int.from_bytes(data[:4], "big") != len(types):
        raise UnreadableError(f"the row does not have the {len(types)} fields of its type")
    row = data[4:]
    nulls = _count_null_bytes(len(types))
    if len(row) < nulls + 8 * len(types):
        raise UnreadableError(f"a row of {len(types)} fields does not fit into {len(row)} bytes")
    values = []
    for at, data_type in enumerate(types):
        is_null = row[(at + 8) >> 3] >> (at & 7) & 1
        values.append(None if is_null else _parse_field(row, nulls + 8 * at, data_type))
    return tuple(values)


def _parse_field(row: bytes, at: int, data_type: DataType) -> Value:
    root = data_type.root
    if root in _FIXED_FORMATS:
        value: Value = struct.unpack_from(_FIXED_FORMATS[root], row, at)[0]
        return value
    if root in _TEXT:
        try:
            return _parse_bytes(row, at).decode()
        except UnicodeDecodeError:
            raise UnreadableError("a text field of the row is not valid UTF-8") from None
    if root in _BYTES:
        return _parse_bytes(row, at)
    (word,) = struct.unpack_from("<q", row, at)
    if root in _TIMESTAMPS:
        if data_type.precision <= _COMPACT_TIMESTAMP:
            return Timestamp(word, 0)
        millis = int.from_bytes(_slice_far(row, word >> 32, 8), "little", signed=True)
        return Timestamp(millis, word & _LOW_32)
    is_decimal = root == "DECIMAL" and data_type.scale <= data_type.precision <= _MAX_DECIMAL
    if not is_decimal:
        raise UnreadableError(f"cannot parse a row with a field of type {data_type}")
    unscaled = word
    if data_type.precision > _COMPACT_DECIMAL:
        digits = _slice_far(row, word >> 32, word & _LOW_32)
        unscaled = int.from_bytes(digits, "big", signed=True)
    # Exact: arithmetic would round to the context's precision.
    return Decimal(f"{unscaled}e-{data_type.scale}")


def _parse_bytes(row: bytes, at: int) -> bytes:
    last = row[at + _INLINE]
    if last & 0x80:
        size = last & 0x7F
        if size > _INLINE:
            raise UnreadableError(
                f"a field of the row states {size} inline bytes; the limit is {_INLINE}"
            )
        return row[at : at + size]
    (word,) = struct.unpack_from("<q", row, at)
    return _slice_far(row, word >> 32, word & _LOW_32)


def _slice_far(row: bytes, offset: int, size: int) -> bytes:
    if offset < 0 or offset + size > len(row):
        raise UnreadableError(
            f"a field of {size} bytes at offset {offset} extends past the row of {len(row)} bytes"
        )
    return row[offset : offset + size]


def build_row(values: Sequence[Value], types: Sequence[DataType]) -> bytes:
    """Build the bytes of a row, as Paimon writes them, from values as `parse_row` returns them."""
    nulls = bytearray(_count_null_bytes(len(types)))
    fixed = []
    far = bytearray()
    far_at = len(nulls) + 8 * len(types)
    for at, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            nulls[(at + 8) >> 3] |= 1 << (at & 7)
            fixed.append(bytes(8))
            continue
        word, more = _build_field(value, data_type, far_at + len(far))
        fixed.append(word)
        far += more
    num_fields = len(types).to_bytes(4, "big")
    return b"".join((num_fields, nulls, *fixed, far))


def _build_field(value: Value, data_type: DataType, far_at: int) -> tuple[bytes, bytes]:
    """Build the 8 bytes of a field, and the bytes of a long value, which are stored at `far_at`."""
    match value:
        case str():
            return _build_bytes(value.encode(), far_at)
        case bytes():
            return _build_bytes(value, far_at)
        case Timestamp():
            millis = struct.pack("<q", value.millis)
            if data_type.precision <= _COMPACT_TIMESTAMP:
                return millis, b""
            return _pack_place(far_at, value.nanos), millis
        case Decimal():
            return _build_decimal(value, data_type, far_at)
        case _:
            return struct.pack(_FIXED_FORMATS[data_type.root], value), b""


def _build_bytes(data: bytes, far_at: int) -> tuple[bytes, bytes]:
    if len(data) <= _INLINE:
        last = bytes((0x80 | len(data),))
        return data.ljust(_INLINE, b"\0") + last, b""
    padding = bytes(-len(data) % 8)
    return _pack_place(far_at, len(data)), data + padding


def _build_decimal(value: Decimal, data_type: DataType, far_at: int) -> tuple[bytes, bytes]:
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + data_type.scale
    unscaled = int("".join(map(str, digits))) * 10**shift
    if sign:
        unscaled = -unscaled
    if data_type.precision <= _COMPACT_DECIMAL:
        return struct.pack("<q", unscaled), b""
    # As few bytes as two's complement takes, as Java's BigInteger.toByteArray.
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    data = unscaled.to_bytes(size, "big", signed=True)
    return _pack_place(far_at, len(data)), data.ljust(16, b"\0")


def _pack_place(far_at: int, low: int) -> bytes:
    """Build the 8 bytes of a field whose value is at `far_at`: length or nanoseconds are `low`."""
    return struct.pack("<q", far_at << 32 | low)


def _count_null_bytes(fields: int) -> int:
    return (fields + 8 + 63) // 64 * 8


DEFAULT_NAME = "__DEFAULT_PARTITION__"

_ESCAPED = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{}[]^")
_DAY_MILLIS = 86_400_000


def escape(name: str) -> str:
    """Escape the characters of a key or value that Paimon does not allow in a path, as %XX."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in name)


def build_segments(
    keys: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[Value],
    default_name: str,
    legacy: bool,
) -> list[str | None]:
    """Build the directory names, outermost first.

    A name is None if the value's text in Java cannot be determined.
    """
    segments: list[str | None] = []
    for key, data_type, value in zip(keys, types, values, strict=True):
        text = "" if value is None else format_value(value, data_type, legacy)
        if text is None:
            segments.append(None)
            continue
        if not text.strip():
            text = default_name
        segments.append(f"{escape(key)}={escape(text)}")
    return segments


def format_value(value: Value, data_type: DataType, legacy: bool) -> str | None:
    """Format a partition value as in a path.

    Return None for bytes, for floating-point numbers, which Java writes in its own way, and for
    times that depend on a time zone or a rarely used cast.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case Decimal():
            return format(value, "f")
        case Timestamp():
            return _format_timestamp(value, data_type, legacy)
        case int() if legacy or data_type.root not in ("DATE", "TIME"):
            return str(value)
        case int() if data_type.root == "DATE":
            return str(date_of(value))
    return None


def display_value(value: Value, data_type: DataType) -> str:
    """Format a partition value for display."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, float):
        return str(np.float32(value) if data_type.root == "FLOAT" else value)
    for legacy in (False, True):
        text = format_value(value, data_type, legacy=legacy)
        if text:
            return text
    return ""


def _format_timestamp(value: Timestamp, data_type: DataType, legacy: bool) -> str | None:
    if not legacy and data_type.root == "TIMESTAMP_LTZ":
        return None  # in the time zone of the writing process
    days, millis_of_day = divmod(value.millis, _DAY_MILLIS)
    second_of_day, millis = divmod(millis_of_day, 1000)
    minute_of_day, second = divmod(second_of_day, 60)
    hour, minute = divmod(minute_of_day, 60)
    fraction = f"{millis * 1_000_000 + value.nanos:09d}"
    if legacy:
        # LocalDateTime.toString: as short as possible, the fraction in groups of three digits.
        digits = _shorten(fraction)
        clock = f"{date_of(days)}T{hour:02d}:{minute:02d}"
        if second or digits:
            clock += f":{second:02d}"
    else:
        precision = data_type.precision
        digits = fraction[:precision] + fraction[precision:].rstrip("0")
        clock = f"{date_of(days)} {hour:02d}:{minute:02d}:{second:02d}"
    return f"{clock}.{digits}" if digits else clock


def _shorten(fraction: str) -> str:
    """Return the first 0, 3, 6 or 9 of nine digits, after which there are only zeros."""
    for size in (0, 3, 6):
        if not fraction[size:].strip("0"):
            return fraction[:size]
    return fraction
