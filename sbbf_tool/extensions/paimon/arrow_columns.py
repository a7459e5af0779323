"""Hashes of arrays of Arrow, and of the columns of Parquet and ORC data files, read with pyarrow.

A Parquet schema determines what Paimon hashes, because the unit of a timestamp depends on its
precision. An ORC schema does not: all ORC timestamps have the same unit, so their Paimon type must
be given. ORC pads CHAR with blanks, which this module strips, as Paimon's ORC reader does.

Paimon's Java code passes a java.sql.Timestamp to ORC: a TIMESTAMP WITH LOCAL TIME ZONE is stored
shifted by the time zone of the writing process, which pyarrow does not report. The protobuf fields
that lead to the zone are read here (ORC specification v1, "Postscript", "Footer", "Stripe Footer").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import unpack
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
from sbbf_tool.extensions.paimon.table_schema import MAX_LENGTH, DataType, IndexedColumn
from sbbf_tool.parquet.compact import read_varint
from sbbf_tool.parquet.footer import MAGIC, TAIL_BYTES, build_tail, parse_tail
from sbbf_tool.parquet.int96 import INT96_BYTES, JULIAN_DAY_OF_EPOCH, without_int96

if TYPE_CHECKING:
    import pyarrow as pa


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
    import pyarrow as pa
    from pyarrow import parquet

    with _translate_errors("Parquet"):
        file = parquet.ParquetFile(pa.BufferReader(data))
        types = resolve_types(file.schema_arrow, columns, orc=False)
        if any(file.schema.column(at).physical_type == "INT96" for at in range(len(file.schema))):
            # pyarrow reads them as 64 bits of nanoseconds, in which times 584 years apart are the
            # same.
            tail = parse_tail(data[-TAIL_BYTES:], len(data))
            raw = without_int96(data[tail.start : tail.start + tail.length])
            metadata = parquet.read_metadata(pa.BufferReader(MAGIC + raw + build_tail(raw)))
            file = parquet.ParquetFile(pa.BufferReader(data), metadata=metadata)
    batches = file.iter_batches(
        _BATCH_ROWS, columns=sorted({indexed.column for indexed in columns})
    )
    return ColumnHashes(
        types, iterate_batches("Parquet", (_hash_batch(batch, types) for batch in batches))
    )


def hash_orc(data: bytes, columns: ColumnTypes) -> ColumnHashes:
    """Hash the requested columns of an ORC file, as `hash_parquet` does; the type of a timestamp
    must be given."""
    import pyarrow as pa
    from pyarrow import orc

    with _translate_errors("ORC"):
        file = orc.ORCFile(pa.BufferReader(data))
        schema = file.schema
        _ = (
            schema.names
        )  # pyarrow decodes names only here; a name that is not UTF-8 raises ValueError
    types = resolve_types(schema, columns, orc=True)
    names = sorted({indexed.column for indexed in columns})
    stripes: Iterator[pa.RecordBatch] = (
        file.read_stripe(at, columns=names) for at in range(file.nstripes)
    )
    timestamps = {
        indexed: data_type
        for indexed, data_type in types.items()
        if data_type.root.startswith("TIMESTAMP")
    }
    if timestamps and not is_written_in_utc(data):
        stripes = _check_time_zones(stripes, timestamps)
    return ColumnHashes(
        types, iterate_batches("ORC", (_hash_batch(batch, types, padded=True) for batch in stripes))
    )


def _check_time_zones(
    batches: Iterator[pa.RecordBatch], timestamps: dict[IndexedColumn, DataType]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that was not written in UTC; raise UsageError if its timestamps
    depend on the time zone.

    Paimon's Java code stores a TIMESTAMP_LTZ shifted by the time zone of the writing process.
    Before 1901, time zones used local mean time, which Java and ORC's C++ library compute
    differently.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        for indexed, data_type in timestamps.items():
            earliest = pc.min(
                _take_values(batch, indexed).cast(pa.timestamp("ns")).view(pa.int64())
            ).as_py()
            if earliest is not None and (
                data_type.root == "TIMESTAMP_LTZ" or earliest < _YEAR_1901_NANOS
            ):
                raise UsageError(
                    f"column {indexed}: the stored {data_type} depends on the time zone of its "
                    "writer, which is not UTC"
                )
        yield batch


@contextmanager
def _translate_errors(file_format: str) -> Iterator[None]:
    """Translate exceptions that pyarrow raises in the block into exceptions of this package."""
    import pyarrow as pa

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
    """Return the types that determine the hashes of columns: those of the table or, without one, of
    the file.

    Raises UsageError for a column that the schema lacks, or whose type is unknown or has no hash in
    Paimon.
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
    """Return the type of the values of a column (in a map, its item type). Raises UsageError if the
    schema lacks it."""
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
    import pyarrow as pa

    return bool(
        pa.types.is_map(stored)
        and (pa.types.is_string(stored.key_type) or pa.types.is_large_string(stored.key_type))
    )


