"""Hashes of arrays of Arrow, and of the columns of Parquet and ORC data files, read with pyarrow.

A Parquet schema determines what Paimon hashes, because the unit of a timestamp depends on its
precision. An ORC schema does not: all ORC timestamps have the same unit, so their Paimon type must
be given. ORC pads CHAR with blanks, which this module strips, as Paimon's ORC reader does.

Paimon's Java code passes a java.sql.Timestamp to ORC: a TIMESTAMP WITH LOCAL TIME ZONE is stored
shifted by the time zone of the writing process (`orc_time_zones`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.fast_hash import (
    ColumnHashes,
    ColumnTypes,
    HashBatch,
    HashForm,
    Keys,
    Longs,
    double_keys,
    float_keys,
    hash_keys,
    key_of,
    timestamp_keys,
)
from sbbf_tool.extensions.paimon.orc_time_zones import is_written_in_utc
from sbbf_tool.extensions.paimon.table_schema import MAX_LENGTH, DataType, IndexedColumn
from sbbf_tool.parquet.footer import MAGIC, TAIL_BYTES, build_tail, parse_tail
from sbbf_tool.parquet.int96 import INT96_BYTES, JULIAN_DAY_OF_EPOCH, without_int96

_BATCH_ROWS = 1 << 16
_TYPES = {
    **dict.fromkeys(("string", "large_string"), DataType("VARCHAR", MAX_LENGTH)),
    **dict.fromkeys(
        ("binary", "large_binary", "fixed_size_binary"), DataType("VARBINARY", MAX_LENGTH)
    ),
    **dict.fromkeys(("time32", "time64"), DataType("TIME")),
    **dict.fromkeys(("list", "large_list"), DataType("ARRAY")),
    "int8": DataType("TINYINT"),
    "int16": DataType("SMALLINT"),
    "int32": DataType("INT"),
    "int64": DataType("BIGINT"),
    "float": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "date32": DataType("DATE"),
    "bool": DataType("BOOLEAN"),
    "map": DataType("MAP"),
    "struct": DataType("ROW"),
}
"""The Paimon type of each Arrow type, by the first word of the Arrow type's name."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_MICROS = 86_400_000_000
_YEAR_1901_NANOS = -25_202 * _DAY_MICROS * 1000
_ORC_HINT = (
    "give its type, such as TIMESTAMP(3): ORC files do not state the precision of a timestamp"
)


