"""Hashes of the columns of a data file in Parquet, ORC or Avro. The format follows from the suffix
of the name, as in Paimon.

The page sizes that a Parquet file states are checked before pyarrow decodes the pages, and Avro
blocks have their own limit (`avro.file`). ORC is not checked: pyarrow decodes a whole stripe and
does not state its size.

The columns of Avro files (format/avro/AvroSchemaConverter.java) become arrays of Arrow. Their text
is hashed as stored, even if it is not UTF-8. A map with text keys is stored as an Avro map; entries
of other maps cannot be indexed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from sbbf_tool.errors import ErrorPlace, UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import iter_values, parse_header
from sbbf_tool.extensions.avro.schema import Schema, fields_of, kind_of, logical_of, without_null
from sbbf_tool.extensions.paimon.arrow_columns import (
    hash_orc,
    hash_parquet,
    hash_values,
    iterate_batches,
    resolve_types,
    stored_type,
)
from sbbf_tool.extensions.paimon.fast_hash import ColumnHashes, ColumnTypes, HashBatch
from sbbf_tool.extensions.paimon.table_schema import DataType, IndexedColumn
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.parquet.checked_streams import HeaderWalk
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, parse_tail

_BATCH_ROWS = 1 << 14
_ARROW_TYPES = {
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
"""The Arrow type of each Avro type other than maps, by kind and logical type."""


def hash_avro(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of an Avro file.

    Raises UsageError for a column that does not exist or has no hash, and UnreadableError if the
    file is broken or contradicts a type.
    """
    header = parse_header(data)
    fields = fields_of(header.schema)
    arrow_fields = [pa.field(name, _arrow_type(field)) for name, field in fields.items()]
    schema = pa.schema(arrow_fields)
    types = resolve_types(schema, columns, orc=False)
    rows = iter_values(data, header, raw_strings=True)
    return ColumnHashes(types, iterate_batches("Avro", _hash_rows(rows, types, schema)))


def _arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of an Avro type; null if no Paimon type with a hash is stored so."""
    schema = without_null(schema)
    kind = kind_of(schema)
    if kind == "map" and isinstance(schema, dict):
        return pa.map_(pa.string(), _arrow_type(schema["values"]))
    return _ARROW_TYPES.get((kind, logical_of(schema)), pa.null())


def _hash_rows(
    rows: Iterator[Any], types: dict[IndexedColumn, DataType], schema: pa.Schema
) -> Iterator[dict[IndexedColumn, HashBatch]]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        if not all(isinstance(row, dict) for row in batch):
            raise UnreadableError("the data file has a row that is null")
        hash_batches = {}
        for indexed, data_type in types.items():
            values = _build_array(_take_cells(batch, indexed), stored_type(schema, indexed))
            hash_batches[indexed] = hash_values(values, len(batch), data_type, indexed)
        yield hash_batches


def _take_cells(rows: Sequence[dict[str, Any]], indexed: IndexedColumn) -> list[Any]:
    """Return the values of a column, or of an entry of a map, without nulls."""
    cells = [row[indexed.column] for row in rows]
    if indexed.key is not None:
        cells = [cell.get(indexed.key) for cell in cells if cell is not None]
    return [cell for cell in cells if cell is not None]


def _build_array(values: list[Any], stored: pa.DataType) -> pa.Array:
    if not pa.types.is_large_string(stored):
        return pa.array(values, stored)
    # Bytes that are not UTF-8 are lone surrogates here.
    texts = [text.encode("utf-8", "surrogateescape") for text in values]
    return pa.array(texts, pa.large_binary()).view(stored)


_READERS = {"parquet": hash_parquet, "orc": hash_orc, "avro": hash_avro}


def hash_columns(
    data: bytes, name: str, columns: ColumnTypes, max_page_bytes: MaxPageBytes = None
) -> ColumnHashes:
    """Open a data file, whose name states its format, to hash the requested columns.

    Raises UsageError for an unsupported format, a column that does not exist, and a type without a
    hash in Paimon; UnreadableError if the file is broken or contradicts the type of a column (also
    while `batches` is read); OversizedPageError.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in _READERS:
        raise UsageError(
            f"cannot read data files of format {suffix!r:.40}; supported: {', '.join(_READERS)}"
        )
    column_hashes = _READERS[suffix](data, columns)
    if suffix == "parquet":
        names = {indexed.column for indexed in columns}
        _check_pages(data, names, PageLimit.of(max_page_bytes))
    return column_hashes


def _check_pages(data: bytes, names: Collection[str], limit: PageLimit) -> None:
    """Raise OversizedPageError for a page of these columns, or of a column below one of them."""

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    prefixes = tuple(f"{name}." for name in names)
    tail = parse_tail(data[-TAIL_BYTES:], len(data))
    footer_end = tail.start + tail.length
    footer = Footer(data[tail.start : footer_end], tail.start)
    for number in range(footer.num_row_groups):
        for column in footer.columns:
            meta = footer.chunk(number, column.index)
            path = ".".join(column.path)
            if meta is None or not f"{path}.".startswith(prefixes):
                continue
            with ErrorPlace(None, f"column {column.name}, row group {number}"):
                walk = HeaderWalk(meta, len(data), limit.ensure)
                walk.check_up_to(len(data), read)
