"""Manifests and manifest lists (manifest/ManifestEntry.java, ManifestFileMeta.java,
io/DataFileMeta.java).

A manifest list names manifests; each entry of a manifest adds a data file to a table or deletes
one. Manifests and manifest lists are Avro files unless `manifest.format` is ORC or Parquet; the
magic determines the format. Fields that older versions lack are read as null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro import file as avro_file
from sbbf_tool.extensions.paimon.partition import Value, build_row, parse_row
from sbbf_tool.extensions.paimon.table_schema import TableSchema
from sbbf_tool.records import file_name, optional, required, strings

VERSION = 2
"""The `_VERSION` of every record since Paimon 0.5; it marks the format and does not change with new
fields."""
ADD, DELETE = 0, 1
INDEX_SUFFIX = ".index"

Identity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Data file as described in its manifest (the `_FILE` of an entry)."""

    name: str
    row_count: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...]
    embedded_index: bytes | None
    external_path: str | None
    """The full path of the file, if it is outside the directory of the table."""

    @property
    def index_files(self) -> tuple[str, ...]:
        """Names of the `.index` files. Paimon writes one, and its reader fails if there are
        more."""
        return tuple(name for name in self.extra_files if name.endswith(INDEX_SUFFIX))


def data_file_of(index_file: str) -> str:
    """Derive the data file's name from an index file: `<data file>.index` or, after rewrites,
    `<data file>-1.index`, `-2.index`, ..."""
    return re.sub(r"(?:-[0-9]+)?\.index\Z", "", index_file)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    kind: int
    """ADD or DELETE."""
    partition: bytes
    """The partition values as a BinaryRow."""
    bucket: int
    file: DataFile
    record: Mapping[str, Any]
    """The entry as stored, including unknown fields."""

    @property
    def identity(self) -> Identity:
        """Identity of the file that the entry adds or deletes. A change to the file's index changes
        the identity."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )


def parse_records(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records of a manifest or manifest list: Avro, ORC or Parquet. Raises
    UnreadableError for anything else."""
    if data.startswith(avro_file.MAGIC):
        records: Iterable[Any] = avro_file.iter_values(data, avro_file.parse_header(data))
    elif data.startswith((b"ORC", b"PAR1")):
        records = _read_columnar_records(data)
    else:
        raise UnreadableError("the manifest is neither Avro, ORC nor Parquet", place="offset 0")
    for record in records:
        if not isinstance(record, dict):
            raise UnreadableError("the manifest has a value that is not a record")
        if (version := required(record, "_VERSION", int)) != VERSION:
            raise UnreadableError(
                f"the manifest has records of version {version}; only {VERSION} is supported"
            )
        yield record


def _read_columnar_records(data: bytes) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import orc, parquet

    source = pa.BufferReader(data)
    try:
        if data.startswith(b"ORC"):
            stripes = orc.ORCFile(source)
            for at in range(stripes.nstripes):
                yield from stripes.read_stripe(at).to_pylist()
        else:
            for batch in parquet.ParquetFile(source).iter_batches():
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(f"the manifest cannot be read: {error!s:.120}") from None


