"""Manifests and manifest lists (manifest/ManifestEntry.java, ManifestFileMeta.java,
io/DataFileMeta.java).

A manifest list names manifests; each entry of a manifest adds a data file to a table or deletes
one. Manifests and manifest lists are Avro files unless `manifest.format` is ORC or Parquet; the
magic determines the format. Fields that older versions lack are read as null.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
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
MAX_MANIFEST = 512 << 20
"""Maximum number of bytes of an Avro manifest or manifest list after decompression."""
ADD = 0
DELETE = 1
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
        """Names of the `.index` files. Paimon writes one, and its reader fails on several."""
        return tuple(name for name in self.extra_files if name.endswith(INDEX_SUFFIX))


def data_file_of(index_file: str) -> str:
    """Return the name of the data file to which an index file belongs.

    An index file is called `<data file>.index` or, after rewrites, `<data file>-1.index`,
    `-2.index`, ...
    """
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
        """Identity of the file that the entry adds or deletes.

        A change to the file's index changes the identity.
        """
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
    """Yield the records of a manifest or manifest list: Avro, ORC or Parquet.

    Raises UnreadableError for anything else.
    """
    if data.startswith(avro_file.MAGIC):
        header = avro_file.parse_header(data)
        records: Iterable[Any] = avro_file.iter_values(data, header, limit=MAX_MANIFEST)
    elif data.startswith((b"ORC", b"PAR1")):
        records = _read_columnar_records(data)
    else:
        raise UnreadableError("the manifest is neither Avro, ORC nor Parquet", place="offset 0")
    for record in records:
        if not isinstance(record, dict):
            raise UnreadableError("the manifest has a value that is not a record")
        version = required(record, "_VERSION", int)
        if version != VERSION:
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
    """Parse a manifest list into the names and records of its manifests.

    Raises UnreadableError if a name leads out of the directory.
    """
    manifests = []
    for record in parse_records(data):
        name = file_name(required(record, "_FILE_NAME", str))
        manifests.append((name, record))
    return manifests


def parse_manifest(data: bytes) -> list[ManifestEntry]:
    """Parse the entries of a manifest, in order.

    Raises UnreadableError if a field contradicts the format.
    """
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
    """Return the entries that remain in the table, in the order in which they were added.

    The order of the manifests does not matter: a file is in the table if it was added more often
    than deleted.
    """
    balance: defaultdict[Identity, int] = defaultdict(int)
    additions = {}
    for entry in entries:
        identity = entry.identity
        if entry.kind == ADD:
            balance[identity] += 1
            additions[identity] = entry
        else:
            balance[identity] -= 1
    return [entry for identity, entry in additions.items() if balance[identity] > 0]


Entries = Sequence[tuple[int, Mapping[str, Any]]]
"""Kind and record of each entry of a manifest."""


def build_list_record(
    fields: Iterable[str], name: str, size: int, entries: Entries, schema: TableSchema
) -> dict[str, Any]:
    """Build the record of a manifest of `size` bytes with these entries, with exactly the fields.

    Raises UnreadableError for a field of another type.
    """
    records = [record for _, record in entries]
    files = [record["_FILE"] for record in records]
    partitions = [record["_PARTITION"] for record in records]
    buckets = [record["_BUCKET"] for record in records]
    levels = [file["_LEVEL"] for file in files]
    num_additions = sum(kind == ADD for kind, _ in entries)
    first_row_id, last_row_id = _row_id_range(files)
    list_record = {
        "_VERSION": VERSION,
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": num_additions,
        "_NUM_DELETED_FILES": len(entries) - num_additions,
        "_PARTITION_STATS": partition_stats(partitions, schema),
        "_SCHEMA_ID": max(file["_SCHEMA_ID"] for file in files),
        "_MIN_BUCKET": min(buckets),
        "_MAX_BUCKET": max(buckets),
        "_MIN_LEVEL": min(levels),
        "_MAX_LEVEL": max(levels),
        "_MIN_ROW_ID": first_row_id,
        "_MAX_ROW_ID": last_row_id,
        "_TOTAL_BUCKETS": None,  # Paimon also writes null, here and in the next field
        "_EXTRA_FILES": None,
    }
    return {field: list_record[field] for field in fields}


def _row_id_range(files: Iterable[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return the first and the last row id of these files.

    As in Paimon, both are None unless every file has row ids.
    """
    first_ids = []
    last_ids: list[int] = []
    for file in files:
        first_id = optional(file, "_FIRST_ROW_ID", int)
        if first_id is None:
            return None, None
        first_ids.append(first_id)
        last_ids.append(first_id + file["_ROW_COUNT"] - 1)
    return min(first_ids), max(last_ids)


def partition_stats(partitions: Sequence[bytes], schema: TableSchema) -> dict[str, Any]:
    """Compute the statistics of the partition columns.

    They are the minimum and maximum of each column, as rows, and the number of nulls in each.
    """
    types = schema.partition_types
    columns = []
    if types:
        rows = [parse_row(partition, types) for partition in partitions]
        columns = list(zip(*rows, strict=True))
    smallest: list[Value] = []
    largest: list[Value] = []
    null_counts = []
    for column in columns:
        values = [value for value in column if value is not None]
        smallest.append(min(values, key=_order, default=None))
        largest.append(max(values, key=_order, default=None))
        null_counts.append(len(column) - len(values))
    return {
        "_MIN_VALUES": build_row(smallest, types),
        "_MAX_VALUES": build_row(largest, types),
        "_NULL_COUNTS": null_counts,
    }


def _order(value: Value) -> Any:
    """Return a sort key for Java's order: text by code points; -0.0 before 0.0; NaN last.

    The order of code points is that of the UTF-8 bytes.
    """
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return True, 0.0, math.copysign(1, value)
    return False, value, math.copysign(1, value)
