"""Partition values as text (Iceberg specification, "Partition Transforms"): as in the names of the folders that Iceberg's writers make.

    identity, truncate     the value: 2024-02-29, 2024-02-29T12:30:00, 12.50, base64 of bytes
    year, month            2024, 2024-02
    day, hour              2024-02-29, 2024-02-29-12
    bucket                 the number of the bucket
    void                   none

A value is what Avro stores: days or microseconds since 1970, the unscaled bytes of a decimal.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any
from uuid import UUID

from sbbf_tool.extensions.tables.iceberg.metadata import PartitionField
from sbbf_tool.parquet import iso8601
from sbbf_tool.parquet.column_names import Path
from sbbf_tool.parquet.columns import quote

_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


class PartitionTexts:
    """Partition values of a table's files as text.

    A value has the name of its partition field, and the current name of the column if it is the column's own value. A name means one field
    in all partition specs: names of fields precede those of columns, and newer specs precede older ones.
    """

    def __init__(self, columns: Mapping[int, tuple[Path, str]], specs: Mapping[int, Sequence[PartitionField]]) -> None:
        """Take path and type of the table's columns by field id, and all partition specs of the table."""
        self._columns = columns
        fields = [field for _, spec in sorted(specs.items()) for field in spec if field.transform != "void"]
        pairs = [(name, field) for field in fields if (name := self._column_name(field)) is not None]
        pairs += [(field.name, field) for field in fields]
        self._values: dict[str, tuple[int | None, str]] = {name: (field.source_id, field.transform) for name, field in pairs}

    @property
    def names(self) -> AbstractSet[str]:
        """All names of partition values."""
        return self._values.keys()

    @property
    def types(self) -> Mapping[str, str]:
        """Type of the texts of each partition value; those of `month` and `hour` have the order of text."""
        types = {"year": "int", "month": "string", "day": "date", "hour": "string"}
        source_types = {number: kind for number, (_, kind) in self._columns.items()}
        return {
            name: types.get(transform, "int" if transform.startswith("bucket") else source_types.get(source or 0, "unknown"))
            for name, (source, transform) in self._values.items()
        }

    def names_of(self, field: PartitionField) -> tuple[str, ...]:
        """Return the names of the values of a field; none for the transform `void`, and if newer specs use its names for other fields."""
        names = dict.fromkeys(name for name in (field.name, self._column_name(field)) if name is not None)
        return tuple(name for name in names if self._values.get(name) == (field.source_id, field.transform))

    def text_of(self, field: PartitionField, value: Any) -> str | None:
        """Return a value as text; None for NULL, and for the transform `void`."""
        if value is None or field.transform == "void":
            return None
        column = self._column_of(field)
        try:
            return _write_value(field.transform, "" if column is None else column[1], value)
        except (ValueError, TypeError, ArithmeticError, AssertionError):
            # The value does not fit the type that the column has now.
            return _write_plain(value)

    def _column_name(self, field: PartitionField) -> str | None:
        column = self._column_of(field)
        return quote(column[0]) if column is not None and field.transform == "identity" else None

    def _column_of(self, field: PartitionField) -> tuple[Path, str] | None:
        return None if field.source_id is None else self._columns.get(field.source_id)


def _write_value(transform: str, kind: str, value: Any) -> str:
    match transform:
        case "year":
            return f"{1970 + value:04d}"
        case "month":
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case "day":
            return iso8601.format_date(value)
        case "hour":
            return f"{iso8601.format_date(value // 24)}-{value % 24:02d}"
    if transform != "identity" and not transform.startswith("truncate"):
        return _write_plain(value)
    scale = _DECIMAL.fullmatch(kind)
    if scale:
        return str(Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-int(scale[1])))
    return _WRITERS.get(kind, _write_plain)(value)


def _write_plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _timestamp(unit: str, zone: str = "") -> Callable[[int], str]:
    return lambda count: iso8601.format_timestamp(count, unit, utc=False) + zone


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "date": iso8601.format_date,
    "time": lambda micros: iso8601.format_time(micros, "MICROS"),
    "timestamp": _timestamp("MICROS"),
    "timestamptz": _timestamp("MICROS", "+00:00"),
    "timestamp_ns": _timestamp("NANOS"),
    "timestamptz_ns": _timestamp("NANOS", "+00:00"),
    "uuid": lambda data: str(UUID(bytes=data)),
}
