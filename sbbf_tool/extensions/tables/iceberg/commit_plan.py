"""Plan of the commit that replaces data files by copies: the manifests to write, and the snapshot
(operation `replace`).

For each manifest with a file to replace there is a new one: its other files as EXISTING, the old
files as DELETED, the copies as ADDED with the data sequence number of the old files, so that
equality deletes still reach them. Everything else that an entry says is kept. Manifests without
such a file, and those of delete files, are kept. In format 3, the copies keep the first row ids of
the old files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.iceberg.manifest import (
    ADDITION,
    DATA,
    DELETION,
    EXISTING,
    Manifest,
    ManifestFile,
    build_entry,
    build_manifest,
)
from sbbf_tool.extensions.tables.iceberg.manifest import build_manifest_list as build_list
from sbbf_tool.extensions.tables.iceberg.metadata import TableMetadata
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.frozen import Frozen
from sbbf_tool.running.table import Change


class NewSnapshot(Frozen):
    """Numbers of the snapshot to commit."""

    id: int
    sequence_number: int
    timestamp_ms: int
    format_version: int

    @classmethod
    def after(cls, metadata: TableMetadata, snapshot_id: int, now_ms: int) -> NewSnapshot:
        """Return the numbers after those of the metadata; time goes forward, whatever the clock
        says: PyIceberg replaces a time of the last update that stays the same."""
        sequence_number = metadata.last_sequence_number + 1 if metadata.format_version > 1 else 0
        return cls(
            snapshot_id,
            sequence_number,
            metadata.time_after(now_ms),
            metadata.format_version,
        )


@dataclass(slots=True)
class ManifestRewrite:
    """Numbers of a manifest in which files were replaced by their copies."""

    files: int = 0
    rows: int = 0
    old_bytes: int = 0
    new_bytes: int = 0
    existing_files: int = 0
    existing_rows: int = 0
    min_sequence_number: int | None = None
    partitions: set[tuple[int, str]] = field(default_factory=set)
    """The spec and the partition values of the files that were replaced."""


def rewrite_manifest(
    manifest: Manifest, copies: Mapping[str, Replacement], snapshot: NewSnapshot
) -> tuple[bytes, dict[str, Any], ManifestRewrite]:
    """Replace files of a manifest by their copies, which are given by `source.identity` of the old
    file; the new path is a location.

    Return the bytes of the new manifest, its record for the manifest list without path and length,
    and its numbers.
    """
    tally = ManifestRewrite()
    with ErrorPlace(manifest.file.path):
        data = build_manifest(
            manifest.header,
            _iter_records(manifest, copies, snapshot, tally),
            snapshot.format_version,
        )
    record = {
        **manifest.file.record,
        "added_snapshot_id": snapshot.id,
        "added_files_count": tally.files,
        "existing_files_count": tally.existing_files,
        "deleted_files_count": tally.files,
        "added_rows_count": tally.rows,
        "existing_rows_count": tally.existing_rows,
        "deleted_rows_count": tally.rows,
    }
    if snapshot.format_version > 1:
        record |= {
            "sequence_number": snapshot.sequence_number,
            "min_sequence_number": tally.min_sequence_number or 0,
        }
    if snapshot.format_version > 2:
        record["first_row_id"] = None
    return data, record, tally


def _iter_records(
    manifest: Manifest,
    copies: Mapping[str, Replacement],
    snapshot: NewSnapshot,
    tally: ManifestRewrite,
) -> Iterator[dict[str, Any]]:
    """Yield the records of the new manifest, and count them."""
    version = snapshot.format_version
    for entry in manifest.live_entries():
        if version > 1 and (entry.sequence_number is None or entry.file_sequence_number is None):
            raise UnreadableError(f"the entry of {entry.path:.200} has no sequence number")
        number = entry.sequence_number or 0
        if tally.min_sequence_number is None or number < tally.min_sequence_number:
            tally.min_sequence_number = number
        copy = copies.get(entry.key)
        if copy is None:
            if entry.snapshot_id is None:
                raise UnreadableError(f"the entry of {entry.path:.200} has no snapshot id")
            tally.existing_files += 1
            tally.existing_rows += entry.rows
            yield build_entry(entry, EXISTING, entry.snapshot_id, version)
        else:
            tally.files += 1
            tally.rows += entry.rows
            tally.old_bytes += entry.size
            tally.new_bytes += copy.new_bytes
            tally.partitions.add((manifest.file.spec_id, repr(entry.partition)))
            yield build_entry(entry, DELETION, snapshot.id, version)
            yield build_entry(
                entry, ADDITION, snapshot.id, version, path=copy.new_path, size=copy.new_bytes
            )


def build_manifest_list(
    metadata: TableMetadata,
    header: AvroHeader,
    manifests: Sequence[ManifestFile],
    records: Mapping[str, Mapping[str, Any]],
    snapshot: NewSnapshot,
) -> tuple[bytes, int]:
    """Build the manifest list of the snapshot: `records` are those of the new manifests, by the
    path of the manifest that each replaces.

    Also returns the number of row ids that it assigns (format 3): to all manifests of data files
    that have none yet.
    """
    parent = metadata.current
    row_id = metadata.next_row_id
    rows: list[Mapping[str, Any]] = []
    for manifest in manifests:
        record = records.get(manifest.path, manifest.record)
        may_need_id = metadata.format_version > 2 and manifest.content == DATA
        if may_need_id and record.get("first_row_id") is None:
            record = {**record, "first_row_id": row_id}
            for name in ("added_rows_count", "existing_rows_count"):
                row_id += _count(record, name, manifest.path)
        rows.append(record)
    texts = {
        "snapshot-id": str(snapshot.id),
        "parent-snapshot-id": str(parent.id) if parent else "null",
        "sequence-number": str(snapshot.sequence_number),
    }
    if metadata.format_version > 2:
        texts["first-row-id"] = str(metadata.next_row_id)
    return build_list(header, rows, metadata.format_version, texts), row_id - metadata.next_row_id


def build_snapshot(
    metadata: TableMetadata,
    rewrites: Sequence[ManifestRewrite],
    snapshot: NewSnapshot,
    manifest_list: str,
    added_rows: int,
    change: Change,
) -> dict[str, Any]:
    """Build the record of the snapshot for the metadata."""
    record: dict[str, Any] = {"snapshot-id": snapshot.id}
    if metadata.current is not None:
        record["parent-snapshot-id"] = metadata.current.id
    if metadata.format_version > 1:
        record["sequence-number"] = snapshot.sequence_number
    record |= {
        "timestamp-ms": snapshot.timestamp_ms,
        "summary": _summarize(metadata, rewrites, change),
        "manifest-list": manifest_list,
    }
    if metadata.schema_id is not None:
        record["schema-id"] = metadata.schema_id
    if metadata.format_version > 2:
        record |= {"first-row-id": metadata.next_row_id, "added-rows": added_rows}
    return record


def _summarize(
    metadata: TableMetadata, rewrites: Sequence[ManifestRewrite], change: Change
) -> dict[str, str]:
    total = ManifestRewrite()
    for rewrite in rewrites:
        total.files += rewrite.files
        total.rows += rewrite.rows
        total.old_bytes += rewrite.old_bytes
        total.new_bytes += rewrite.new_bytes
        total.partitions |= rewrite.partitions
    summary = {
        "operation": "replace",
        "added-data-files": str(total.files),
        "deleted-data-files": str(total.files),
        "added-records": str(total.rows),
        "deleted-records": str(total.rows),
        "added-files-size": str(total.new_bytes),
        "removed-files-size": str(total.old_bytes),
        "changed-partition-count": str(len(total.partitions)),
    }
    summary |= _carry_totals(metadata, total)
    summary["sbbf.operation"] = change.operation
    if change.columns:
        summary["sbbf.columns"] = ", ".join(change.columns)
    return summary


def _carry_totals(metadata: TableMetadata, total: ManifestRewrite) -> dict[str, str]:
    """Return the totals of the table from the summary of its snapshot, of which a commit changes
    only the bytes."""
    before = metadata.current.summary if metadata.current else {}
    names = [name for name in before if name.startswith("total-")]
    totals = {name: before[name] for name in names if re.fullmatch("[0-9]{1,30}", before[name])}
    if "total-files-size" in totals:
        size = int(totals["total-files-size"]) + total.new_bytes - total.old_bytes
        totals["total-files-size"] = str(max(0, size))
    return totals


def _count(record: Mapping[str, Any], name: str, path: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or value < 0:
        raise UnreadableError(f"the manifest list has no {name} for {path:.200}")
    return value
