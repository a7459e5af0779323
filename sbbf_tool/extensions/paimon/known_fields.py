"""What a commit can write again: metadata files in Avro, of which every field is known.

A newer field might be wrong after an index is added or removed, so a table that has one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.avro.file import MAGIC, AvroHeader, parse_header
from sbbf_tool.extensions.avro.schema import fields_of, kind_of, without_null
from sbbf_tool.extensions.paimon.files import parse_file
from sbbf_tool.extensions.paimon.manifest import parse_manifest_list
from sbbf_tool.extensions.paimon.table import PaimonTable
from sbbf_tool.extensions.paimon.table_schema import PaimonSnapshot

SNAPSHOT_VERSION = 3
KNOWN_SNAPSHOT_FIELDS = frozenset(
    (
        "version",
        "uuid",
        "id",
        "schemaId",
        "baseManifestList",
        "baseManifestListSize",
        "deltaManifestList",
        "deltaManifestListSize",
        "changelogManifestList",
        "changelogManifestListSize",
        "indexManifest",
        "commitUser",
        "writerVersion",
        "commitIdentifier",
        "commitKind",
        "timeMillis",
        "logOffsets",
        "totalRecordCount",
        "deltaRecordCount",
        "changelogRecordCount",
        "watermark",
        "statistics",
        "properties",
        "nextRowId",
        "operation",
    )
)
"""Every field of a snapshot in Paimon 0.8 to 2.1; so are the following sets."""
KNOWN_LIST_FIELDS = frozenset(
    (
        "_VERSION",
        "_FILE_NAME",
        "_FILE_SIZE",
        "_NUM_ADDED_FILES",
        "_NUM_DELETED_FILES",
        "_PARTITION_STATS",
        "_SCHEMA_ID",
        "_MIN_BUCKET",
        "_MAX_BUCKET",
        "_MIN_LEVEL",
        "_MAX_LEVEL",
        "_MIN_ROW_ID",
        "_MAX_ROW_ID",
        "_TOTAL_BUCKETS",
        "_EXTRA_FILES",
    )
)
"""The fields of a manifest list."""
KNOWN_ENTRY_FIELDS = frozenset(
    ("_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE")
)
"""The fields of an entry of a manifest."""
KNOWN_FILE_FIELDS = frozenset(
    (
        "_FILE_NAME",
        "_FILE_SIZE",
        "_ROW_COUNT",
        "_MIN_KEY",
        "_MAX_KEY",
        "_KEY_STATS",
        "_VALUE_STATS",
        "_MIN_SEQUENCE_NUMBER",
        "_MAX_SEQUENCE_NUMBER",
        "_SCHEMA_ID",
        "_LEVEL",
        "_EXTRA_FILES",
        "_CREATION_TIME",
        "_DELETE_ROW_COUNT",
        "_EMBEDDED_FILE_INDEX",
        "_FILE_SOURCE",
        "_VALUE_STATS_COLS",
        "_EXTERNAL_PATH",
        "_FIRST_ROW_ID",
        "_WRITE_COLS",
        "_WRITE_COLS_SEQUENCES",
    )
)
"""The fields of the metadata of a data file, the `_FILE` of an entry."""


def check_publishable(table: PaimonTable) -> None:
    """Raise RefusedError if no commit of indexes to the table can be written.

    Whatever the data files are, `plan_commit` would refuse the table; this is known before any
    index is built.
    """
    if table.snapshot is None:
        return
    check_snapshot(table.snapshot, table.path)
    read_manifest_lists(table, table.snapshot)
    for name in table.manifest_names():
        header = parse_file(table.files, table.manifest_path(name), parse_writable_header)
        check_manifest_fields(header, table.path)


def check_snapshot(snapshot: PaimonSnapshot, path: str) -> None:
    """Raise RefusedError for a snapshot of a newer Paimon; `path` is the table's."""
    unknown = sorted(snapshot.record.keys() - KNOWN_SNAPSHOT_FIELDS)
    if unknown:
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


def parse_writable_header(data: bytes) -> AvroHeader:
    """Parse the header of a manifest or a manifest list. Raises RefusedError unless it is Avro."""
    if not data.startswith(MAGIC):
        raise RefusedError(
            "the manifest is not in Avro, the only format of manifests that can be written",
            hint="let Paimon do it: CALL sys.rewrite_file_index",
        )
    return parse_header(data)


def check_manifest_fields(header: AvroHeader, path: str) -> None:
    """Raise RefusedError for a manifest whose entries are of a newer Paimon, or before 0.8."""
    entry = fields_of(header.schema)
    file_schema = without_null(entry.get("_FILE", "null"))
    file = fields_of(file_schema) if kind_of(file_schema) == "record" else {}
    unknown = entry.keys() - KNOWN_ENTRY_FIELDS
    unknown |= file.keys() - KNOWN_FILE_FIELDS
    if unknown:
        raise RefusedError(
            f"its manifests have fields of a newer Paimon: {', '.join(sorted(unknown))}", file=path
        )
    if not file.keys() >= {"_EXTRA_FILES", "_EMBEDDED_FILE_INDEX"}:
        raise RefusedError(
            "its manifests were written by Paimon before 0.8, which has no file indexes", file=path
        )


def read_manifest_lists(
    table: PaimonTable, snapshot: PaimonSnapshot
) -> tuple[AvroHeader, list[dict[str, Any]]]:
    """Return a header and the records of both manifest lists.

    The header has the newer schema of the two lists, which fits all records. Raises RefusedError
    for fields of a newer Paimon.
    """
    headers = []
    records = []
    for name in snapshot.manifest_lists:
        header, list_records = parse_file(
            table.files, table.manifest_path(name), _parse_writable_list
        )
        headers.append(header)
        records += list_records
    unknown = set[str]()
    for header in headers:
        unknown |= fields_of(header.schema).keys() - KNOWN_LIST_FIELDS
    if unknown:
        raise RefusedError(
            f"its manifest lists have fields of a newer Paimon: {', '.join(sorted(unknown))}",
            file=table.path,
        )
    newest = max(headers, key=lambda header: len(fields_of(header.schema)))
    fields = fields_of(newest.schema)
    return newest.renew(), [_select(record, fields) for record in records]


def _select(record: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """Return these fields of a record, which are null where the record lacks them."""
    return {field: record.get(field) for field in fields}


def _parse_writable_list(data: bytes) -> tuple[AvroHeader, list[dict[str, Any]]]:
    header = parse_writable_header(data)
    return header, [record for _, record in parse_manifest_list(data)]
