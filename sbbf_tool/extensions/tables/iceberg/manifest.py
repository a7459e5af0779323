"""Manifest lists and manifests (Iceberg specification, "Manifests", "Manifest Lists", "Sequence
Number Inheritance", "Row Lineage").

Both are Avro files. Records keep all their fields, known or not, and are written back with the
schema of the file that they come from; see `manifest_schema`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader, build_file, iter_values
from sbbf_tool.extensions.avro.schema import fields_of
from sbbf_tool.extensions.tables.iceberg.manifest_schema import (
    parse_list_header,
    parse_manifest_header,
    partition_ids,
    upgrade_list,
    upgrade_manifest,
)
from sbbf_tool.extensions.tables.iceberg.source import identity, open_name
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional, required

MAX_MANIFEST = 512 << 20
"""Maximum number of bytes of a manifest or manifest list, also after decompression."""
EXISTING = 0
ADDITION = 1
DELETION = 2
_STATUSES = (EXISTING, ADDITION, DELETION)
DATA = 0
DELETES = 1
"""Content of a manifest of delete files."""
POSITION_DELETES = 1
EQUALITY_DELETES = 2
_CONTENTS = (DATA, POSITION_DELETES, EQUALITY_DELETES)
FILE_PATH_ID = 2147483546
"""Field id of the column of a position delete file that has the paths of data files."""


EntryId = tuple[str, int | None]
"""`source.identity` of the path, and the offset of a deletion vector, many of which one file may
have."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """Record of a manifest list."""

    path: str
    spec_id: int
    content: int
    """0 for a manifest of data files, 1 for a manifest of delete files."""
    sequence_number: int
    snapshot_id: int | None
    first_row_id: int | None
    encrypted: bool
    record: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Rows of the live files. Raises UnreadableError if the record does not have their
        numbers."""
        added = required(self.record, "added_rows_count", int)
        return added + required(self.record, "existing_rows_count", int)


@dataclass(frozen=True, slots=True)
class IcebergEntry:
    """Entry of a manifest. Inherited values are filled in."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    """Data sequence number; None in a file that was deleted by a writer that did not know it."""
    file_sequence_number: int | None
    first_row_id: int | None
    content: int
    path: str
    key: str
    """`source.identity` of the path."""
    format: str
    rows: int
    size: int
    """In bytes."""
    partition: tuple[Any, ...]
    """In the order of the manifest's partition fields."""
    record: Mapping[str, Any]
    """The entry as stored."""

    @property
    def file(self) -> Mapping[str, Any]:
        """The `data_file` as stored."""
        record: Mapping[str, Any] = self.record["data_file"]
        return record

    @property
    def id(self) -> EntryId:
        """What tells the entry from others."""
        return self.key, optional(self.file, "content_offset", int)

    def bounds_of(self, field_id: int) -> tuple[bytes | None, bytes | None]:
        """Return the lower and upper bound of a column, as stored; None for those that are
        missing."""
        lower = _find(self.file, "lower_bounds", field_id)
        return lower, _find(self.file, "upper_bounds", field_id)


class Manifest(Frozen):
    """Header and origin of a manifest, whose entries can be read one by one."""

    header: AvroHeader
    data: bytes
    file: ManifestFile
    partition_ids: tuple[int | None, ...]
    """Field ids of the partition values of an entry."""

    def entries(self) -> Iterator[IcebergEntry]:
        """Yield all entries. Raises UnreadableError, with the block's offset, if one contradicts
        the format."""
        row_id = self.file.first_row_id if self.file.content == DATA else None
        for record in iter_values(self.data, self.header, limit=MAX_MANIFEST):
            entry = _parse_entry(record, self.file)
            if row_id is None or entry.first_row_id is not None or entry.status == DELETION:
                yield entry
            else:
                yield replace(entry, first_row_id=row_id)
                row_id += entry.rows

    def live_entries(self) -> Iterator[IcebergEntry]:
        """Yield the entries of files that the snapshot has."""
        return (entry for entry in self.entries() if entry.status != DELETION)


def parse_manifest_list(data: bytes) -> tuple[AvroHeader, list[ManifestFile]]:
    """Parse a manifest list. Raises UnreadableError if it contradicts the format, or names a
    manifest twice."""
    header = parse_list_header(data)
    manifests: dict[str, ManifestFile] = {}
    for record in iter_values(data, header, limit=MAX_MANIFEST):
        manifest = _parse_manifest_file(record)
        if manifest.path in manifests:
            raise UnreadableError("the manifest list names a manifest twice")
        manifests[manifest.path] = manifest
    return header, list(manifests.values())


def parse_manifest(data: bytes, file: ManifestFile) -> Manifest:
    """Parse the header of a manifest. Raises UnreadableError if it contradicts the format, or is
    encrypted."""
    if file.encrypted:
        raise UnreadableError("the manifest is encrypted")
    header = parse_manifest_header(data)
    return Manifest(header, data, file, tuple(partition_ids(header)))


