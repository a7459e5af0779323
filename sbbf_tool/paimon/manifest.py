"""Manifests and manifest lists (manifest/ManifestEntry.java, ManifestFileMeta.java, io/DataFileMeta.java).

A manifest list names manifests; a manifest holds entries, each of which adds a data file to a table or takes one away. Both are Avro
files unless `manifest.format` says ORC or Parquet; their first bytes tell. Fields that a version did not have yet read as null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.paimon import avro_file
from sbbf_tool.paimon.json_fields import file_name, optional, required, strings

VERSION = 2
"""The `_VERSION` of every record since Paimon 0.5; it marks the format and does not change with new fields."""
ADD, DELETE = 0, 1
INDEX_SUFFIX = ".index"

Identity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file as its manifest describes it (the `_FILE` of an entry)."""

    name: str
    size: int
    row_count: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...]
    embedded_index: bytes | None
    external_path: str | None
    """The file's full path, where it does not lie in the table's own directory."""
    write_columns: tuple[str, ...] | None
    """The columns in the file, where it holds only some of the schema's."""

    @property
    def index_files(self) -> tuple[str, ...]:
        """The names of its `.index` files. Paimon writes one, and its reader fails on more."""
        return tuple(name for name in self.extra_files if name.endswith(INDEX_SUFFIX))


def data_file_of(index_file: str) -> str:
    """The data file that an index file's name tells: it is `<data file>.index`, after rewrites `<data file>-1.index`, `-2.index`, ..."""
    return re.sub(r"(?:-[0-9]+)?\.index\Z", "", index_file)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    kind: int
    """ADD or DELETE."""
    partition: bytes
    """The partition's values as a BinaryRow."""
    bucket: int
    total_buckets: int
    file: DataFile
    record: Mapping[str, Any]
    """The entry as it was read, fields this tool does not know included."""

    @property
    def identity(self) -> Identity:
        """What makes two entries speak of the same file. A file whose index changed is another one."""
        file = self.file
        return (self.partition, self.bucket, file.level, file.name, file.extra_files, file.embedded_index, file.external_path)


def parse_records(data: bytes) -> Iterator[dict[str, Any]]:
    """The records of a manifest or manifest list: Avro, ORC or Parquet. Raises UnreadableError for anything else."""
    if data.startswith(avro_file.MAGIC):
        records: Iterable[Any] = avro_file.iter_values(data, avro_file.parse_header(data))
    elif data.startswith((b"ORC", b"PAR1")):
        records = _columnar_records(data)
    else:
        raise UnreadableError("neither Avro, ORC nor Parquet", place="offset 0")
    for record in records:
        if not isinstance(record, dict):
            raise UnreadableError("a manifest with a record that is none")
        if (version := required(record, "_VERSION", int)) != VERSION:
            raise UnreadableError(f"manifest records of version {version}, only {VERSION} is known")
        yield record


def _columnar_records(data: bytes) -> Iterator[Any]:
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
        raise UnreadableError(f"a manifest that does not read: {error!s:.120}") from None


def parse_manifest_list(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The manifests a list names, with their whole records. Raises UnreadableError where a name leads out of the directory."""
    return [(file_name(required(record, "_FILE_NAME", str)), record) for record in parse_records(data)]


def parse_manifest(data: bytes) -> list[ManifestEntry]:
    """The entries of a manifest, in order. Raises UnreadableError where a field contradicts the format."""
    return list(map(_entry, parse_records(data)))


def _entry(record: Mapping[str, Any]) -> ManifestEntry:
    kind = required(record, "_KIND", int)
    if kind not in (ADD, DELETE):
        raise UnreadableError(f"a manifest entry of kind {kind}")
    return ManifestEntry(
        kind,
        required(record, "_PARTITION", bytes),
        required(record, "_BUCKET", int),
        required(record, "_TOTAL_BUCKETS", int),
        _data_file(required(record, "_FILE", dict)),
        record,
    )


def _data_file(record: Mapping[str, Any]) -> DataFile:
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
    """The entries that are in the table after all of them, in the order they were added.

    Manifests may be read in any order: a file is there when it was added more often than taken away.
    """
    balance: dict[Identity, int] = {}
    added: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        balance[identity] = balance.get(identity, 0) + (1 if entry.kind == ADD else -1)
        if entry.kind == ADD:
            added[identity] = entry
    return [entry for identity, entry in added.items() if balance[identity] > 0]
