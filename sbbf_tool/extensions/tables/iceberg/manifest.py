"""Manifest lists and manifests (Iceberg specification, "Manifests", "Manifest Lists", "Sequence
Number Inheritance", "Row Lineage").

Both are Avro files. Records keep all their fields, known or not, and are written back with the
schema of the file that they come from. Writers of the format may name fields as they like, since
field ids identify them (`added_data_files_count` is now `added_files_count`); known fields are
renamed to the names of the specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader, build_file, iter_values, parse_header
from sbbf_tool.extensions.avro.schema import fields_of, parse_schema
from sbbf_tool.extensions.tables.iceberg.source import identity, open_name
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional, required

MAX_MANIFEST = 512 << 20
"""Maximum number of bytes of a manifest or manifest list."""
EXISTING, ADDITION, DELETION = 0, 1, 2
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
FILE_PATH_ID = 2147483546
"""Field id of the column of a position delete file that has the paths of data files."""

_LIST_NAMES = {
    500: "manifest_path", 501: "manifest_length", 502: "partition_spec_id", 517: "content", 515: "sequence_number",
    516: "min_sequence_number", 503: "added_snapshot_id", 504: "added_files_count", 505: "existing_files_count",
    506: "deleted_files_count", 512: "added_rows_count", 513: "existing_rows_count", 514: "deleted_rows_count", 507: "partitions",
    519: "key_metadata", 520: "first_row_id",
}  # fmt: skip
_ENTRY_NAMES = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    2: "data_file",
}
_FILE_NAMES = {
    134: "content", 100: "file_path", 101: "file_format", 102: "partition", 103: "record_count", 104: "file_size_in_bytes",
    125: "lower_bounds", 128: "upper_bounds", 131: "key_metadata", 142: "first_row_id", 143: "referenced_data_file", 144: "content_offset",
}  # fmt: skip
# Fields that a newer format version requires, with their Avro types and values for older records.
_LIST_V2 = (
    (517, "int", 0), (515, "long", 0), (516, "long", 0), (504, "int", 0), (505, "int", 0), (506, "int", 0), (512, "long", 0),
    (513, "long", 0), (514, "long", 0),
)  # fmt: skip
_LIST_V3 = ((520, ["null", "long"], None),)
_ENTRY_V2 = ((3, ["null", "long"], None), (4, ["null", "long"], None))
_FILE_V2 = ((134, "int", 0),)
_FILE_V3 = ((142, ["null", "long"], None),)


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
        return required(self.record, "added_rows_count", int) + required(
            self.record, "existing_rows_count", int
        )


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

    def bounds_of(self, field_id: int) -> tuple[bytes | None, bytes | None]:
        """Return the lower and upper bound of a column, as stored; None for those that are
        missing."""
        return _find(self.file, "lower_bounds", field_id), _find(
            self.file, "upper_bounds", field_id
        )


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
        row_id = self.file.first_row_id
        for record in iter_values(self.data, self.header):
            entry = _parse_entry(record, self.file)
            if (
                self.file.content == DATA
                and entry.first_row_id is None
                and row_id is not None
                and entry.status != DELETION
            ):
                entry = replace(entry, first_row_id=row_id)
                row_id += entry.rows
            yield entry

    def live_entries(self) -> Iterator[IcebergEntry]:
        """Yield the entries of files that the snapshot has."""
        return (entry for entry in self.entries() if entry.status != DELETION)


def parse_manifest_list(data: bytes) -> tuple[AvroHeader, list[ManifestFile]]:
    """Parse a manifest list. Raises UnreadableError if it contradicts the format, or names a
    manifest twice."""
    header = _parse_header(data, _LIST_NAMES, {})
    manifests = list(map(_parse_manifest_file, iter_values(data, header)))
    if len({manifest.path for manifest in manifests}) < len(manifests):
        raise UnreadableError("the manifest list names a manifest twice")
    return header, manifests


def parse_manifest(data: bytes, file: ManifestFile) -> Manifest:
    """Parse the header of a manifest. Raises UnreadableError if it contradicts the format, or is
    encrypted."""
    if file.encrypted:
        raise UnreadableError("the manifest is encrypted")
    header = _parse_header(data, _ENTRY_NAMES, _FILE_NAMES)
    return Manifest(header, data, file, _partition_ids(header))


def build_manifest(
    header: AvroHeader, records: Iterable[Mapping[str, Any]], format_version: int
) -> bytes:
    """Build a manifest of data files from records of a manifest with this header, by
    `build_entry`."""
    header = upgrade_manifest(header, format_version)
    metadata = {**header.metadata, "format-version": str(format_version).encode()}
    if format_version > 1:
        metadata["content"] = b"data"
    # The bounds and counts of columns are most of a manifest: with the names of their types,
    # fastavro does not search the unions.
    optional_fields = [
        name
        for name, kind in fields_of(fields_of(header.schema)["data_file"]).items()
        if isinstance(kind, list)
    ]
    values = (
        {**record, "data_file": _name_arrays(record["data_file"], optional_fields)}
        for record in records
    )
    return build_file(header.renew(metadata=metadata), values, validate_first=False)


def _name_arrays(file: Mapping[str, Any], optional_fields: Sequence[str]) -> dict[str, Any]:
    arrays = {
        name: ("array", file[name]) for name in optional_fields if isinstance(file.get(name), list)
    }
    return {**file, **arrays}


def upgrade_manifest(header: AvroHeader, format_version: int) -> AvroHeader:
    """Return the header with all fields that the format version requires."""
    tree = json.loads(header.schema_text)
    if format_version > 1:
        _add_fields(tree, _ENTRY_V2, _ENTRY_NAMES)
        _add_fields(_data_file(tree), _FILE_V2, _FILE_NAMES)
    if format_version > 2:
        _add_fields(_data_file(tree), _FILE_V3, _FILE_NAMES)
    return _with_schema(header, tree)


def build_entry(
    entry: IcebergEntry,
    status: int,
    snapshot_id: int,
    format_version: int,
    *,
    path: str | None = None,
    size: int | None = None,
) -> dict[str, Any]:
    """Build the record of an entry with this status, for a manifest of the format version;
    inherited values are written out.

    With `path` and `size` it is that of the copy: it keeps the data sequence number, so that the
    same deletes apply to it, and inherits its file sequence number.
    """
    file = dict(entry.file)
    record = {**entry.record, "status": status, "snapshot_id": snapshot_id, "data_file": file}
    if path is not None:
        file |= {"file_path": path, "file_size_in_bytes": size}
    if format_version > 1:
        record |= {
            "sequence_number": entry.sequence_number,
            "file_sequence_number": None if path is not None else entry.file_sequence_number,
        }
        file.setdefault("content", DATA)
    if format_version > 2:
        file["first_row_id"] = entry.first_row_id
    return record


def build_manifest_list(
    header: AvroHeader,
    records: Sequence[Mapping[str, Any]],
    format_version: int,
    metadata: Mapping[str, str],
) -> bytes:
    """Build a manifest list from records of a manifest list with this header, with this metadata
    beside that of the header."""
    tree = json.loads(header.schema_text)
    required_fields = (_LIST_V2 if format_version > 1 else ()) + (
        _LIST_V3 if format_version > 2 else ()
    )
    _add_fields(tree, required_fields, _LIST_NAMES)
    # Numbers that format 1 does not know are those of its files.
    defaults = {_LIST_NAMES[number]: value for number, _, value in required_fields}
    complete = [
        {**record, **{name: value for name, value in defaults.items() if record.get(name) is None}}
        for record in records
    ]
    texts = {
        key: value.encode()
        for key, value in {**metadata, "format-version": str(format_version)}.items()
    }
    return build_file(
        _with_schema(header, tree).renew(metadata={**header.metadata, **texts}), complete
    )


def _parse_header(
    data: bytes, names: Mapping[int, str], file_names: Mapping[int, str]
) -> AvroHeader:
    header = parse_header(data)
    tree = json.loads(header.schema_text)
    _rename_fields(tree, names)
    if file_names:
        _rename_fields(_data_file(tree), file_names)
    return _with_schema(header, tree)


def _with_schema(header: AvroHeader, tree: Any) -> AvroHeader:
    text = json.dumps(tree)
    return replace(header, schema_text=text, schema=parse_schema(text))


def _fields(tree: Any) -> list[dict[str, Any]]:
    fields = tree.get("fields") if isinstance(tree, dict) and tree.get("type") == "record" else None
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise UnreadableError("the values of the Avro file are not records of Iceberg")
    return fields


def _rename_fields(tree: Any, names: Mapping[int, str]) -> None:
    for field in _fields(tree):
        if type(field.get("field-id")) is int and field["field-id"] in names:
            field["name"] = names[field["field-id"]]


def _data_file(tree: Any) -> Any:
    for field in _fields(tree):
        if field.get("name") == "data_file":
            return field.get("type")
    raise UnreadableError("the manifest has no field data_file")


def _add_fields(
    tree: Any, required_fields: Sequence[tuple[int, Any, Any]], names: Mapping[int, str]
) -> None:
    fields = _fields(tree)
    present = {field.get("name") for field in fields}
    for number, kind, default in required_fields:
        if names[number] not in present:
            fields.append(
                {"name": names[number], "type": kind, "default": default, "field-id": number}
            )


def _partition_ids(header: AvroHeader) -> tuple[int | None, ...]:
    tree = json.loads(header.schema_text)
    for field in _fields(_data_file(tree)):
        if field.get("name") == "partition":
            return tuple(
                number if type(number := each.get("field-id")) is int else None
                for each in _fields(field.get("type"))
            )
    return ()


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
        if status not in (EXISTING, ADDITION, DELETION) or content not in (
            DATA,
            POSITION_DELETES,
            EQUALITY_DELETES,
        ):
            raise UnreadableError(f"the entry has the unknown status {status} or content {content}")
        if (content == DATA) != (manifest.content == DATA):
            raise UnreadableError("a manifest has both data files and delete files")
        rows, size = required(file, "record_count", int), required(file, "file_size_in_bytes", int)
        if rows < 0 or size < 0:
            raise UnreadableError(f"the entry states {rows} rows and {size} bytes")
        inherits = status == ADDITION or manifest.sequence_number == 0
        return IcebergEntry(
            status=status,
            snapshot_id=_first(optional(record, "snapshot_id", int), manifest.snapshot_id),
            sequence_number=_first(
                optional(record, "sequence_number", int),
                manifest.sequence_number if inherits else None,
            ),
            file_sequence_number=_first(
                optional(record, "file_sequence_number", int),
                manifest.sequence_number if inherits else None,
            ),
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
