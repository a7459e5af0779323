"""The metadata of a table (Iceberg specification, "Table Metadata"): the current schema, partition
specs, snapshots and references.

The JSON tree is kept whole, so that a commit to a folder keeps every field, known or not.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Mapping
from typing import Any

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional, parse_object, required
from sbbf_tool.running.table import change_properties

MAIN = "main"
MAX_METADATA = 512 << 20
"""Maximum number of bytes of a metadata file, also after decompression."""
_UUID = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_FIRST_PARTITION_ID = 1000
_LARGEST_ID = (1 << 63) - 1


class PartitionField(Frozen):
    """Field of a partition spec: a transform of one source column, or of several (format 3)."""

    id: int
    source_id: int | None
    """Id of the source column; None if there are several."""
    name: str
    transform: str


class IcebergSnapshot(Frozen):
    """Snapshot as the metadata describes it."""

    id: int
    sequence_number: int
    manifest_list: str | None
    manifests: tuple[str, ...] | None
    """Locations of manifests, in snapshots of format 1 that have no manifest list."""
    summary: Mapping[str, str]
    key_id: str | None
    """Key that encrypts the manifest list; None if it is not encrypted."""


class TableMetadata(Frozen):
    """Metadata of one version of a table."""

    tree: Mapping[str, Any]
    format_version: int
    uuid: str | None
    location: str
    last_sequence_number: int
    last_updated_ms: int
    latest_ms: int
    """The latest time that it states anywhere, in milliseconds since 1970: readers refuse metadata
    whose last update is before that of a snapshot or of earlier metadata."""
    schema: Mapping[str, Any]
    schema_id: int | None
    specs: Mapping[int, tuple[PartitionField, ...]]
    properties: Mapping[str, str]
    snapshots: Mapping[int, IcebergSnapshot]
    current: IcebergSnapshot | None
    next_row_id: int
    """First row id that no row has (format 3)."""

    @property
    def main_ref(self) -> Mapping[str, Any]:
        """The reference of the branch `main`, with its retention; empty if the metadata has
        none."""
        references: Mapping[str, Any] = self.tree.get("refs") or {}
        return references.get(MAIN) or {}

    def time_after(self, now_ms: int) -> int:
        """Return the time of the next commit: now, or just after the latest time if the clock is
        behind it."""
        return max(now_ms, self.latest_ms + 1)


def read_clock() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse_metadata(data: bytes) -> TableMetadata:
    """Parse a metadata file, which may be compressed with gzip.

    Raises UnreadableError if it contradicts the format, and RefusedError for a later version of the
    format.
    """
    text = _gunzip(data) if data.startswith(b"\x1f\x8b") else data
    tree = parse_object(text, "the metadata")
    format_version = _number(tree, "format-version")
    if format_version is None or format_version < 1:
        raise UnreadableError(
            f"format-version must be a positive number, not {tree.get('format-version')!r:.40}"
        )
    if format_version > 3:
        raise unsupported_version(format_version)
    uuid = optional(tree, "table-uuid", str)
    if uuid is not None and not _UUID.fullmatch(uuid):
        raise UnreadableError(f"table-uuid {uuid!r:.60} is not a UUID")
    parsed = map(_parse_snapshot, _objects(tree, "snapshots"))
    snapshots = {snapshot.id: snapshot for snapshot in parsed}
    schema_id, schema = _current_schema(tree)
    return TableMetadata(
        tree=tree,
        format_version=format_version,
        uuid=uuid,
        location=required(tree, "location", str).rstrip("/"),
        last_sequence_number=_number(tree, "last-sequence-number") or 0,
        last_updated_ms=_number(tree, "last-updated-ms") or 0,
        latest_ms=_find_latest_ms(tree),
        schema=schema,
        schema_id=schema_id,
        specs=_parse_specs(tree),
        properties=_texts(tree, "properties"),
        snapshots=snapshots,
        current=_find_current(tree, snapshots),
        next_row_id=_number(tree, "next-row-id") or 0,
    )


def unsupported_version(format_version: int) -> RefusedError:
    """Return the error for a table of a format version that is not known."""
    return RefusedError(
        f"the table has format version {format_version}", hint="versions 1, 2 and 3 are supported"
    )


def build_metadata(
    before: TableMetadata,
    location: str,
    snapshot: Mapping[str, Any] | None,
    properties: Mapping[str, str | None],
) -> bytes:
    """Build the metadata after a commit on `main`; `location` is that of the metadata file before
    it. All other fields are kept.

    Without a snapshot, only the properties change.
    """
    tree = dict(before.tree)
    if snapshot is None:
        tree["last-updated-ms"] = before.time_after(read_clock())
    else:
        number = snapshot["snapshot-id"]
        timestamp = snapshot["timestamp-ms"]
        tree["last-updated-ms"] = timestamp
        if before.format_version > 1:
            tree["last-sequence-number"] = snapshot["sequence-number"]
        if before.format_version > 2:
            tree["next-row-id"] = snapshot["first-row-id"] + snapshot["added-rows"]
        tree["current-snapshot-id"] = number
        tree["snapshots"] = [*(tree.get("snapshots") or ()), snapshot]
        main_ref = {**before.main_ref, "snapshot-id": number, "type": "branch"}
        tree["refs"] = {**(tree.get("refs") or {}), MAIN: main_ref}
        latest = {"timestamp-ms": timestamp, "snapshot-id": number}
        tree["snapshot-log"] = [*(tree.get("snapshot-log") or ()), latest]
    earlier = {"timestamp-ms": before.last_updated_ms, "metadata-file": location}
    tree["metadata-log"] = [*(tree.get("metadata-log") or ()), earlier]
    if properties:
        tree["properties"] = change_properties(before.properties, properties)
    return json.dumps(tree, separators=(",", ":")).encode()


def _gunzip(data: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        text = inflater.decompress(data, MAX_METADATA + 1)
    except zlib.error:
        raise UnreadableError("the metadata cannot be decompressed with gzip") from None
    if len(text) > MAX_METADATA or not inflater.eof:
        raise UnreadableError(
            f"the metadata is not complete, or decompresses to more than {MAX_METADATA:,} bytes"
        )
    return text


def _number(record: Mapping[str, Any], name: str) -> int | None:
    """Return a field that is an id, a version or a time; None if there is none. Raises
    UnreadableError if it is no integer, or below -1, which some fields have for "none"."""
    value = optional(record, name, int)
    if value is not None and not -1 <= value <= _LARGEST_ID:
        raise UnreadableError(f"{name} must not be {value}")
    return value


def _find_latest_ms(tree: Mapping[str, Any]) -> int:
    latest = _number(tree, "last-updated-ms") or 0
    for name in ("snapshots", "snapshot-log", "metadata-log"):
        for entry in _objects(tree, name):
            latest = max(latest, _number(entry, "timestamp-ms") or 0)
    return latest


def _objects(record: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    values = optional(record, name, list) or []
    if not all(isinstance(value, dict) for value in values):
        raise UnreadableError(f"{name} is not a list of objects")
    return values


def _texts(record: Mapping[str, Any], name: str) -> dict[str, str]:
    values = optional(record, name, dict) or {}
    if not all(isinstance(value, str) for value in values.values()):
        raise UnreadableError(f"{name} has values that are not strings")
    return values


def _parse_snapshot(record: Mapping[str, Any]) -> IcebergSnapshot:
    manifests = optional(record, "manifests", list)
    if manifests is not None and not all(isinstance(name, str) for name in manifests):
        raise UnreadableError("manifests of a snapshot is not a list of strings")
    number = _number(record, "snapshot-id")
    if number is None:
        raise UnreadableError("a snapshot has no snapshot-id")
    return IcebergSnapshot(
        id=number,
        sequence_number=_number(record, "sequence-number") or 0,
        manifest_list=optional(record, "manifest-list", str),
        manifests=None if manifests is None else tuple(manifests),
        summary=_texts(record, "summary"),
        key_id=optional(record, "key-id", str),
    )


def _find_current(
    tree: Mapping[str, Any], snapshots: Mapping[int, IcebergSnapshot]
) -> IcebergSnapshot | None:
    """Return the current snapshot, which is that of the branch `main`; None if the table has no
    snapshot. Raises UnreadableError if the two differ, or `snapshots` lacks it."""
    current_id = _number(tree, "current-snapshot-id")
    # Some writers state -1 instead of leaving the field out.
    if current_id == -1:
        current_id = None
    references = optional(tree, "refs", dict) or {}
    main_ref = optional(references, MAIN, dict)
    # Metadata of format 1 may have no references, and so no branch to compare with.
    if main_ref is not None and _number(main_ref, "snapshot-id") != current_id:
        raise UnreadableError(
            f"current-snapshot-id is {current_id}, but the branch main is at "
            f"{main_ref.get('snapshot-id')!r:.40}"
        )
    if current_id is None:
        return None
    if current_id not in snapshots:
        raise UnreadableError(f"the current snapshot {current_id} is not among the snapshots")
    return snapshots[current_id]


def _current_schema(tree: Mapping[str, Any]) -> tuple[int | None, dict[str, Any]]:
    number = _number(tree, "current-schema-id")
    for schema in _objects(tree, "schemas"):
        if _number(schema, "schema-id") == number:
            return number, schema
    # Format 1 may have only this field.
    return number, required(tree, "schema", dict)


def _parse_specs(tree: Mapping[str, Any]) -> dict[int, tuple[PartitionField, ...]]:
    specs = _objects(tree, "partition-specs")
    if not specs and tree.get("partition-spec") is not None:
        number = _number(tree, "default-spec-id") or 0
        specs = [{"spec-id": number, "fields": tree["partition-spec"]}]
    fields_by_spec = {}
    for spec in specs:
        number = required(spec, "spec-id", int)
        fields = enumerate(_objects(spec, "fields"))
        fields_by_spec[number] = tuple(_parse_partition_field(field, at) for at, field in fields)
    return fields_by_spec


def _parse_partition_field(record: Mapping[str, Any], at: int) -> PartitionField:
    number = _number(record, "field-id")
    if number is None:
        # Format 1 numbers fields by position.
        number = _FIRST_PARTITION_ID + at
    return PartitionField(
        number,
        _number(record, "source-id"),
        required(record, "name", str),
        required(record, "transform", str),
    )
