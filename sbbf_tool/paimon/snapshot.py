"""A snapshot file, `snapshot/snapshot-<id>` (Snapshot.java): JSON that names the manifest lists of one state of a table.

`baseManifestList` holds what was there before the commit, `deltaManifestList` what it changed; both together are the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.paimon.json_fields import file_name, parse_object, required

KNOWN_FIELDS = frozenset(
    (
        *("version", "uuid", "id", "schemaId", "baseManifestList", "baseManifestListSize", "deltaManifestList"),
        *("deltaManifestListSize", "changelogManifestList", "changelogManifestListSize", "indexManifest", "commitUser", "writerVersion"),
        *("commitIdentifier", "commitKind", "timeMillis", "logOffsets", "totalRecordCount", "deltaRecordCount", "changelogRecordCount"),
        *("watermark", "statistics", "properties", "nextRowId", "operation"),
    )
)
"""Every field of Paimon 0.8 to 2.1."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: int
    schema_id: int
    manifest_lists: tuple[str, str]
    """The names of the base list and of the delta list."""
    record: Mapping[str, Any]
    """The JSON as it was read, fields this tool does not know included."""


def parse_snapshot(data: bytes) -> Snapshot:
    """A snapshot from its file. Raises UnreadableError when it is not one."""
    tree = parse_object(data, "a snapshot file")
    return Snapshot(
        required(tree, "id", int),
        required(tree, "schemaId", int),
        (file_name(required(tree, "baseManifestList", str)), file_name(required(tree, "deltaManifestList", str))),
        tree,
    )


def build_snapshot(record: Mapping[str, Any]) -> bytes:
    """A snapshot file of these fields, laid out as Paimon's JSON writer does."""
    return json.dumps(record, indent=2, separators=(",", " : ")).encode()