def infer_type(stored: pa.DataType, *, orc: bool) -> DataType | None:
    """Return the Paimon type that determines the hash of a stored column; None if the file does not
    determine the type."""
    import pyarrow as pa

    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_decimal(stored):
        return DataType("DECIMAL", stored.precision, stored.scale)
    if pa.types.is_timestamp(stored):
        precision = 3 if _PER_SECOND[stored.unit] <= 1000 else 6
        return None if orc else DataType("TIMESTAMP_LTZ" if stored.tz else "TIMESTAMP", precision)
    return _TYPES.get(re.split(r"\W", str(stored), maxsplit=1)[0])


def _hash_batch(
    batch: pa.RecordBatch, types: dict[IndexedColumn, DataType], *, padded: bool = False
) -> dict[IndexedColumn, HashBatch]:
    """Hash one batch; `padded` means that CHAR values have trailing blanks."""
    return {
        indexed: hash_values(
            _take_values(batch, indexed), batch.num_rows, data_type, indexed, padded=padded
        )
        for indexed, data_type in types.items()
    }


def hash_values(
    values: pa.Array,
    rows: int,
    data_type: DataType,
    indexed: IndexedColumn,
    *,
    padded: bool = False,
) -> HashBatch:
    """Hash the values, without nulls, of these rows of a column. Raises UnreadableError if they
    contradict the type."""
    keys, distinct_values = _find_keys(values, data_type, indexed, padded=padded)
    return HashBatch(rows, max(0, rows - len(values)), hash_keys(keys), distinct_values, keys)


def _take_values(batch: pa.RecordBatch, indexed: IndexedColumn) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(indexed.column)
    if indexed.key is not None:
        column = pc.map_lookup(
            column, pa.scalar(indexed.key, column.type.key_type), "all"
        ).flatten()
    return column.drop_null()


