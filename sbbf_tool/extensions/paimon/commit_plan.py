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

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import MAGIC, AvroHeader, build_file, parse_header
from sbbf_tool.extensions.avro.schema import fields_of, kind_of, without_null
from sbbf_tool.extensions.paimon.files import parse_file
from sbbf_tool.extensions.paimon.manifest import (
    ADD,
    DELETE,
    KNOWN_LIST_FIELDS,
    Entries,
    Identity,
    ManifestEntry,
    build_list_record,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.paimon.table import EMBEDDED, FILE, NONE, PaimonTable
from sbbf_tool.extensions.paimon.table_schema import (
    KNOWN_FIELDS,
    PaimonSnapshot,
    TableSchema,
    build_snapshot,
)
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional

KNOWN_ENTRY_FIELDS = frozenset(
    ("_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE")
)
KNOWN_FILE_FIELDS = frozenset(
    (
        *(
            "_FILE_NAME",
            "_FILE_SIZE",
            "_ROW_COUNT",
            "_MIN_KEY",
            "_MAX_KEY",
            "_KEY_STATS",
            "_VALUE_STATS",
            "_MIN_SEQUENCE_NUMBER",
        ),
        *(
            "_MAX_SEQUENCE_NUMBER",
            "_SCHEMA_ID",
            "_LEVEL",
            "_EXTRA_FILES",
            "_CREATION_TIME",
            "_DELETE_ROW_COUNT",
            "_EMBEDDED_FILE_INDEX",
        ),
        *(
            "_FILE_SOURCE",
            "_VALUE_STATS_COLS",
            "_EXTERNAL_PATH",
            "_FIRST_ROW_ID",
            "_WRITE_COLS",
            "_WRITE_COLS_SEQUENCES",
        ),
    )
)
"""Every field of the metadata of a data file in Paimon 0.8 to 2.1. A newer field might be wrong
after an index is added."""

SNAPSHOT_VERSION = 3
_ENTRIES_PER_MANIFEST = 5_000
_BATCH_COMMIT = (1 << 63) - 1
"""The commitIdentifier of commits that do not belong to a stream: Long.MAX_VALUE."""


class IndexChange(Frozen):
    """The new index of a data file, to be stored in the manifest or in a file; its present indexes
    are no longer referred to."""

    entry: ManifestEntry
    """The present entry of the data file in the table."""
    container: bytes | None
    """None for no index."""
    path: str | None
    """The `.index` file to write; None to embed the container in the manifest, or for no index."""

    @property
    def place(self) -> tuple[str, str | None, int]:
        """Where the index will be, its path if it is a file, and its bytes, as reports state
        them."""
        return (
            NONE if self.container is None else FILE if self.path else EMBEDDED,
            self.path,
            len(self.container or b""),
        )


class CommitPlan(Frozen):
    """Files of a commit, in the order to write them: `manifests`, then `snapshot`."""

    snapshot_id: int
    manifests: tuple[tuple[str, bytes], ...]
    """Names in the manifest directory, and bytes."""
    snapshot: bytes


def check_publishable(table: PaimonTable) -> None:
    """Raise RefusedError, before any index is built, if `plan_commit` would refuse the table
    regardless of the data files."""
    if table.snapshot is None:
        return
    _check_snapshot(table.snapshot, table.path)
    _read_manifest_lists(table, table.snapshot)
    for name in table.manifest_names():
        _check_fields(
            parse_file(table.files, table.manifest_path(name), _parse_writable_header), table.path
        )


def plan_commit(
    table: PaimonTable,
    snapshot: PaimonSnapshot,
    changes: Sequence[IndexChange],
    now_millis: int,
    unique: str,
) -> CommitPlan:
    """Plan the files that change these indexes in the snapshot of the table. The names of the files
    contain `unique`.

    Raises RefusedError for fields of a Paimon version that this tool does not support, and for
    manifests that are not Avro.
    """
    _check_snapshot(snapshot, table.path)
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
    list_header, base = _read_manifest_lists(table, snapshot)
    manifests: list[tuple[str, bytes]] = []

    def add_manifest(header: AvroHeader, entries: Entries) -> dict[str, Any]:
        """Add a manifest; return its record in a manifest list."""
        name, data = (
            f"manifest-{unique}-{len(manifests)}",
            build_file(header, (record for _, record in entries)),
        )
        manifests.append((name, data))
        return build_list_record(
            fields_of(list_header.schema), name, len(data), entries, table.schema
        )

    delta = [add_manifest(header, entries) for header, entries in rewritten]
    entries_by_manifest = [parse_manifest(data) for _, data in manifests]
    identities = {
        entry.identity for entries in entries_by_manifest for entry in entries if entry.kind == ADD
    }
    base = list(_forget_entries(table, identities, base, add_manifest))
    _check_outcome(table, changes, entries_by_manifest, base, dict(manifests))
    record = _build_snapshot_record(snapshot, table.schema, now_millis, unique)
    for at, (field, records) in enumerate(
        (("baseManifestList", base), ("deltaManifestList", delta))
    ):
        name, data = f"manifest-list-{unique}-{at}", build_file(list_header, records)
        manifests.append((name, data))
        record[field] = name
        if f"{field}Size" in record:
            record[f"{field}Size"] = len(data)
    return CommitPlan(record["id"], tuple(manifests), build_snapshot(record))


def _forget_entries(
    table: PaimonTable,
    identities: set[Identity],
    base: Sequence[dict[str, Any]],
    add_manifest: Callable[[AvroHeader, Entries], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Yield the records of the base list, whose manifests lack entries that were deleted and are
    added again."""
    deleted = {entry.identity for entry in table.entries() if entry.kind == DELETE} & identities
    for list_record in base:
        path = table.manifest_path(list_record["_FILE_NAME"])
        entries = parse_file(table.files, path, parse_manifest) if deleted else []
        remaining = [
            (entry.kind, entry.record) for entry in entries if entry.identity not in deleted
        ]
        if len(remaining) == len(entries):
            yield list_record
        elif remaining:
            header = parse_file(table.files, path, _parse_writable_header).renew()
            _check_fields(header, table.path)
            yield add_manifest(header, remaining)


def _check_outcome(
    table: PaimonTable,
    changes: Sequence[IndexChange],
    delta: Sequence[Sequence[ManifestEntry]],
    base: Sequence[dict[str, Any]],
    manifests: Mapping[str, bytes],
) -> None:
    """Check, by reading the manifests of the commit as Paimon does, that the data files are the
    same, and only the changed ones differ.

    Raises RefusedError otherwise.
    """
    before = {live.entry.identity for live in table.live_files}
    entries = [entry for each in delta for entry in each]
    for name in (record["_FILE_NAME"] for record in base):
        entries += (
            parse_manifest(manifests[name])
            if name in manifests
            else parse_file(table.files, table.manifest_path(name), parse_manifest)
        )
    deleted = {entry.identity for entry in entries if entry.kind == DELETE}
    after = [
        entry.identity for entry in entries if entry.kind == ADD and entry.identity not in deleted
    ]
    former = {change.entry.identity for change in changes}
    if (
        before - set(after) != former
        or len(after) != len(before)
        or {each[:4] for each in after} != {each[:4] for each in before}
    ):
        raise RefusedError("the commit would change the data files of the table", file=table.path)


def _check_snapshot(snapshot: PaimonSnapshot, path: str) -> None:
    if unknown := sorted(snapshot.record.keys() - KNOWN_FIELDS):
        raise RefusedError(
            f"snapshot {snapshot.id} has fields of a newer Paimon: {', '.join(unknown)}", file=path
        )
    version = snapshot.record.get("version")
    if version != SNAPSHOT_VERSION:
        raise RefusedError(
            f"snapshot {snapshot.id} has version {version!r:.20}; only {SNAPSHOT_VERSION} is "
            "supported",
            file=path,
        )


def _build_snapshot_record(
    snapshot: PaimonSnapshot, schema: TableSchema, now_millis: int, unique: str
) -> dict[str, Any]:
    """Build the fields of the next snapshot: the fields of the previous one, except for fields that
    every commit sets."""
    before = snapshot.record
    record = {
        name: value
        for name, value in before.items()
        if name not in ("properties", "operation", "writerVersion")
    }
    record |= {
        "id": snapshot.id + 1,
        "schemaId": schema.id,
        "commitUser": f"sbbf-{unique}",
        "commitIdentifier": _BATCH_COMMIT,
        "commitKind": "COMPACT",
        "timeMillis": max(now_millis, optional(before, "timeMillis", int) or 0),
        "deltaRecordCount": 0,
    }
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
    """Yield new manifests, each with the schema of the manifests its entries come from, so that
    every field keeps its value."""
    changes_by_identity = {change.entry.identity: change for change in changes}
    groups: dict[str, tuple[AvroHeader, list[IndexChange]]] = {}
    for name in table.manifest_names():
        matches, header = parse_file(
            table.files,
            table.manifest_path(name),
            lambda data: _take_changes(data, changes_by_identity),
        )
        if header is not None:
            groups.setdefault(header.schema_text, (header, []))[1].extend(matches)
    if changes_by_identity:
        raise UnreadableError("a data file to change has no entry in any manifest", file=table.path)
    for header, group in groups.values():
        _check_fields(header, table.path)
        for start in range(0, len(group), _ENTRIES_PER_MANIFEST):
            part = group[start : start + _ENTRIES_PER_MANIFEST]
            yield (
                header.renew(),
                [(kind, _build_entry(kind, change)) for change in part for kind in (DELETE, ADD)],
            )


def _take_changes(
    data: bytes, changes: dict[Identity, IndexChange]
) -> tuple[list[IndexChange], AvroHeader | None]:
    """Remove the changes of data files in a manifest from `changes`; return them and the manifest's
    header (None without them)."""
    identities = [entry.identity for entry in parse_manifest(data) if entry.kind == ADD]
    matches = [
        changes.pop(identity) for identity in dict.fromkeys(identities) if identity in changes
    ]
    return matches, _parse_writable_header(data) if matches else None


def _build_entry(kind: int, change: IndexChange) -> dict[str, Any]:
    """Build the record that deletes an entry (unchanged), or the record that adds the entry with
    its new index."""
    record = {**change.entry.record, "_KIND": kind}
    if kind == ADD:
        old = change.entry.file
        names = [] if change.path is None else [change.path.rpartition("/")[2]]
        record["_FILE"] = {
            **record["_FILE"],
            "_EXTRA_FILES": [
                *(name for name in old.extra_files if name not in old.index_files),
                *names,
            ],
            "_EMBEDDED_FILE_INDEX": change.container if change.path is None else None,
        }
    return record


def _parse_writable_header(data: bytes) -> AvroHeader:
    if not data.startswith(MAGIC):
        raise RefusedError(
            "the manifest is not in Avro, the only format of manifests that can be written",
            hint="let Paimon do it: CALL sys.rewrite_file_index",
        )
    return parse_header(data)


def _check_fields(header: AvroHeader, path: str) -> None:
    entry = fields_of(header.schema)
    file_schema = without_null(entry.get("_FILE", "null"))
    file = fields_of(file_schema) if kind_of(file_schema) == "record" else {}
    if unknown := (entry.keys() - KNOWN_ENTRY_FIELDS) | (file.keys() - KNOWN_FILE_FIELDS):
        raise RefusedError(
            f"its manifests have fields of a newer Paimon: {', '.join(sorted(unknown))}", file=path
        )
    if not file.keys() >= {"_EXTRA_FILES", "_EMBEDDED_FILE_INDEX"}:
        raise RefusedError(
            "its manifests were written by Paimon before 0.8, which has no file indexes", file=path
        )


def _read_manifest_lists(
    table: PaimonTable, snapshot: PaimonSnapshot
) -> tuple[AvroHeader, list[dict[str, Any]]]:
    """Return the header with the newer schema of the two manifest lists, which fits all records,
    and the records of both lists."""
    paths = map(table.manifest_path, snapshot.manifest_lists)
    lists = [
        parse_file(
            table.files,
            path,
            lambda data: (_parse_writable_header(data), parse_manifest_list(data)),
        )
        for path in paths
    ]
    headers = [header for header, _ in lists]
    header = max(headers, key=lambda each: len(fields_of(each.schema)))
    if unknown := set().union(*(fields_of(each.schema) for each in headers)) - KNOWN_LIST_FIELDS:
        raise RefusedError(
            f"its manifest lists have fields of a newer Paimon: {', '.join(sorted(unknown))}",
            file=table.path,
        )
    names = fields_of(header.schema)
    return header.renew(), [
        {field: record.get(field) for field in names}
        for _, records in lists
        for _, record in records
    ]
