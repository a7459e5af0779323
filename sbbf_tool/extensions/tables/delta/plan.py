"""The actions of a commit that replaces files by copies with the same rows (PROTOCOL.md, "Actions").

Everything that the log records of a file is carried to its copy, which has the same rows at the same positions: statistics, tags, the
deletion vector, row ids. No action changes data (`dataChange` is false), so streams and change feeds skip the commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sbbf_tool.extensions.tables.delta.actions import Action, build_actions
from sbbf_tool.extensions.tables.delta.paths import replace_name
from sbbf_tool.extensions.tables.delta.snapshot import FileEntry
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.running.table import Change

_CARRIED_BY_REMOVE = ("partitionValues", "size", "stats", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_ROW_IDS = ("baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit records about itself. Times are in milliseconds since 1970."""

    read_version: int
    time_ms: int
    transaction: str
    engine: str
    in_commit_ms: int | None = None
    """The time that the log records for the version, if the table has in-commit timestamps."""


def build_commit(
    replacements: Sequence[tuple[FileEntry, Replacement]], change: Change, info: CommitInfo, properties: Mapping[str, str]
) -> bytes:
    """Return the bytes of a commit. Each entry has its whole action."""
    actions: list[tuple[str, Action]] = [("commitInfo", _commit_info(len(replacements), change, info, properties))]
    actions += [("remove", _remove(entry, info.time_ms)) for entry, _ in replacements]
    drops_row_ids = properties.get("delta.rowTrackingSuspended", "").lower() == "true"
    actions += [("add", _add(entry, replacement, drops_row_ids)) for entry, replacement in replacements]
    return build_actions(actions)


def _commit_info(count: int, change: Change, info: CommitInfo, properties: Mapping[str, str]) -> Action:
    fields: Action = {} if info.in_commit_ms is None else {"inCommitTimestamp": info.in_commit_ms}
    fields |= {
        "timestamp": info.time_ms,
        "operation": change.operation,
        "operationParameters": {"columns": json.dumps(change.columns)},
        "readVersion": info.read_version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {"numAddedFiles": str(count), "numRemovedFiles": str(count)},
        "engineInfo": info.engine,
        "txnId": info.transaction,
    }
    if properties.get("delta.enableRowTracking", "").lower() == "true":
        fields["tags"] = {"delta.rowTracking.preserved": "true"}
    return fields


def _remove(entry: FileEntry, time_ms: int) -> Action:
    assert entry.action is not None
    carried = {name: entry.action[name] for name in _CARRIED_BY_REMOVE if entry.action.get(name) is not None}
    return {"path": entry.path, "deletionTimestamp": time_ms, "dataChange": False, "extendedFileMetadata": True, **carried}


def _add(entry: FileEntry, replacement: Replacement, drops_row_ids: bool) -> Action:
    assert entry.action is not None
    fields = {name: field for name, field in entry.action.items() if not (drops_row_ids and name in _ROW_IDS)}
    return fields | {
        "path": replace_name(entry.path, replacement.new_path.rpartition("/")[2]),
        "size": replacement.new_bytes,
        "modificationTime": replacement.modified_ms,
        "dataChange": False,
    }
