"""The commit that gives existing data files new indexes, planned: which files it writes, and with which bytes.

As `rewrite_file_index` does, the commit says of each data file: the entry without index is gone, the same with index is there. It is a new
manifest of such pairs, a delta manifest list that names it, a base manifest list with all manifests of the snapshot before, and a snapshot
of kind COMPACT with the same rows. Entries are written under the schema of the manifest they come from, so that every field stays what it
was. What a snapshot carries on (index manifest, statistics, row ids, watermark) is carried on. Fields this tool does not know are a
reason to refuse: they might say something that a new index makes wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError, UsageError
from sbbf_tool.paimon.avro_file import MAGIC, WRITABLE_CODECS, AvroHeader, build_file, parse_header
from sbbf_tool.paimon.avro_schema import Primitive, Record, record_of, without_null
from sbbf_tool.paimon.files import read_required
from sbbf_tool.paimon.json_fields import optional
from sbbf_tool.paimon.manifest import ADD, DELETE, Identity, ManifestEntry, live_entries, parse_manifest, parse_manifest_list
from sbbf_tool.paimon.manifest_stats import KNOWN_LIST_FIELDS, build_list_record
from sbbf_tool.paimon.snapshot import KNOWN_FIELDS, Snapshot, build_snapshot
from sbbf_tool.paimon.table import Table
from sbbf_tool.paimon.table_schema import TableSchema

KNOWN_ENTRY_FIELDS = frozenset(("_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE"))
KNOWN_FILE_FIELDS = frozenset(
    (
        *("_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT", "_MIN_KEY", "_MAX_KEY", "_KEY_STATS", "_VALUE_STATS", "_MIN_SEQUENCE_NUMBER"),
        *("_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL", "_EXTRA_FILES", "_CREATION_TIME", "_DELETE_ROW_COUNT", "_EMBEDDED_FILE_INDEX"),
        *("_FILE_SOURCE", "_VALUE_STATS_COLS", "_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS", "_WRITE_COLS_SEQUENCES"),
    )
)
"""Every field of a data file's description in Paimon 0.8 to 2.1. A newer one might be wrong after an index was added."""