def read_int96(values: pa.Array) -> pa.Array:
    """Return timestamps of 12 bytes in microseconds, rounded down. Paimon's Java code writes
    negative nanoseconds of a day before 1970."""
    import pyarrow as pa

    nanos_and_days = np.frombuffer(values.buffers()[1], [("nanos", "<i8"), ("day", "<i4")])[
        values.offset : values.offset + len(values)
    ]
    days = nanos_and_days["day"].astype(np.int64) - JULIAN_DAY_OF_EPOCH
    return pa.array(days * _DAY_MICROS + nanos_and_days["nanos"] // 1000).view(pa.timestamp("us"))


def _find_keys(
    values: pa.Array, data_type: DataType, indexed: IndexedColumn, *, padded: bool
) -> tuple[Keys, Any]:
    """Return the keys to hash and their values, without nulls; repeated text and binary values
    occur once."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == pa.binary(INT96_BYTES) and key_of(data_type) in (
        HashForm.MILLIS,
        HashForm.MICROS,
    ):
        values = read_int96(values)
    keys: Keys | None
    if key_of(data_type) is HashForm.BYTES:
        values = values.unique()
        try:
            keys = values.cast(pa.large_binary()).to_pylist()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            keys = None  # values of this type have no bytes
        if keys and padded and data_type.root == "CHAR":
            keys = [value.rstrip(b" ") for value in keys]
    else:
        keys = _convert_keys(values, data_type)
    if keys is None:
        fact = f"the column is stored as {values.type}, which contradicts its type {data_type}"
        raise UnreadableError(fact, place=f"column {indexed}")
    return keys, values


def _convert_keys(values: pa.Array, data_type: DataType) -> Longs | None:
    """Return the 64-bit keys of values other than bytes; None if their stored form contradicts the
    type."""
    import pyarrow as pa

    kind, stored = key_of(data_type), values.type
    if kind is HashForm.FLOAT:
        return (
            float_keys(values.to_numpy(zero_copy_only=False))
            if pa.types.is_float32(stored)
            else None
        )
    if kind is HashForm.DOUBLE:
        return (
            double_keys(values.to_numpy(zero_copy_only=False))
            if pa.types.is_float64(stored)
            else None
        )
    if kind is HashForm.INTEGER or (kind is HashForm.TIME and pa.types.is_int32(stored)):
        return _to_longs(values) if pa.types.is_signed_integer(stored) else None
    if kind is HashForm.DATE:
        return _to_longs(values.view(pa.int32())) if pa.types.is_date32(stored) else None
    if kind is HashForm.TIME and pa.types.is_time(stored):
        counts = _to_longs(values.view(pa.int32() if pa.types.is_time32(stored) else pa.int64()))
        return timestamp_keys(counts, _PER_SECOND[stored.unit], HashForm.MILLIS)
    if kind in (HashForm.MILLIS, HashForm.MICROS) and pa.types.is_timestamp(stored):
        return timestamp_keys(_to_longs(values.view(pa.int64())), _PER_SECOND[stored.unit], kind)
    return None


def _to_longs(values: pa.Array) -> Longs:
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)


UTC_NAMES = frozenset(
    ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Universal", "Zulu", "Etc/Universal", "Etc/Zulu")
)

_NONE = 0
_CODECS = {1: "deflate", 5: "zstandard"}
_MAX_STRIPES = 100_000


def is_written_in_utc(data: bytes) -> bool:
    """Return whether the time zone recorded in every stripe is UTC; False also if the zones cannot
    be read here."""
    try:
        zones = list(_read_zones(data))
    except (UnreadableError, IndexError, TypeError, AttributeError):  # also a field of another type
        return False
    return bool(zones) and all(zone in UTC_NAMES for zone in zones)


def _read_zones(data: bytes) -> Iterator[str]:
    postscript_at = len(data) - 1 - data[-1]
    postscript = dict(_parse_fields(data[postscript_at:-1]))
    footer_length, compression = postscript.get(1, 0), postscript.get(2, _NONE)
    if not 0 < footer_length <= postscript_at:
        raise UnreadableError("the ORC file has no footer")
    footer = _decompress(data[postscript_at - footer_length : postscript_at], compression)
    stripes = [value for field, value in _parse_fields(footer) if field == 3]
    for stripe in stripes[:_MAX_STRIPES]:
        at, index, rows, length = (
            dict(_parse_fields(stripe)).get(field, 0) for field in (1, 2, 3, 4)
        )
        start = at + index + rows
        zone = dict(_parse_fields(_decompress(data[start : start + length], compression))).get(3)
        yield zone.decode("ascii", "replace") if zone else ""


def _parse_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protobuf message: field number and value, an integer or bytes. Its
    callers rely on their types."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value: Any
        if tag & 7 == 0:
            value, at = read_varint(message, at)
        elif tag & 7 == 2:
            length, at = read_varint(message, at)
            value, at = message[at : at + length], at + length
        elif tag & 7 in (1, 5):
            value, at = b"", at + (8 if tag & 7 == 1 else 4)
        else:
            raise UnreadableError("not a protobuf message")
        yield tag >> 3, value


def _decompress(stream: bytes, compression: int) -> bytes:
    """Decompress a stream of chunks. Three bytes precede each chunk: twice its length, plus one if
    the chunk is not compressed."""
    if compression == _NONE:
        return stream
    parts: list[bytes] = []
    at = 0
    while at + 3 <= len(stream):
        header = int.from_bytes(stream[at : at + 3], "little")
        chunk = stream[at + 3 : at + 3 + (header >> 1)]
        if not header & 1 and compression not in _CODECS:
            raise UnreadableError(f"cannot read ORC compression {compression}")
        parts.append(chunk if header & 1 else unpack(chunk, _CODECS[compression]))
        at += 3 + (header >> 1)
    return b"".join(parts)
