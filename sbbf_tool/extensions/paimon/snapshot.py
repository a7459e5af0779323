"""A snapshot file, `snapshot/snapshot-<id>` (Snapshot.java): JSON that names the manifest lists of one state of a table.

`baseManifestList` is the state before the commit, and `deltaManifestList` the changes of the commit; together they are the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.records import file_name, parse_object, required

KNOWN_FIELDS = frozenset(
    (
        *("version", "uuid", "id", "schemaId", "baseManifestList", "baseManifestListSize", "deltaManifestList"),
        *("deltaManifestListSize", "changelogManifestList", "changelogManifestListSize", "indexManifest", "commitUser", "writerVersion"),
        *("commitIdentifier", "commitKind", "timeMillis", "logOffsets", "totalRecordCount", "deltaRecordCount", "changelogRecordCount"),
        *("watermark", "statistics", "properties", "nextRowId", "operation"),
    )
)
"""Every field of a snapshot in Paimon 0.8 to 2.1."""


@dataclass(frozen=True, slots=True)
class PaimonSnapshot:
    id: int
    schema_id: int
    manifest_lists: tuple[str, str]
    """The names of the base list and of the delta list."""
    record: Mapping[str, Any]
    """The JSON as stored, including unknown fields."""


def parse_snapshot(data: bytes) -> PaimonSnapshot:
    """Parse a snapshot file. Raises UnreadableError if `data` is not a snapshot file."""
    tree = parse_object(data, "a snapshot file")
    return PaimonSnapshot(
        required(tree, "id", int),
        required(tree, "schemaId", int),
        (file_name(required(tree, "baseManifestList", str)), file_name(required(tree, "deltaManifestList", str))),
        tree,
    )


def build_snapshot(record: Mapping[str, Any]) -> bytes:
    """Build a snapshot file from these fields, in the format of Paimon's JSON writer."""
    return json.dumps(record, indent=2, separators=(",", " : ")).encode()
