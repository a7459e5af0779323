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


class Timestamp(NamedTuple):
    """Epoch milliseconds, and nanoseconds (0..999,999) within the millisecond."""

    millis: int
    nanos: int


Value = None | bool | int | float | str | bytes | Decimal | Timestamp


def parse_row(data: bytes, types: Sequence[DataType]) -> tuple[Value, ...]:
    """Parse the values of a row, None for null. Raises UnreadableError for a wrong number of
    fields, a truncated row, or nested types."""
    if len(data) < 4 or int.from_bytes(data[:4], "big") != len(types):
        raise UnreadableError(f"the row does not have the {len(types)} fields of its type")
    row = data[4:]
    nulls = _count_null_bytes(len(types))
    if len(row) < nulls + 8 * len(types):
        raise UnreadableError(f"a row of {len(types)} fields does not fit into {len(row)} bytes")
    return tuple(
        None if row[(at + 8) >> 3] >> (at & 7) & 1 else _parse_field(row, nulls + 8 * at, data_type)
        for at, data_type in enumerate(types)
    )


def _parse_field(row: bytes, at: int, data_type: DataType) -> Value:
    root = data_type.root
    if root in _FIXED_FORMATS:
        value: Value = struct.unpack_from(_FIXED_FORMATS[root], row, at)[0]
        return value
    (word,) = struct.unpack_from("<q", row, at)
    if root in _TEXT:
        try:
            return _parse_bytes(row, at).decode()
        except UnicodeDecodeError:
            raise UnreadableError("a text field of the row is not valid UTF-8") from None
    if root in _BYTES:
        return _parse_bytes(row, at)
    if root in _TIMESTAMPS:
        if data_type.precision <= _COMPACT_TIMESTAMP:
            return Timestamp(word, 0)
        return Timestamp(
            int.from_bytes(_slice_far(row, word >> 32, 8), "little", signed=True), word & 0xFFFFFFFF
        )
    if root == "DECIMAL":
        if data_type.precision > _MAX_DECIMAL or data_type.scale > data_type.precision:
            raise UnreadableError(f"cannot parse a row with a field of type {data_type}")
        is_far = data_type.precision > _COMPACT_DECIMAL
        unscaled = (
            int.from_bytes(_slice_far(row, word >> 32, word & 0xFFFFFFFF), "big", signed=True)
            if is_far
            else word
        )
        return Decimal(
            f"{unscaled}e-{data_type.scale}"
        )  # exact: arithmetic would round to the context's precision
    raise UnreadableError(f"cannot parse a row with a field of type {data_type}")


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
    return _slice_far(row, word >> 32, word & 0xFFFFFFFF)


def _slice_far(row: bytes, offset: int, size: int) -> bytes:
    if offset < 0 or offset + size > len(row):
        raise UnreadableError(
            f"a field of {size} bytes at offset {offset} extends past the row of {len(row)} bytes"
        )
    return row[offset : offset + size]


def build_row(values: Sequence[Value], types: Sequence[DataType]) -> bytes:
    """Build the bytes of a row, as Paimon writes them, from values as `parse_row` returns them."""
    nulls = bytearray(_count_null_bytes(len(types)))
    fixed: list[bytes] = []
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
    return len(types).to_bytes(4, "big") + bytes(nulls) + b"".join(fixed) + bytes(far)


def _build_field(value: Value, data_type: DataType, far_at: int) -> tuple[bytes, bytes]:
    """Build the 8 bytes of a field, and the bytes of a long value, which are stored at `far_at`."""
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        if len(data) <= _INLINE:
            return data.ljust(_INLINE, b"\0") + bytes((0x80 | len(data),)), b""
        return struct.pack("<q", far_at << 32 | len(data)), data + bytes(-len(data) % 8)
    if isinstance(value, Timestamp):
        if data_type.precision <= _COMPACT_TIMESTAMP:
            return struct.pack("<q", value.millis), b""
        return struct.pack("<q", far_at << 32 | value.nanos), struct.pack("<q", value.millis)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        shift = int(exponent) + data_type.scale
        unscaled = int("".join(map(str, digits))) * 10**shift * (-1 if sign else 1)
        if data_type.precision <= _COMPACT_DECIMAL:
            return struct.pack("<q", unscaled), b""
        data = unscaled.to_bytes(
            (unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True
        )
        return struct.pack("<q", far_at << 32 | len(data)), data.ljust(16, b"\0")
    return struct.pack(_FIXED_FORMATS[data_type.root], value), b""


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
    """Build the directory names, outermost first; None for a value whose text in Java cannot be
    determined."""
    segments: list[str | None] = []
    for key, data_type, value in zip(keys, types, values, strict=True):
        text = "" if value is None else format_value(value, data_type, legacy)
        segments.append(
            None
            if text is None
            else f"{escape(key)}={escape(text if text.strip() else default_name)}"
        )
    return segments


def format_value(value: Value, data_type: DataType, legacy: bool) -> str | None:
    """Format a partition value as in a path; None for bytes, for floating-point numbers, which Java
    writes in its own way, and for times that depend on a time zone or a rarely used cast.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Timestamp):
        return _format_timestamp(value, data_type, legacy)
    if isinstance(value, int) and (legacy or data_type.root not in ("DATE", "TIME")):
        return str(value)
    return str(date_of(value)) if isinstance(value, int) and data_type.root == "DATE" else None


def display_value(value: Value, data_type: DataType) -> str:
    """Format a partition value for display."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, float):
        return str(np.float32(value) if data_type.root == "FLOAT" else value)
    return (
        format_value(value, data_type, legacy=False)
        or format_value(value, data_type, legacy=True)
        or ""
    )


def _format_timestamp(value: Timestamp, data_type: DataType, legacy: bool) -> str | None:
    if not legacy and data_type.root == "TIMESTAMP_LTZ":
        return None  # in the time zone of the writing process
    days, millis = divmod(value.millis, _DAY_MILLIS)
    seconds, millis = divmod(millis, 1000)
    fraction = f"{millis * 1_000_000 + value.nanos:09d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    second = f":{seconds % 60:02d}"
    if (
        legacy
    ):  # LocalDateTime.toString: as short as possible, the fraction in groups of three digits
        digits = next(
            (fraction[:size] for size in (0, 3, 6, 9) if not fraction[size:].strip("0")), fraction
        )
        return f"{date_of(days)}T{clock}{second if seconds % 60 or digits else ''}{'.' + digits if digits else ''}"
    digits = fraction[: data_type.precision] + fraction[data_type.precision :].rstrip("0")
    return f"{date_of(days)} {clock}{second}{'.' + digits if digits else ''}"
