"""Hashes of the columns of Avro data files (format/avro/AvroSchemaConverter.java), which become arrays of Arrow.

Text is hashed as stored, even if it is not UTF-8. A map with text keys is stored as an Avro map; entries of other maps cannot be indexed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro.file import iter_values, parse_header
from sbbf_tool.extensions.avro.schema import Schema, fields_of, kind_of, logical_of, without_null
from sbbf_tool.extensions.paimon.arrow_columns import hash_values, iterate_batches, resolve_types, stored_type
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.fast_hash import ColumnHashes, ColumnTypes, HashBatch
from sbbf_tool.extensions.paimon.table_schema import IndexedColumn

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 14


def hash_avro(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of an Avro file.

    Raises UsageError for a column that does not exist or has no hash, and UnreadableError if the file is broken or contradicts a type.
    """
    import pyarrow as pa

    header = parse_header(data)
    schema = pa.schema([(name, _arrow_type(field)) for name, field in fields_of(header.schema).items()])
    types = resolve_types(schema, columns, orc=False)
    rows = iter_values(data, header, raw_strings=True)
    return ColumnHashes(types, iterate_batches("Avro", _hash_rows(rows, types, schema)))


def _arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of an Avro type; null for one that no Paimon type with a hash is stored as."""
    import pyarrow as pa

    schema = without_null(schema)
    kind = kind_of(schema)
    if kind == "map" and isinstance(schema, dict):
        return pa.map_(pa.string(), _arrow_type(schema["values"]))
    types = {
        ("boolean", ""): pa.bool_(),
        ("int", ""): pa.int32(),
        ("int", "date"): pa.date32(),
        ("int", "time-millis"): pa.time32("ms"),
        ("long", ""): pa.int64(),
        ("long", "timestamp-millis"): pa.timestamp("ms"),
        ("long", "timestamp-micros"): pa.timestamp("us"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms", "UTC"),
        ("long", "local-timestamp-micros"): pa.timestamp("us", "UTC"),
        ("float", ""): pa.float32(),
        ("double", ""): pa.float64(),
        ("string", ""): pa.large_string(),
        ("bytes", ""): pa.large_binary(),
        ("array", ""): pa.list_(pa.null()),
        ("record", ""): pa.struct([]),
    }
    return types.get((kind, logical_of(schema)), pa.null())


def _hash_rows(rows: Iterator[Any], types: dict[IndexedColumn, DataType], schema: pa.Schema) -> Iterator[dict[IndexedColumn, HashBatch]]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        if not all(isinstance(row, dict) for row in batch):
            raise UnreadableError("the data file has a row that is null")
        hash_batches = {}
        for indexed, data_type in types.items():
            cells = [row[indexed.column] for row in batch]
            if indexed.key is not None:
                cells = [cell.get(indexed.key) if cell is not None else None for cell in cells]
            values = _build_array([cell for cell in cells if cell is not None], stored_type(schema, indexed))
            hash_batches[indexed] = hash_values(values, len(batch), data_type, indexed)
        yield hash_batches


def _build_array(values: list[Any], stored: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if not pa.types.is_large_string(stored):
        return pa.array(values, stored)
    # Bytes that are not UTF-8 are lone surrogates here.
    return pa.array([text.encode("utf-8", "surrogateescape") for text in values], pa.large_binary()).view(stored)
