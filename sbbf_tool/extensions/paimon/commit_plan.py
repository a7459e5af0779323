"""Plan of the commit that changes the indexes of existing data files: the files to write and their
bytes.

Like Paimon's `rewrite_file_index`, the commit deletes the entry of each data file and adds it again
with its new index, or without one. It consists of a new manifest with these pairs of entries, a
delta manifest list that names the manifest, a base manifest list with all manifests of the previous
snapshot, and a snapshot of kind COMPACT with the same rows. Entries are written with the schema of
the manifest they come from, so that every field keeps its value. The index manifest, statistics,
row ids and watermark of the previous snapshot are kept. A table with fields that are unknown to
this tool is refused, because a new index might make these fields wrong.

Paimon expects that each entry is added once and deleted once: since 1.0 its scan ignores every
added entry that any manifest deletes (manifest/FileEntry.java `readDeletedEntries`). A data file
that loses its index, or gets one that it had before, has the same entry as then. The manifests with
the former entries are therefore rewritten without them in the new base list, as when Paimon merges
manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import AvroHeader, build_file
from sbbf_tool.extensions.avro.schema import fields_of
from sbbf_tool.extensions.paimon.files import parse_file
from sbbf_tool.extensions.paimon.known_fields import (
    check_manifest_fields,
    check_snapshot,
    parse_writable_header,
    read_manifest_lists,
)
from sbbf_tool.extensions.paimon.manifest import (
    ADD,
    DELETE,
    Entries,
    Identity,
    ManifestEntry,
    build_list_record,
    parse_manifest,
)
from sbbf_tool.extensions.paimon.table import EMBEDDED, FILE, NONE, PaimonTable
from sbbf_tool.extensions.paimon.table_schema import PaimonSnapshot, TableSchema, build_snapshot
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional

_ENTRIES_PER_MANIFEST = 5_000
_BATCH_COMMIT = (1 << 63) - 1
"""The commitIdentifier of commits that do not belong to a stream: Long.MAX_VALUE."""


class IndexChange(Frozen):
    """The new index of a data file, to be stored in the manifest or in a file.

    The present indexes of the data file are no longer referred to.
    """

    entry: ManifestEntry
    """The present entry of the data file in the table."""
    container: bytes | None
    """None for no index."""
    path: str | None
    """The `.index` file to write; None to embed the container in the manifest, or for no index."""

    @property
    def place(self) -> tuple[str, str | None, int]:
        """The place of the index, its path if it is a file, and its bytes, as in reports."""
        if self.container is None:
            return NONE, self.path, 0
        place = FILE if self.path else EMBEDDED
        return place, self.path, len(self.container)


class CommitPlan(Frozen):
    """Files of a commit, in the order to write them: `manifests`, then `snapshot`."""

    snapshot_id: int
    manifests: tuple[tuple[str, bytes], ...]
    """Names in the manifest directory, and bytes."""
    snapshot: bytes


class _NewManifests:
    """The manifests that a commit writes, in order."""

    def __init__(self, table: PaimonTable, list_header: AvroHeader, unique: str) -> None:
        self.files: dict[str, bytes] = {}
        self._schema = table.schema
        self._list_fields = fields_of(list_header.schema)
        self._unique = unique

    def add(self, header: AvroHeader, entries: Entries) -> dict[str, Any]:
        """Build a manifest with these entries; return its record in a manifest list."""
        name = f"manifest-{self._unique}-{len(self.files)}"
        data = build_file(header, [record for _, record in entries])
        self.files[name] = data
        return build_list_record(self._list_fields, name, len(data), entries, self._schema)


def plan_commit(
    table: PaimonTable,
    snapshot: PaimonSnapshot,
    changes: Sequence[IndexChange],
    now_millis: int,
    unique: str,
) -> CommitPlan:
    """Plan the files that change these indexes in the snapshot of the table.

    The names of the files contain `unique`. Raises RefusedError for fields of a Paimon version that
    this tool does not support, and for manifests that are not Avro.
    """
    check_snapshot(snapshot, table.path)
    try:
        return _plan(table, snapshot, changes, now_millis, unique)
    except UsageError as error:  # a record that does not fit its schema
        raise RefusedError(
            f"its manifests cannot be rewritten: {error.message}", file=table.path
        ) from None


def _plan(
    table: PaimonTable,
    snapshot: PaimonSnapshot,
    changes: Sequence[IndexChange],
    now_millis: int,
    unique: str,
) -> CommitPlan:
    rewritten = list(_rewrite_manifests(table, changes))
    list_header, records = read_manifest_lists(table, snapshot)
    manifests = _NewManifests(table, list_header, unique)
    delta = [manifests.add(header, entries) for header, entries in rewritten]
    delta_entries = []
    for data in manifests.files.values():
        delta_entries += parse_manifest(data)
    added = _identities(delta_entries, ADD)
    base = list(_forget_entries(table, added, records, manifests))
    _check_outcome(table, changes, delta_entries, base, manifests.files)
    record = _build_snapshot_record(snapshot, table.schema, now_millis, unique)
    files = list(manifests.files.items())
    for field, name, list_records in (
        ("baseManifestList", f"manifest-list-{unique}-0", base),
        ("deltaManifestList", f"manifest-list-{unique}-1", delta),
    ):
        data = build_file(list_header, list_records)
        files.append((name, data))
        record[field] = name
        if f"{field}Size" in record:
            record[f"{field}Size"] = len(data)
    return CommitPlan(record["id"], tuple(files), build_snapshot(record))


def _identities(entries: Iterable[ManifestEntry], kind: int) -> set[Identity]:
    """Return what these entries add, or delete."""
    return {entry.identity for entry in entries if entry.kind == kind}


def _forget_entries(
    table: PaimonTable,
    added: set[Identity],
    base: Sequence[dict[str, Any]],
    manifests: _NewManifests,
) -> Iterator[dict[str, Any]]:
    """Yield the records of the base list.

    Its manifests lack entries that were deleted and are in `added` again.
    """
    deleted = _identities(table.entries(), DELETE) & added
    if not deleted:
        yield from base
        return
    for list_record in base:
        path = table.manifest_path(list_record["_FILE_NAME"])
        entries = parse_file(table.files, path, parse_manifest)
        remaining = [
            (entry.kind, entry.record) for entry in entries if entry.identity not in deleted
        ]
        if len(remaining) == len(entries):
            yield list_record
        elif remaining:
            header = parse_file(table.files, path, parse_writable_header).renew()
            check_manifest_fields(header, table.path)
            yield manifests.add(header, remaining)


def _check_outcome(
    table: PaimonTable,
    changes: Sequence[IndexChange],
    delta_entries: Sequence[ManifestEntry],
    base: Sequence[dict[str, Any]],
    new_manifests: Mapping[str, bytes],
) -> None:
    """Raise RefusedError unless the data files are the same, and only the changed ones differ.

    The manifests of the commit are read as Paimon reads them.
    """
    entries = list(delta_entries)
    for record in base:
        name = record["_FILE_NAME"]
        if name in new_manifests:
            entries += parse_manifest(new_manifests[name])
        else:
            entries += parse_file(table.files, table.manifest_path(name), parse_manifest)
    deleted = _identities(entries, DELETE)
    added = [entry.identity for entry in entries if entry.kind == ADD]
    after = [identity for identity in added if identity not in deleted]
    before = {live.entry.identity for live in table.live_files}
    changed = {change.entry.identity for change in changes}
    has_same_files = len(after) == len(before) and _data_files(after) == _data_files(before)
    if before - set(after) != changed or not has_same_files:
        raise RefusedError("the commit would change the data files of the table", file=table.path)


def _data_files(identities: Iterable[Identity]) -> set[tuple[bytes, int, int, str]]:
    """Return the identities without the indexes: partition, bucket, level and name."""
    return {identity[:4] for identity in identities}


def _build_snapshot_record(
    snapshot: PaimonSnapshot, schema: TableSchema, now_millis: int, unique: str
) -> dict[str, Any]:
    """Build the fields of the next snapshot.

    They are those of the previous one, except for fields that every commit sets.
    """
    before = snapshot.record
    record = {
        **before,
        "id": snapshot.id + 1,
        "schemaId": schema.id,
        "commitUser": f"sbbf-{unique}",
        "commitIdentifier": _BATCH_COMMIT,
        "commitKind": "COMPACT",
        "timeMillis": max(now_millis, optional(before, "timeMillis", int) or 0),
        "deltaRecordCount": 0,
    }
    for name in ("properties", "operation", "writerVersion"):
        record.pop(name, None)
    if "uuid" in record:
        record["uuid"] = unique
    if before.get("changelogRecordCount") is not None:
        record["changelogRecordCount"] = 0
    for name in ("changelogManifestList", "changelogManifestListSize"):
        if name in record:
            record[name] = None
    if schema.id != snapshot.schema_id:
        record.pop("statistics", None)  # they belong to the previous schema
    return record


def _rewrite_manifests(
    table: PaimonTable, changes: Sequence[IndexChange]
) -> Iterator[tuple[AvroHeader, Entries]]:
    """Yield header and entries of new manifests.

    Each has the schema of the manifests its entries come from, so that every field keeps its value.
    """
    pending = {change.entry.identity: change for change in changes}
    groups: dict[str, tuple[AvroHeader, list[IndexChange]]] = {}
    for name in table.manifest_names():
        find_changes = partial(_find_changes, changes=pending)
        matches, header = parse_file(table.files, table.manifest_path(name), find_changes)
        for change in matches:
            del pending[change.entry.identity]
        if header is not None:
            _, group = groups.setdefault(header.schema_text, (header, []))
            group.extend(matches)
    if pending:
        raise UnreadableError("a data file to change has no entry in any manifest", file=table.path)
    for header, group in groups.values():
        check_manifest_fields(header, table.path)
        for start in range(0, len(group), _ENTRIES_PER_MANIFEST):
            entries = []
            for change in group[start : start + _ENTRIES_PER_MANIFEST]:
                entries.append((DELETE, {**change.entry.record, "_KIND": DELETE}))
                entries.append((ADD, _build_addition(change)))
            yield header.renew(), entries


def _find_changes(
    data: bytes, changes: Mapping[Identity, IndexChange]
) -> tuple[list[IndexChange], AvroHeader | None]:
    """Return the changes of the data files that a manifest adds, and the header of the manifest.

    The header is None without such changes.
    """
    matches = {}
    for entry in parse_manifest(data):
        if entry.kind == ADD and entry.identity in changes:
            matches[entry.identity] = changes[entry.identity]
    header = parse_writable_header(data) if matches else None
    return list(matches.values()), header


def _build_addition(change: IndexChange) -> dict[str, Any]:
    """Build the record that adds the entry of a data file again, with its new index."""
    file = change.entry.file
    extra_files = [name for name in file.extra_files if name not in file.index_files]
    embedded_index = change.container
    if change.path is not None:
        extra_files.append(change.path.rpartition("/")[2])
        embedded_index = None
    file_record = {
        **change.entry.record["_FILE"],
        "_EXTRA_FILES": extra_files,
        "_EMBEDDED_FILE_INDEX": embedded_index,
    }
    return {**change.entry.record, "_KIND": ADD, "_FILE": file_record}
