"""Values of checkpoints in Parquet as JSON, and the statistics of a file as the text that commits have.

A checkpoint may have statistics only as columns (`stats_parsed`). PROTOCOL.md, "Per-file Statistics": dates and timestamps are ISO 8601
text, timestamps with at least milliseconds, and decimals are numbers with all their digits.
"""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sbbf_tool.errors import UnreadableError
from sbbf_tool.gregorian import date_of

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def statistics_text(scalar: pa.Scalar) -> str | None:
    """Return a value of `stats_parsed` as the text of `stats`; None for null. Raises UnreadableError for types without a JSON form."""
    tree = json_value(scalar)
    return None if tree is None else _write(tree)


def json_value(scalar: pa.Scalar) -> Any:
    """Convert a value to one that JSON has, or Decimal; null fields of structs are left out. Raises UnreadableError for other types."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        fields = {kind.field(at).name: json_value(scalar[at]) for at in range(kind.num_fields)}
        return {name: field for name, field in fields.items() if field is not None}
    if pa.types.is_map(kind):
        return {key: _plain(text) for key, text in scalar.as_py()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [json_value(element) for element in scalar.values]
    if pa.types.is_timestamp(kind):
        # pyarrow reads INT96, which Spark uses for timestamps in UTC, as nanoseconds without a zone.
        return _timestamp(scalar.value, _UNITS[kind.unit], kind.tz is not None or kind.unit == "ns")
    if pa.types.is_date(kind):
        days = scalar.value if pa.types.is_date32(kind) else scalar.value // (_DAY * 1000)
        return str(date_of(days))
    return _plain(scalar.as_py())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | Decimal):
        return value
    if isinstance(value, float):
        # JSON has no such number; a file without this bound is read, never skipped wrongly.
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    raise UnreadableError(f"a checkpoint has a value of type {type(value).__name__}, which has no JSON form")


def _timestamp(ticks: int, per_second: int, zoned: bool) -> str:
    seconds, rest = divmod(ticks, per_second)
    days, second = divmod(seconds, _DAY)
    digits = f"{rest * (1_000_000_000 // per_second):09d}"
    fraction = digits[:3] if digits.endswith("000000") else digits[:6] if digits.endswith("000") else digits
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{fraction}"
    return f"{date_of(days)}T{clock}{'Z' if zoned else ''}"


def _write(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_write(value)}" for name, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_write, tree)) + "]"
    return format(tree, "f") if isinstance(tree, Decimal) else json.dumps(tree)
