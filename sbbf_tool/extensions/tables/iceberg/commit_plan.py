"""Plan of the commit that replaces data files by copies: the manifests to write, and the snapshot
(operation `replace`).

For each manifest with a file to replace there is a new one: its other files as EXISTING, the old
files as DELETED, the copies as ADDED with the data sequence number of the old files, so that
equality deletes still reach them. Everything else that an entry says is kept. A manifest of delete
files is replaced if position deletes are carried over (`carried_deletes`), and manifests without
such a file are kept. In format 3, the copies keep the first row ids of the old files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.iceberg.manifest import (
    ADDITION,
    DATA,
    DELETES,
    DELETION,
    EXISTING,
    EntryId,
    Manifest,
    ManifestFile,
    build_entry,
    build_manifest,
)
from sbbf_tool.extensions.tables.iceberg.manifest import build_manifest_list as build_list
from sbbf_tool.extensions.tables.iceberg.metadata import TableMetadata
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


class EntryChange(NamedTuple):
    """What a commit does with an entry of a manifest."""

    is_removed: bool
    """Whether its file leaves the table."""
    additions: tuple[Mapping[str, Any], ...] = ()
    """New files with its partition: the fields in which each differs from its file."""


EntryChanges = Mapping[EntryId, EntryChange]


@dataclass(slots=True)
class Tally:
    """Numbers of files."""

    files: int = 0
    rows: int = 0
    """Of delete files, the deleted rows."""
    bytes: int = 0
    vectors: int = 0
    """Those of the files that are deletion vectors."""

    def count(self, file: Mapping[str, Any]) -> None:
        """Count a file, given by its `data_file`."""
        self.files += 1
        self.rows += file["record_count"]
        # Of a deletion vector, those of its part of the file.
        self.bytes += file.get("content_size_in_bytes") or file["file_size_in_bytes"]
        self.vectors += file["file_format"].upper() == "PUFFIN"

    def add(self, other: Tally) -> None:
        self.files += other.files
        self.rows += other.rows
        self.bytes += other.bytes
        self.vectors += other.vectors


@dataclass(slots=True)
class ManifestRewrite:
    """Numbers of a manifest in which files were replaced."""

    content: int
    """0 for data files, 1 for delete files."""
    added: Tally = field(default_factory=Tally)
    removed: Tally = field(default_factory=Tally)
    existing: Tally = field(default_factory=Tally)
    min_sequence_number: int | None = None
    partitions: set[tuple[int, str]] = field(default_factory=set)
    """The spec and the partition values of the files that were replaced."""


def rewrite_manifest(
    manifest: Manifest,
    changes: EntryChanges,
    snapshot: NewSnapshot,
) -> tuple[bytes, dict[str, Any], ManifestRewrite]:
    """Replace files of a manifest: changes are given by `IcebergEntry.id`.

    Return the bytes of the new manifest, its record for the manifest list without path and length,
    and its numbers.
    """
    tally = ManifestRewrite(manifest.file.content)
    with ErrorPlace(manifest.file.path):
        data = build_manifest(
            manifest.header,
            _iter_records(manifest, changes, snapshot, tally),
            snapshot.format_version,
            of_deletes=manifest.file.content != DATA,
        )
    record = {
        **manifest.file.record,
        "added_snapshot_id": snapshot.id,
        "added_files_count": tally.added.files,
        "existing_files_count": tally.existing.files,
        "deleted_files_count": tally.removed.files,
        "added_rows_count": tally.added.rows,
        "existing_rows_count": tally.existing.rows,
        "deleted_rows_count": tally.removed.rows,
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
    changes: EntryChanges,
    snapshot: NewSnapshot,
    tally: ManifestRewrite,
) -> Iterator[dict[str, Any]]:
    """Yield the records of the new manifest, and count them."""
    version = snapshot.format_version
    unchanged = EntryChange(is_removed=False)
    for entry in manifest.live_entries():
        if version > 1 and (entry.sequence_number is None or entry.file_sequence_number is None):
            raise UnreadableError(f"the entry of {entry.path:.200} has no sequence number")
        number = entry.sequence_number or 0
        if tally.min_sequence_number is None or number < tally.min_sequence_number:
            tally.min_sequence_number = number
        change = changes.get(entry.id, unchanged)
        if change.is_removed:
            tally.removed.count(entry.file)
            yield build_entry(entry, DELETION, snapshot.id, version)
        else:
            if entry.snapshot_id is None:
                raise UnreadableError(f"the entry of {entry.path:.200} has no snapshot id")
            tally.existing.count(entry.file)
            yield build_entry(entry, EXISTING, entry.snapshot_id, version)
        for new_file in change.additions:
            record = build_entry(entry, ADDITION, snapshot.id, version, new_file)
            tally.added.count(record["data_file"])
            yield record
        if change is not unchanged:
            tally.partitions.add((manifest.file.spec_id, repr(entry.partition)))


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
    rows = []
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
    added = {DATA: Tally(), DELETES: Tally()}
    removed = {DATA: Tally(), DELETES: Tally()}
    partitions = set[tuple[int, str]]()
    for rewrite in rewrites:
        added[rewrite.content].add(rewrite.added)
        removed[rewrite.content].add(rewrite.removed)
        partitions |= rewrite.partitions
    differences = {
        "total-files-size": sum(tally.bytes for tally in added.values())
        - sum(tally.bytes for tally in removed.values()),
        "total-delete-files": added[DELETES].files - removed[DELETES].files,
        "total-position-deletes": added[DELETES].rows - removed[DELETES].rows,
    }
    summary = {
        "operation": "replace",
        "added-data-files": str(added[DATA].files),
        "deleted-data-files": str(removed[DATA].files),
        "added-records": str(added[DATA].rows),
        "deleted-records": str(removed[DATA].rows),
        "added-files-size": str(sum(tally.bytes for tally in added.values())),
        "removed-files-size": str(sum(tally.bytes for tally in removed.values())),
        "changed-partition-count": str(len(partitions)),
    }
    for word, tally in (("added", added[DELETES]), ("removed", removed[DELETES])):
        counts = {
            f"{word}-delete-files": tally.files,
            f"{word}-position-delete-files": tally.files - tally.vectors,
            f"{word}-dvs": tally.vectors,
            f"{word}-position-deletes": tally.rows,
        }
        summary |= {name: str(count) for name, count in counts.items() if count}
    summary |= _change_totals(metadata, differences)
    summary["sbbf.operation"] = change.operation
    if change.columns:
        summary["sbbf.columns"] = ", ".join(change.columns)
    return summary


def _change_totals(metadata: TableMetadata, differences: Mapping[str, int]) -> dict[str, str]:
    """Return the totals of the table from the summary of its snapshot, changed by these numbers."""
    before = metadata.current.summary if metadata.current else {}
    names = [name for name in before if name.startswith("total-")]
    totals = {name: before[name] for name in names if re.fullmatch("[0-9]{1,30}", before[name])}
    for name, difference in differences.items():
        if name in totals:
            totals[name] = str(max(0, int(totals[name]) + difference))
    return totals


def _count(record: Mapping[str, Any], name: str, path: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or value < 0:
        raise UnreadableError(f"the manifest list has no {name} for {path:.200}")
    return value
