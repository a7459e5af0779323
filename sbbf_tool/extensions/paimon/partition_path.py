"""The directory of a partition: `key=value/` for each partition column (utils/PartitionPathUtils.java, InternalRowPartitionComputer.java).

The value is Java's `toString` of Paimon's internal representation (a DATE is its number of days) or, if `partition.legacy-name` is false,
the value cast to a string. Null and blank values are replaced with `partition.default-name`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from sbbf_tool.extensions.paimon.binary_row import Timestamp, Value
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.gregorian import date_of

DEFAULT_NAME = "__DEFAULT_PARTITION__"

_ESCAPED = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{}[]^")
_DAY_MILLIS = 86_400_000


def escape(name: str) -> str:
    """Escape the characters of a key or value that Paimon does not allow in a path, as %XX."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in name)


def build_segments(
    keys: Sequence[str], types: Sequence[DataType], values: Sequence[Value], default_name: str, legacy: bool
) -> list[str | None]:
    """Build the directory names, outermost first; None for a value whose text in Java cannot be determined."""
    segments: list[str | None] = []
    for key, data_type, value in zip(keys, types, values, strict=True):
        text = "" if value is None else format_value(value, data_type, legacy)
        segments.append(None if text is None else f"{escape(key)}={escape(text if text.strip() else default_name)}")
    return segments


def format_value(value: Value, data_type: DataType, legacy: bool) -> str | None:
    """Format a partition value as in a path; None for bytes, for floating-point numbers, which Java writes in its own way, and for times
    that depend on a time zone or a rarely used cast.
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
    return format_value(value, data_type, legacy=False) or format_value(value, data_type, legacy=True) or ""


def _format_timestamp(value: Timestamp, data_type: DataType, legacy: bool) -> str | None:
    if not legacy and data_type.root == "TIMESTAMP_LTZ":
        return None  # in the time zone of the writing process
    days, millis = divmod(value.millis, _DAY_MILLIS)
    seconds, millis = divmod(millis, 1000)
    fraction = f"{millis * 1_000_000 + value.nanos:09d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    second = f":{seconds % 60:02d}"
    if legacy:  # LocalDateTime.toString: as short as possible, the fraction in groups of three digits
        digits = next((fraction[:size] for size in (0, 3, 6, 9) if not fraction[size:].strip("0")), fraction)
        return f"{date_of(days)}T{clock}{second if seconds % 60 or digits else ''}{'.' + digits if digits else ''}"
    digits = fraction[: data_type.precision] + fraction[data_type.precision :].rstrip("0")
    return f"{date_of(days)} {clock}{second}{'.' + digits if digits else ''}"
