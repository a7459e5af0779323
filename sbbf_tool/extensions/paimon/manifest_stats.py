"""Record of a manifest in a manifest list: counts, and the ranges of the fields of its entries (manifest/ManifestFile.java)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sbbf_tool.extensions.paimon.binary_row import Value, build_row, parse_row
from sbbf_tool.extensions.paimon.manifest import ADD, VERSION
from sbbf_tool.extensions.paimon.table_schema import TableSchema
from sbbf_tool.records import optional

Entries = Sequence[tuple[int, Mapping[str, Any]]]
"""Kind and record of each entry of a manifest."""
KNOWN_LIST_FIELDS = frozenset(
    (
        *("_VERSION", "_FILE_NAME", "_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES", "_PARTITION_STATS", "_SCHEMA_ID"),
        *("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL", "_MIN_ROW_ID", "_MAX_ROW_ID", "_TOTAL_BUCKETS", "_EXTRA_FILES"),
    )
)
"""Every field of a manifest list in Paimon 0.8 to 2.1."""


def build_list_record(fields: Iterable[str], name: str, size: int, entries: Entries, schema: TableSchema) -> dict[str, Any]:
    """Build the record of a manifest of `size` bytes with these entries; the record has exactly the given fields."""
    num_additions = sum(kind == ADD for kind, _ in entries)
    files = [record["_FILE"] for _, record in entries]
    buckets = [record["_BUCKET"] for _, record in entries]
    levels = [file["_LEVEL"] for file in files]
    spans = [_row_ids(file) for file in files]
    row_ids = [span for span in spans if span is not None]
    has_row_ids = len(row_ids) == len(files)  # as in Paimon, only when every file has row ids
    record = {
        "_VERSION": VERSION,
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": num_additions,
        "_NUM_DELETED_FILES": len(entries) - num_additions,
        "_PARTITION_STATS": partition_stats([record["_PARTITION"] for _, record in entries], schema),
        "_SCHEMA_ID": max(file["_SCHEMA_ID"] for file in files),
        "_MIN_BUCKET": min(buckets),
        "_MAX_BUCKET": max(buckets),
        "_MIN_LEVEL": min(levels),
        "_MAX_LEVEL": max(levels),
        "_MIN_ROW_ID": min(first for first, _ in row_ids) if has_row_ids else None,
        "_MAX_ROW_ID": max(last for _, last in row_ids) if has_row_ids else None,
        "_TOTAL_BUCKETS": None,  # Paimon also writes null, here and in the next field
        "_EXTRA_FILES": None,
    }
    return {field: record[field] for field in fields}


def _row_ids(file: Mapping[str, Any]) -> tuple[int, int] | None:
    first = optional(file, "_FIRST_ROW_ID", int)
    return None if first is None else (first, first + file["_ROW_COUNT"] - 1)


def partition_stats(partitions: Sequence[bytes], schema: TableSchema) -> dict[str, Any]:
    """Compute the minimum and maximum of each partition column, as rows, and the number of nulls in each column."""
    types = schema.partition_types
    columns = list(zip(*(parse_row(partition, types) for partition in partitions), strict=True)) if types else []
    present = [[value for value in column if value is not None] for column in columns]
    return {
        "_MIN_VALUES": build_row([min(column, key=_order, default=None) for column in present], types),
        "_MAX_VALUES": build_row([max(column, key=_order, default=None) for column in present], types),
        "_NULL_COUNTS": [len(column) - len(values) for column, values in zip(columns, present, strict=True)],
    }


def _order(value: Value) -> Any:
    """Return a sort key for Java's order: text by its UTF-8 bytes, which is the order of code points; -0.0 before 0.0; NaN last."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value