def hash_parquet(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of a Parquet file.

    Raises UsageError for a column that does not exist or has no hash, and UnreadableError if the
    file is broken or contradicts a type.
    """
    with _translate_errors("Parquet"):
        file = parquet.ParquetFile(pa.BufferReader(data))
        types = resolve_types(file.schema_arrow, columns, orc=False)
        if _has_int96(file.schema):
            metadata = _read_metadata_without_int96(data)
            file = parquet.ParquetFile(pa.BufferReader(data), metadata=metadata)
    batches = file.iter_batches(_BATCH_ROWS, columns=_names_of(columns))
    hash_batches = (_hash_batch(batch, types) for batch in batches)
    return ColumnHashes(types, iterate_batches("Parquet", hash_batches))


def _names_of(columns: ColumnTypes) -> list[str]:
    return sorted({indexed.column for indexed in columns})


def _has_int96(schema: parquet.ParquetSchema) -> bool:
    return any(schema.column(at).physical_type == "INT96" for at in range(len(schema)))


def _read_metadata_without_int96(data: bytes) -> parquet.FileMetaData:
    """Return the metadata of a file with INT96 as 12 bytes.

    pyarrow reads INT96 as 64 bits of nanoseconds, in which times 584 years apart are the same.
    """
    tail = parse_tail(data[-TAIL_BYTES:], len(data))
    footer_end = tail.start + tail.length
    footer = without_int96(data[tail.start : footer_end])
    empty_file = MAGIC + footer + build_tail(footer)
    return parquet.read_metadata(pa.BufferReader(empty_file))


def hash_orc(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of an ORC file, as `hash_parquet` does.

    The type of a timestamp must be given.
    """
    from pyarrow import orc  # pyarrow may have been built without it

    with _translate_errors("ORC"):
        file = orc.ORCFile(pa.BufferReader(data))
        schema = file.schema
        # pyarrow decodes names only here; a name that is not UTF-8 raises ValueError.
        _ = schema.names
    types = resolve_types(schema, columns, orc=True)
    names = _names_of(columns)
    stripes: Iterator[pa.RecordBatch] = (
        file.read_stripe(at, columns=names) for at in range(file.nstripes)
    )
    if any(map(_is_timestamp, types.values())) and not is_written_in_utc(data):
        stripes = _check_time_zones(stripes, types)
    hash_batches = (_hash_batch(batch, types, padded=True) for batch in stripes)
    return ColumnHashes(types, iterate_batches("ORC", hash_batches))


def _is_timestamp(data_type: DataType) -> bool:
    return data_type.root.startswith("TIMESTAMP")


def _check_time_zones(
    batches: Iterator[pa.RecordBatch], types: dict[IndexedColumn, DataType]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that was not written in UTC.

    Raises UsageError if timestamps of the file depend on the time zone. Paimon's Java code stores a
    TIMESTAMP_LTZ shifted by the time zone of the writing process. Before 1901, time zones used
    local mean time, which Java and ORC's C++ library compute differently.
    """
    for batch in batches:
        for indexed, data_type in types.items():
            if not _is_timestamp(data_type):
                continue
            timestamps = _take_values(batch, indexed).cast(pa.timestamp("ns"))
            earliest = pc.min(timestamps.view(pa.int64())).as_py()
            if earliest is None:
                continue
            if data_type.root == "TIMESTAMP_LTZ" or earliest < _YEAR_1901_NANOS:
                raise UsageError(
                    f"column {indexed}: the stored {data_type} depends on the time zone of its "
                    "writer, which is not UTC"
                )
        yield batch


@contextmanager
def _translate_errors(file_format: str) -> Iterator[None]:
    """Translate exceptions that pyarrow raises in the block into exceptions of this package."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if "out of range for nanosecond" in str(error):
            raise UsageError(
                "pyarrow cannot read ORC timestamps before 1677 or after 2262"
            ) from None
        raise UnreadableError(f"the {file_format} file cannot be read: {error!s:.120}") from None


def iterate_batches(
    file_format: str, batches: Iterator[dict[IndexedColumn, HashBatch]]
) -> Iterator[dict[IndexedColumn, HashBatch]]:
    with _translate_errors(file_format):
        yield from batches


def resolve_types(
    schema: pa.Schema, columns: ColumnTypes, *, orc: bool
) -> dict[IndexedColumn, DataType]:
    """Return the types that determine the hashes of columns.

    They are the types of the table or, without a table, those of the file. Raises UsageError for a
    column that the schema lacks, or whose type is unknown or has no hash in Paimon.
    """
    types = {}
    for indexed, table_type in columns.items():
        stored = stored_type(schema, indexed)
        data_type = table_type or infer_type(stored, orc=orc)
        if data_type is None:
            raise UsageError(
                f"column {indexed}: the file does not determine the Paimon type",
                hint=_ORC_HINT if orc else "give its type",
            )
        if key_of(data_type) is None:
            raise UsageError(f"column {indexed}: Paimon has no Bloom filter for type {data_type}")
        types[indexed] = data_type
    return types


def stored_type(schema: pa.Schema, indexed: IndexedColumn) -> pa.DataType:
    """Return the type of the values of a column; for an entry of a map, the map's item type.

    Raises UsageError if the schema lacks the column.
    """
    if schema.names.count(indexed.column) != 1:
        raise UsageError(
            f"there is no column {indexed.column!r}",
            hint=f"the columns of the file are {', '.join(schema.names[:12])}",
        )
    stored = schema.field(indexed.column).type
    if indexed.key is None:
        return stored
    if not _is_text_map(stored):
        raise UsageError(
            f"column {indexed.column} is not a map with text keys, so it has no entry "
            f"{indexed.key!r}"
        )
    return stored.item_type


def _is_text_map(stored: pa.DataType) -> bool:
    if not pa.types.is_map(stored):
        return False
    key_type = stored.key_type
    return bool(pa.types.is_string(key_type) or pa.types.is_large_string(key_type))


def infer_type(stored: pa.DataType, *, orc: bool) -> DataType | None:
    """Return the Paimon type that determines the hash of a stored column.

    Return None if the file does not determine the type.
    """
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_decimal(stored):
        return DataType("DECIMAL", stored.precision, stored.scale)
    if pa.types.is_timestamp(stored):
        if orc:
            return None
        root = "TIMESTAMP_LTZ" if stored.tz else "TIMESTAMP"
        precision = 3 if _PER_SECOND[stored.unit] <= 1000 else 6
        return DataType(root, precision)
    first_word = re.split(r"\W", str(stored), maxsplit=1)[0]
    return _TYPES.get(first_word)


def _hash_batch(
    batch: pa.RecordBatch, types: dict[IndexedColumn, DataType], *, padded: bool = False
) -> dict[IndexedColumn, HashBatch]:
    """Hash one batch; `padded` means that CHAR values have trailing blanks."""
    hash_batches = {}
    for indexed, data_type in types.items():
        values = _take_values(batch, indexed)
        hash_batches[indexed] = hash_values(
            values, batch.num_rows, data_type, indexed, padded=padded
        )
    return hash_batches


def hash_values(
    values: pa.Array,
    rows: int,
    data_type: DataType,
    indexed: IndexedColumn,
    *,
    padded: bool = False,
) -> HashBatch:
    """Hash the values, without nulls, of these rows of a column.

    Raises UnreadableError if the values contradict the type.
    """
    keys, distinct_values = _find_keys(values, data_type, indexed, padded=padded)
    nulls = max(0, rows - len(values))
    return HashBatch(rows, nulls, hash_keys(keys), distinct_values, keys)


def _take_values(batch: pa.RecordBatch, indexed: IndexedColumn) -> pa.Array:
    column = batch.column(indexed.column)
    if indexed.key is not None:
        key = pa.scalar(indexed.key, column.type.key_type)
        column = pc.map_lookup(column, key, "all").flatten()
    return column.drop_null()


def read_int96(values: pa.Array) -> pa.Array:
    """Return timestamps of 12 bytes in microseconds, rounded down.

    Paimon's Java code writes negative nanoseconds of a day before 1970.
    """
    layout = np.dtype([("nanos", "<i8"), ("day", "<i4")])
    end = values.offset + len(values)
    _, buffer = values.buffers()
    stored = np.frombuffer(buffer, layout)[values.offset : end]
    days = stored["day"].astype(np.int64) - JULIAN_DAY_OF_EPOCH
    micros = days * _DAY_MICROS + stored["nanos"] // 1000
    return pa.array(micros).view(pa.timestamp("us"))


def _find_keys(
    values: pa.Array, data_type: DataType, indexed: IndexedColumn, *, padded: bool
) -> tuple[Keys, Any]:
    """Return the keys to hash and their values, without nulls.

    Repeated text and binary values occur once.
    """
    form = key_of(data_type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == pa.binary(INT96_BYTES) and form in (HashForm.MILLIS, HashForm.MICROS):
        values = read_int96(values)
    keys: Keys | None
    if form is HashForm.BYTES:
        values = values.unique()
        keys = _convert_bytes(values, padded=padded and data_type.root == "CHAR")
    else:
        keys = _convert_longs(values, form)
    if keys is None:
        raise UnreadableError(
            f"the column is stored as {values.type}, which contradicts its type {data_type}",
            place=f"column {indexed}",
        )
    return keys, values


def _convert_bytes(values: pa.Array, *, padded: bool) -> list[bytes] | None:
    """Return the bytes of values, without blanks at the end if they are `padded`.

    Return None if values of the stored type have no bytes.
    """
    try:
        keys: list[bytes] = values.cast(pa.large_binary()).to_pylist()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    if padded:
        return [key.rstrip(b" ") for key in keys]
    return keys


def _convert_longs(values: pa.Array, form: HashForm | None) -> Longs | None:
    """Return the 64-bit keys of values; None if the stored type contradicts the form."""
    stored = values.type
    match form:
        case HashForm.FLOAT if pa.types.is_float32(stored):
            return float_keys(values.to_numpy(zero_copy_only=False))
        case HashForm.DOUBLE if pa.types.is_float64(stored):
            return double_keys(values.to_numpy(zero_copy_only=False))
        case HashForm.INTEGER if pa.types.is_signed_integer(stored):
            return _to_longs(values)
        case HashForm.DATE if pa.types.is_date32(stored):
            return _to_longs(values.view(pa.int32()))
        case HashForm.TIME if pa.types.is_int32(stored):
            return _to_longs(values)
        case HashForm.TIME if pa.types.is_time(stored):
            width = pa.int32() if pa.types.is_time32(stored) else pa.int64()
            counts = _to_longs(values.view(width))
            return timestamp_keys(counts, _PER_SECOND[stored.unit], HashForm.MILLIS)
        case HashForm.MILLIS | HashForm.MICROS if pa.types.is_timestamp(stored):
            counts = _to_longs(values.view(pa.int64()))
            return timestamp_keys(counts, _PER_SECOND[stored.unit], form)
    return None


def _to_longs(values: pa.Array) -> Longs:
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)