def parse_manifest_list(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Parse a manifest list into the names and records of its manifests. Raises UnreadableError if
    a name leads out of the directory."""
    return [
        (file_name(required(record, "_FILE_NAME", str)), record) for record in parse_records(data)
    ]


def parse_manifest(data: bytes) -> list[ManifestEntry]:
    """Parse the entries of a manifest, in order. Raises UnreadableError if a field contradicts the
    format."""
    return list(map(_parse_entry, parse_records(data)))


def _parse_entry(record: Mapping[str, Any]) -> ManifestEntry:
    kind = required(record, "_KIND", int)
    if kind not in (ADD, DELETE):
        raise UnreadableError(f"a manifest entry has the unknown kind {kind}")
    return ManifestEntry(
        kind,
        required(record, "_PARTITION", bytes),
        required(record, "_BUCKET", int),
        _parse_data_file(required(record, "_FILE", dict)),
        record,
    )


def _parse_data_file(record: Mapping[str, Any]) -> DataFile:
    return DataFile(
        name=file_name(required(record, "_FILE_NAME", str)),
        row_count=required(record, "_ROW_COUNT", int),
        schema_id=required(record, "_SCHEMA_ID", int),
        level=required(record, "_LEVEL", int),
        extra_files=tuple(map(file_name, strings(record, "_EXTRA_FILES"))),
        embedded_index=optional(record, "_EMBEDDED_FILE_INDEX", bytes),
        external_path=optional(record, "_EXTERNAL_PATH", str),
    )


def live_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries that remain in the table after all of these entries, in the order in which
    they were added.

    The order of the manifests does not matter: a file is in the table if it was added more often
    than deleted.
    """
    balance: dict[Identity, int] = {}
    additions: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        balance[identity] = balance.get(identity, 0) + (1 if entry.kind == ADD else -1)
        if entry.kind == ADD:
            additions[identity] = entry
    return [entry for identity, entry in additions.items() if balance[identity] > 0]


Entries = Sequence[tuple[int, Mapping[str, Any]]]
"""Kind and record of each entry of a manifest."""
KNOWN_LIST_FIELDS = frozenset(
    (
        *(
            "_VERSION",
            "_FILE_NAME",
            "_FILE_SIZE",
            "_NUM_ADDED_FILES",
            "_NUM_DELETED_FILES",
            "_PARTITION_STATS",
            "_SCHEMA_ID",
        ),
        *(
            "_MIN_BUCKET",
            "_MAX_BUCKET",
            "_MIN_LEVEL",
            "_MAX_LEVEL",
            "_MIN_ROW_ID",
            "_MAX_ROW_ID",
            "_TOTAL_BUCKETS",
            "_EXTRA_FILES",
        ),
    )
)
"""Every field of a manifest list in Paimon 0.8 to 2.1."""


def build_list_record(
    fields: Iterable[str], name: str, size: int, entries: Entries, schema: TableSchema
) -> dict[str, Any]:
    """Build the record of a manifest of `size` bytes with these entries; the record has exactly the
    given fields."""
    num_additions = sum(kind == ADD for kind, _ in entries)
    files = [record["_FILE"] for _, record in entries]
    buckets = [record["_BUCKET"] for _, record in entries]
    levels = [file["_LEVEL"] for file in files]
    row_ids = [
        (first, first + file["_ROW_COUNT"] - 1)
        for file in files
        if (first := optional(file, "_FIRST_ROW_ID", int)) is not None
    ]
    has_row_ids = len(row_ids) == len(files)  # as in Paimon, only when every file has row ids
    record = {
        "_VERSION": VERSION,
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": num_additions,
        "_NUM_DELETED_FILES": len(entries) - num_additions,
        "_PARTITION_STATS": partition_stats(
            [record["_PARTITION"] for _, record in entries], schema
        ),
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


def partition_stats(partitions: Sequence[bytes], schema: TableSchema) -> dict[str, Any]:
    """Compute the minimum and maximum of each partition column, as rows, and the number of nulls in
    each column."""
    types = schema.partition_types
    columns = (
        list(zip(*(parse_row(partition, types) for partition in partitions), strict=True))
        if types
        else []
    )
    present = [[value for value in column if value is not None] for column in columns]
    return {
        "_MIN_VALUES": build_row(
            [min(column, key=_order, default=None) for column in present], types
        ),
        "_MAX_VALUES": build_row(
            [max(column, key=_order, default=None) for column in present], types
        ),
        "_NULL_COUNTS": [
            len(column) - len(values) for column, values in zip(columns, present, strict=True)
        ],
    }


def _order(value: Value) -> Any:
    """Return a sort key for Java's order: text by its UTF-8 bytes, which is the order of code
    points; -0.0 before 0.0; NaN last."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value
