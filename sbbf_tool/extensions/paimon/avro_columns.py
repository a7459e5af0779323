"""Hashes of the columns of Avro data files (format/avro/AvroSchemaConverter.java).

Text is hashed as stored, even if it is not UTF-8. A map with text keys is stored as an Avro map; entries of other maps cannot be indexed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import iter_values, parse_header
from sbbf_tool.extensions.avro.schema import Schema, fields_of, kind_of, logical_of, without_null
from sbbf_tool.extensions.paimon.data_types import MAX_LENGTH, DataType
from sbbf_tool.extensions.paimon.fast_hash import (
    ColumnHashes,
    ColumnTypes,
    HashBatch,
    HashForm,
    Keys,
    contradiction,
    double_keys,
    float_keys,
    hash_keys,
    key_of,
    resolve_type,
    timestamp_keys,
)
from sbbf_tool.extensions.paimon.table_schema import IndexedColumn

_BATCH_ROWS = 1 << 14
_HINT = "give its type"
_TYPES = {
    ("boolean", ""): DataType("BOOLEAN"),
    ("int", ""): DataType("INT"),
    ("int", "date"): DataType("DATE"),
    ("int", "time-millis"): DataType("TIME"),
    ("long", ""): DataType("BIGINT"),
    ("long", "timestamp-millis"): DataType("TIMESTAMP", 3),
    ("long", "timestamp-micros"): DataType("TIMESTAMP", 6),
    ("long", "local-timestamp-millis"): DataType("TIMESTAMP_LTZ", 3),
    ("long", "local-timestamp-micros"): DataType("TIMESTAMP_LTZ", 6),
    ("float", ""): DataType("FLOAT"),
    ("double", ""): DataType("DOUBLE"),
    ("string", ""): DataType("VARCHAR", MAX_LENGTH),
    ("bytes", ""): DataType("VARBINARY", MAX_LENGTH),
    ("bytes", "decimal"): DataType("DECIMAL"),
    ("map", ""): DataType("MAP"),
    ("array", ""): DataType("ARRAY"),
    ("record", ""): DataType("ROW"),
}
_STORED = {
    HashForm.BYTES: ("string", "bytes"),
    HashForm.INTEGER: ("int", "long"),
    HashForm.DATE: ("int",),
    HashForm.TIME: ("int",),
    HashForm.MILLIS: ("long",),
    HashForm.MICROS: ("long",),
    HashForm.FLOAT: ("float",),
    HashForm.DOUBLE: ("double",),
}


def hash_avro(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of an Avro file.

    Raises UsageError for a column that does not exist or has no hash, and UnreadableError if the file is broken or contradicts a type.
    """
    header = parse_header(data)
    fields = fields_of(header.schema)
    schemas = {indexed: _find_schema(fields, indexed) for indexed in columns}
    types = {indexed: resolve_type(indexed, table_type, infer_type(schemas[indexed]), _HINT) for indexed, table_type in columns.items()}
    for indexed, data_type in types.items():
        _check_stored(indexed, schemas[indexed], data_type)
    rows = iter_values(data, header, raw_strings=True)
    return ColumnHashes(types, _hash_rows(rows, types, schemas))


def _find_schema(fields: Mapping[str, Schema], indexed: IndexedColumn) -> Schema:
    if indexed.column not in fields:
        raise UsageError(f"there is no column {indexed.column!r}", hint=f"the columns of the file are {', '.join(list(fields)[:12])}")
    schema = without_null(fields[indexed.column])
    if indexed.key is None:
        return schema
    if not isinstance(schema, dict) or schema["type"] != "map":
        raise UsageError(f"column {indexed.column} is not a map with text keys, so it has no entry {indexed.key!r}")
    return without_null(schema["values"])


def infer_type(schema: Schema) -> DataType | None:
    """Return the Paimon type that determines the hash of an Avro type; None if there is no such Paimon type."""
    return _TYPES.get((kind_of(schema), logical_of(schema)))


def _check_stored(indexed: IndexedColumn, schema: Schema, data_type: DataType) -> None:
    kind, stored = key_of(data_type), kind_of(schema)
    is_timestamp = "timestamp-mi" in logical_of(schema)
    if kind is None or stored not in _STORED[kind] or is_timestamp != (kind in (HashForm.MILLIS, HashForm.MICROS)):
        raise contradiction(indexed, stored, data_type)


def _hash_rows(
    rows: Iterator[Any], types: dict[IndexedColumn, DataType], schemas: dict[IndexedColumn, Schema]
) -> Iterator[dict[IndexedColumn, HashBatch]]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        if not all(isinstance(row, dict) for row in batch):
            raise UnreadableError("the data file has a row that is null")
        hash_batches = {}
        for indexed, data_type in types.items():
            cells = [row[indexed.column] for row in batch]
            if indexed.key is not None:
                cells = [cell.get(indexed.key) if cell is not None else None for cell in cells]
            # Bytes that are not UTF-8 are lone surrogates here.
            values = [cell.encode("utf-8", "surrogateescape") if isinstance(cell, str) else cell for cell in cells if cell is not None]
            keys = _find_keys(values, data_type, schemas[indexed])
            hash_batches[indexed] = HashBatch(len(batch), len(batch) - len(values), hash_keys(keys), values, keys)
        yield hash_batches


def _find_keys(values: list[Any], data_type: DataType, schema: Schema) -> Keys:
    kind = key_of(data_type)
    if kind is HashForm.BYTES:
        return values
    if kind is HashForm.FLOAT:
        return float_keys(np.array(values, np.float32))
    if kind is HashForm.DOUBLE:
        return double_keys(np.array(values, np.float64))
    try:
        keys = np.array(values, np.int32 if kind_of(schema) == "int" else np.int64).astype(np.int64)
    except OverflowError:
        raise UnreadableError("an Avro int has more than 32 bits") from None
    if kind in (HashForm.MILLIS, HashForm.MICROS):
        keys = timestamp_keys(keys, 1000 if logical_of(schema).endswith("millis") else 1_000_000, kind)
    return keys