SNAPSHOT_VERSION = 3
_ENTRIES_PER_MANIFEST = 5_000
_BATCH_COMMIT = (1 << 63) - 1
"""The commitIdentifier of commits that are not one of a stream: Long.MAX_VALUE."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A container for a data file, which goes into the manifest or into a file."""

    entry: ManifestEntry
    """The data file's entry as it is in the table, without index."""
    container: bytes
    path: str | None
    """The `.index` file to write; None to embed the container in the manifest."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest that is to be written."""

    header: AvroHeader
    entries: tuple[tuple[int, Mapping[str, Any]], ...]
    """Kind and record of each entry."""


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The files of a commit: first `manifests`, in order, then `snapshot`."""

    snapshot_id: int
    manifests: tuple[tuple[str, bytes], ...]
    """Names in the manifest directory, and bytes."""
    snapshot: bytes


def check_publishable(table: Table) -> None:
    """Raises RefusedError when `plan_commit` would, for whatever data files: before the work of building indexes is done."""
    if table.snapshot is None:
        return
    _check_snapshot(table.snapshot, table.path)
    _manifest_list(table, table.snapshot)
    for name in table.manifest_names():
        path = table.manifest_path(name)
        _check_fields(_writable_header(read_required(table.files, path), path), table.path)


def plan_commit(table: Table, additions: Sequence[Addition], now_millis: int, unique: str) -> CommitPlan:
    """The files that add these indexes to the table's snapshot. `unique` goes into their names.

    Raises RefusedError for fields of a version this tool does not know, and for manifests that are not Avro.
    """
    if table.snapshot is None:
        raise RefusedError("the table has no snapshot", file=table.path)
    _check_snapshot(table.snapshot, table.path)
    try:
        return _plan(table, table.snapshot, additions, now_millis, unique)
    except UsageError as error:  # a record that does not fit the schema it is to be written under
        raise RefusedError(f"its manifests cannot be carried on: {error.message}", file=table.path) from None


def _plan(table: Table, snapshot: Snapshot, additions: Sequence[Addition], now_millis: int, unique: str) -> CommitPlan:
    parts = list(_manifests(table, additions))
    packed = [build_file(part.header, (record for _, record in part.entries)) for part in parts]
    named = [(f"manifest-{unique}-{at}", part, data) for at, (part, data) in enumerate(zip(parts, packed, strict=True))]
    header, before = _manifest_list(table, snapshot)
    delta = [build_list_record(_fields(header), name, len(data), part.entries, table.schema) for name, part, data in named]
    base_name, delta_name = (f"manifest-list-{unique}-{at}" for at in range(2))
    base_list = build_file(header, before)
    delta_list = build_file(header, delta)
    record = _next_snapshot(snapshot, table.schema, now_millis, unique)
    record |= {"baseManifestList": base_name, "deltaManifestList": delta_name}
    for field, size in (("baseManifestListSize", len(base_list)), ("deltaManifestListSize", len(delta_list))):
        if field in record:
            record[field] = size
    manifests = [(name, data) for name, _, data in named] + [(base_name, base_list), (delta_name, delta_list)]
    _check_outcome(table, additions, [data for _, _, data in named])
    return CommitPlan(record["id"], tuple(manifests), build_snapshot(record))


def _check_outcome(table: Table, additions: Sequence[Addition], manifests: Sequence[bytes]) -> None:
    """Read the new manifests as a stranger would: the same data files must come out, those with a new index under a new identity.

    Raises RefusedError otherwise.
    """
    before = {live.entry.identity for live in table.live_files}
    entries = [live.entry for live in table.live_files]
    after = {entry.identity for entry in live_entries([*entries, *(entry for data in manifests for entry in parse_manifest(data))])}
    replaced = {addition.entry.identity for addition in additions}
    if before - after != replaced or len(after) != len(before) or {each[:4] for each in after} != {each[:4] for each in before}:
        raise RefusedError("the commit would not leave the same data files in the table", file=table.path)


def _check_snapshot(snapshot: Snapshot, path: str) -> None:
    if unknown := sorted(snapshot.record.keys() - KNOWN_FIELDS):
        raise RefusedError(f"snapshot {snapshot.id} has fields of a newer Paimon: {', '.join(unknown)}", file=path)
    version = snapshot.record.get("version")
    if version != SNAPSHOT_VERSION:
        raise RefusedError(f"snapshot {snapshot.id} is of version {version!r:.20}, not {SNAPSHOT_VERSION}", file=path)


def _next_snapshot(snapshot: Snapshot, schema: TableSchema, now_millis: int, unique: str) -> dict[str, Any]:
    """The fields of the snapshot to come: those of the last one, except what a commit sets anew."""
    before = snapshot.record
    record = {name: value for name, value in before.items() if name not in ("properties", "operation", "writerVersion")}
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
        record.pop("statistics", None)  # they are of the schema before
    return record


def _manifests(table: Table, additions: Sequence[Addition]) -> Iterable[ManifestFile]:
    """New manifests, each under the schema of the manifests its entries come from, so that every field stays what it was."""
    wanted = {addition.entry.identity: addition for addition in additions}
    groups: dict[str, tuple[AvroHeader, list[Addition]]] = {}
    for name in table.manifest_names():
        path = table.manifest_path(name)
        data = read_required(table.files, path)
        header = None
        for identity in _added(data, path):
            if (addition := wanted.pop(identity, None)) is not None:
                header = header or _writable_header(data, path)
                groups.setdefault(header.schema_text, (header, []))[1].append(addition)
    if wanted:
        raise UnreadableError("a data file's entry is in no manifest", file=table.path)
    for header, group in groups.values():
        _check_fields(header, table.path)
        for start in range(0, len(group), _ENTRIES_PER_MANIFEST):
            part = group[start : start + _ENTRIES_PER_MANIFEST]
            pairs = [(kind, _changed(kind, addition, header)) for addition in part for kind in (DELETE, ADD)]
            yield ManifestFile(_fresh(header), tuple(pairs))


def _added(data: bytes, path: str) -> Iterable[Identity]:
    with ErrorPlace(path):
        return [entry.identity for entry in parse_manifest(data) if entry.kind == ADD]


def _changed(kind: int, addition: Addition, header: AvroHeader) -> dict[str, Any]:
    """The entry as it was, to be deleted; or with the index, to be added."""
    record = {**addition.entry.record, "_KIND": kind}
    if kind == ADD:
        file = dict(record["_FILE"])
        if addition.path is not None:
            file["_EXTRA_FILES"] = [*addition.entry.file.extra_files, addition.path.rpartition("/")[2]]
        else:
            file["_EMBEDDED_FILE_INDEX"] = addition.container
        record["_FILE"] = file
    return record


def _writable_header(data: bytes, path: str) -> AvroHeader:
    if not data.startswith(MAGIC):
        raise RefusedError("a manifest that is not Avro, which is read but not written", file=path, hint="CALL sys.rewrite_file_index")
    with ErrorPlace(path):
        header = parse_header(data)
    return header if header.codec in WRITABLE_CODECS else replace(header, codec="deflate")


def _check_fields(header: AvroHeader, path: str) -> None:
    entry = dict(record_of(header.schema).fields)
    described = without_null(entry.get("_FILE", Primitive("null")))
    file = dict(described.fields) if isinstance(described, Record) else {}
    if unknown := (entry.keys() - KNOWN_ENTRY_FIELDS) | (file.keys() - KNOWN_FILE_FIELDS):
        raise RefusedError(f"its manifests have fields of a newer Paimon: {', '.join(sorted(unknown))}", file=path)
    if not file.keys() >= {"_EXTRA_FILES", "_EMBEDDED_FILE_INDEX"}:
        raise RefusedError("its manifests are of a Paimon before 0.8, which has no file indexes", file=path)


def _manifest_list(table: Table, snapshot: Snapshot) -> tuple[AvroHeader, list[dict[str, Any]]]:
    """The manifests so far, and the newest of the two lists' schemas, under which all of them can be written."""
    headers: list[AvroHeader] = []
    records: list[dict[str, Any]] = []
    for name in snapshot.manifest_lists:
        path = table.manifest_path(name)
        data = read_required(table.files, path)
        headers.append(_writable_header(data, path))
        with ErrorPlace(path):
            records += (record for _, record in parse_manifest_list(data))
    header = max(headers, key=lambda each: len(_fields(each)))
    if unknown := set().union(*(_fields(each) for each in headers)) - KNOWN_LIST_FIELDS:
        raise RefusedError(f"its manifest lists have fields of a newer Paimon: {', '.join(sorted(unknown))}", file=table.path)
    names = _fields(header)
    return _fresh(header), [{field: record.get(field) for field in names} for record in records]


def _fields(header: AvroHeader) -> tuple[str, ...]:
    return tuple(name for name, _ in record_of(header.schema).fields)


def _fresh(header: AvroHeader) -> AvroHeader:
    return replace(header, sync=os.urandom(16))