def build_manifest(
    header: AvroHeader,
    records: Iterable[Mapping[str, Any]],
    format_version: int,
    *,
    of_deletes: bool = False,
) -> bytes:
    """Build a manifest of data files, or of delete files, from records of a manifest with this
    header, by `build_entry`."""
    header = upgrade_manifest(header, format_version, of_deletes=of_deletes)
    metadata = {**header.metadata, "format-version": str(format_version).encode()}
    if format_version > 1:
        metadata["content"] = b"deletes" if of_deletes else b"data"
    # The bounds and counts of columns are most of a manifest: with the names of their types,
    # fastavro does not search the unions.
    kinds = fields_of(fields_of(header.schema)["data_file"])
    optional_fields = [name for name, kind in kinds.items() if isinstance(kind, list)]
    values = (
        {**record, "data_file": _complete(record["data_file"], optional_fields)}
        for record in records
    )
    return build_file(header.renew(metadata=metadata), values, validate_first=False)


def _complete(file: Mapping[str, Any], optional_fields: Sequence[str]) -> dict[str, Any]:
    """Return a `data_file` with all these fields, and with the type's name at each array."""
    complete = dict(file)
    for name in optional_fields:
        value = complete.setdefault(name, None)
        if isinstance(value, list):
            complete[name] = ("array", value)
    return complete


def build_entry(
    entry: IcebergEntry,
    status: int,
    snapshot_id: int,
    format_version: int,
    new_file: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the record of an entry with this status, for a manifest of the format version;
    inherited values are written out.

    With `new_file` it is that of a file which differs from that of the entry in these fields. A
    data file keeps the data sequence number, so that the same deletes apply to it; the other
    numbers of new files are inherited.
    """
    file = {**entry.file, **(new_file or {})}
    record = {**entry.record, "status": status, "snapshot_id": snapshot_id, "data_file": file}
    if format_version > 1:
        is_new = new_file is not None
        is_new_delete = is_new and entry.content != DATA
        record["sequence_number"] = None if is_new_delete else entry.sequence_number
        record["file_sequence_number"] = None if is_new else entry.file_sequence_number
        file.setdefault("content", DATA)
    if format_version > 2:
        file["first_row_id"] = entry.first_row_id if entry.content == DATA else None
    return record


def build_manifest_list(
    header: AvroHeader,
    records: Sequence[Mapping[str, Any]],
    format_version: int,
    metadata: Mapping[str, str],
) -> bytes:
    """Build a manifest list from records of a manifest list with this header, with this metadata
    beside that of the header."""
    header, defaults = upgrade_list(header, format_version)
    complete = []
    for record in records:
        values = dict(record)
        # Numbers that format 1 does not know are those of its files.
        for name, default in defaults.items():
            if values.get(name) is None:
                values[name] = default
        complete.append(values)
    texts = dict(header.metadata)
    for key, text in {**metadata, "format-version": str(format_version)}.items():
        texts[key] = text.encode()
    return build_file(header.renew(metadata=texts), complete)


def _parse_manifest_file(record: Any) -> ManifestFile:
    content = optional(record, "content", int) or DATA
    if content not in (0, 1):
        raise UnreadableError(f"a manifest has the unknown content {content}")
    path = required(record, "manifest_path", str)
    open_name(path)  # an error names the list, not the manifest
    return ManifestFile(
        path=path,
        spec_id=required(record, "partition_spec_id", int),
        content=content,
        sequence_number=optional(record, "sequence_number", int) or 0,
        snapshot_id=optional(record, "added_snapshot_id", int),
        first_row_id=optional(record, "first_row_id", int),
        encrypted=optional(record, "key_metadata", bytes) is not None,
        record=record,
    )


def _parse_entry(record: Any, manifest: ManifestFile) -> IcebergEntry:
    status = required(record, "status", int)
    file = required(record, "data_file", dict)
    path = required(file, "file_path", str)
    with ErrorPlace(None, lambda: f"entry of {path[:200]}"):
        content = optional(file, "content", int) or DATA
        if status not in _STATUSES or content not in _CONTENTS:
            raise UnreadableError(f"the entry has the unknown status {status} or content {content}")
        if (content == DATA) != (manifest.content == DATA):
            raise UnreadableError("a manifest has both data files and delete files")
        rows = required(file, "record_count", int)
        size = required(file, "file_size_in_bytes", int)
        if rows < 0 or size < 0:
            raise UnreadableError(f"the entry states {rows} rows and {size} bytes")
        inherits = status == ADDITION or manifest.sequence_number == 0
        inherited = manifest.sequence_number if inherits else None
        return IcebergEntry(
            status=status,
            snapshot_id=_first(optional(record, "snapshot_id", int), manifest.snapshot_id),
            sequence_number=_first(optional(record, "sequence_number", int), inherited),
            file_sequence_number=_first(optional(record, "file_sequence_number", int), inherited),
            first_row_id=optional(file, "first_row_id", int),
            content=content,
            path=path,
            key=identity(path),
            format=required(file, "file_format", str).upper(),
            rows=rows,
            size=size,
            partition=tuple((optional(file, "partition", dict) or {}).values()),
            record=record,
        )


def _first(value: int | None, default: int | None) -> int | None:
    return default if value is None else value


def _find(file: Mapping[str, Any], name: str, field_id: int) -> bytes | None:
    for item in optional(file, name, list) or ():
        if isinstance(item, dict) and item.get("key") == field_id:
            return optional(item, "value", bytes)
    return None
