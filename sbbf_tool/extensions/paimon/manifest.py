"""Manifests and manifest lists (manifest/ManifestEntry.java, ManifestFileMeta.java, io/DataFileMeta.java).

A manifest list names manifests; each entry of a manifest adds a data file to a table or deletes one. Manifests and manifest lists are Avro
files unless `manifest.format` is ORC or Parquet; the magic determines the format. Fields that older versions lack are read as null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro import file as avro_file
from sbbf_tool.records import file_name, optional, required, strings

VERSION = 2
"""The `_VERSION` of every record since Paimon 0.5; it marks the format and does not change with new fields."""
ADD, DELETE = 0, 1
INDEX_SUFFIX = ".index"

Identity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Data file as described in its manifest (the `_FILE` of an entry)."""

    name: str
    size: int
    row_count: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...]
    embedded_index: bytes | None
    external_path: str | None
    """The full path of the file, if it is outside the directory of the table."""
    write_columns: tuple[str, ...] | None
    """The columns in the file, if the file has only some columns of the schema."""

    @property
    def index_files(self) -> tuple[str, ...]:
        """Names of the `.index` files. Paimon writes one, and its reader fails if there are more."""
        return tuple(name for name in self.extra_files if name.endswith(INDEX_SUFFIX))


def data_file_of(index_file: str) -> str:
    """Derive the data file's name from an index file: `<data file>.index` or, after rewrites, `<data file>-1.index`, `-2.index`, ..."""
    return re.sub(r"(?:-[0-9]+)?\.index\Z", "", index_file)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    kind: int
    """ADD or DELETE."""
    partition: bytes
    """The partition values as a BinaryRow."""
    bucket: int
    total_buckets: int
    file: DataFile
    record: Mapping[str, Any]
    """The entry as stored, including unknown fields."""

    @property
    def identity(self) -> Identity:
        """Identity of the file that the entry adds or deletes. A change to the file's index changes the identity."""
        file = self.file
        return (self.partition, self.bucket, file.level, file.name, file.extra_files, file.embedded_index, file.external_path)


def parse_records(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records of a manifest or manifest list: Avro, ORC or Parquet. Raises UnreadableError for anything else."""
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
            raise UnreadableError(f"the manifest has records of version {version}; only {VERSION} is supported")
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
    """Parse a manifest list into the names and records of its manifests. Raises UnreadableError if a name leads out of the directory."""
    return [(file_name(required(record, "_FILE_NAME", str)), record) for record in parse_records(data)]


def parse_manifest(data: bytes) -> list[ManifestEntry]:
    """Parse the entries of a manifest, in order. Raises UnreadableError if a field contradicts the format."""
    return list(map(_parse_entry, parse_records(data)))


def _parse_entry(record: Mapping[str, Any]) -> ManifestEntry:
    kind = required(record, "_KIND", int)
    if kind not in (ADD, DELETE):
        raise UnreadableError(f"a manifest entry has the unknown kind {kind}")
    return ManifestEntry(
        kind,
        required(record, "_PARTITION", bytes),
        required(record, "_BUCKET", int),
        required(record, "_TOTAL_BUCKETS", int),
        _parse_data_file(required(record, "_FILE", dict)),
        record,
    )


def _parse_data_file(record: Mapping[str, Any]) -> DataFile:
    return DataFile(
        name=file_name(required(record, "_FILE_NAME", str)),
        size=required(record, "_FILE_SIZE", int),
        row_count=required(record, "_ROW_COUNT", int),
        schema_id=required(record, "_SCHEMA_ID", int),
        level=required(record, "_LEVEL", int),
        extra_files=tuple(map(file_name, strings(record, "_EXTRA_FILES"))),
        embedded_index=optional(record, "_EMBEDDED_FILE_INDEX", bytes),
        external_path=optional(record, "_EXTERNAL_PATH", str),
        write_columns=strings(record, "_WRITE_COLS") if record.get("_WRITE_COLS") is not None else None,
    )


def live_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries that remain in the table after all of these entries, in the order in which they were added.

    The order of the manifests does not matter: a file is in the table if it was added more often than deleted.
    """
    balance: dict[Identity, int] = {}
    additions: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        balance[identity] = balance.get(identity, 0) + (1 if entry.kind == ADD else -1)
        if entry.kind == ADD:
            additions[identity] = entry
    return [entry for identity, entry in additions.items() if balance[identity] > 0]
