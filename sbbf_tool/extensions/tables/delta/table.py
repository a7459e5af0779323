"""A Delta table: its live files, and the commit that replaces them by copies with the same rows
(PROTOCOL.md, "Actions").

Everything that the log records of a file is carried to its copy, which has the same rows at the
same positions: statistics, tags, the deletion vector, row ids. No action changes data (`dataChange`
is false), so streams and change feeds skip the commit.

A commit creates the file of the next version only if no other writer has. If one has, the commit is
built again from the newest version: files that are gone are left out, a file whose deletion vector
grew gets the newest one, features are checked again. So no check for conflicts is needed, and no
row is lost or doubled.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

import sbbf_tool
from sbbf_tool import log as messages
from sbbf_tool.display import redact
from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.delta.actions import (
    Action,
    build_actions,
    decode,
    is_absolute,
    leads_out,
    locate,
    parse_vector,
    replace_name,
    texts_of,
)
from sbbf_tool.extensions.tables.delta.log import Log
from sbbf_tool.extensions.tables.delta.snapshot import DeltaMetadata, DeltaSnapshot, FileEntry
from sbbf_tool.extensions.tables.lake_table import FolderOfTable, LakeTable, Replacement
from sbbf_tool.file.table_file import Deletes
from sbbf_tool.frozen import replace
from sbbf_tool.records import optional, required
from sbbf_tool.running.table import Change, Commit, LiveFile, attempts, overtaken_error
from sbbf_tool.storage import places

_CARRIED_BY_REMOVE = (
    "partitionValues",
    "size",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)
_ROW_IDS = ("baseRowId", "defaultRowCommitVersion")


def _remove(entry: FileEntry, time_ms: int) -> Action:
    assert entry.action is not None
    remove: Action = {
        "path": entry.path,
        "deletionTimestamp": time_ms,
        "dataChange": False,
        "extendedFileMetadata": True,
    }
    for name in _CARRIED_BY_REMOVE:
        if entry.action.get(name) is not None:
            remove[name] = entry.action[name]
    return remove


def _add(entry: FileEntry, replacement: Replacement, drops_row_ids: bool) -> Action:
    assert entry.action is not None
    fields = dict(entry.action)
    if drops_row_ids:
        for name in _ROW_IDS:
            fields.pop(name, None)
    return fields | {
        "path": replace_name(entry.path, replacement.new_path.rpartition("/")[2]),
        "size": replacement.new_bytes,
        "modificationTime": replacement.modified_ms,
        "dataChange": False,
    }


_ATTEMPTS = 100
_FIRST_WAIT = 0.01
_LONGEST_WAIT = 0.5
"""Seconds; the wait doubles per attempt."""
_SUSPENDED = "delta.rowTrackingSuspended"
_TIMESTAMPS = ("delta.enableInCommitTimestamps", "delta.enableInCommitTimestamps-preview")


class DeltaTable(LakeTable):
    """The newest version of a Delta table, read when the object is made."""

    format = "Delta"
    old_files_stay = "until VACUUM deletes them"

    def __init__(self, name: str) -> None:
        """Read the table. Raises UnreadableError, and RefusedError for features that change how its
        log is read."""
        self.name = name
        self.location = places.absolute(name).rstrip("/")
        self._folders = places.open_folders(self.location)
        self._log = Log(self._folders, self.location)
        self._conditional_put = self._is_exclusive = False
        with ErrorPlace(self.location):
            self._snapshot = self._log.read()
            _, metadata = self._snapshot.ensure_complete()
        self.version = f"version {self._snapshot.version}"
        self.properties = metadata.properties
        self.columns = metadata.schema.names
        self.partition_columns = frozenset((name,) for name in metadata.partition_columns)
        types = metadata.schema.types
        with_type = [name for name in metadata.partition_columns if name in types]
        self.partition_types = {name: types[name] for name in with_type}

    def live_files(self) -> Iterator[LiveFile]:
        """Yield the data files of this version, in the order of the log."""
        _, metadata = self._snapshot.ensure_complete()
        counts = Counter(path for path, _ in self._snapshot.files)
        reasons = _Reasons(self._snapshot, self.location)
        partitions = {}
        for (path, _), entry in self._snapshot.files.items():
            if id(entry.partition) not in partitions:
                partitions[id(entry.partition)] = _name_partition(metadata, entry.partition)
            if counts[path] == 1:
                reason = reasons.of(entry)
            else:
                reason = "the log lists the file more than once"
            deletes: tuple[Deletes, ...] = ()
            if entry.vector is not None:
                deletes = (parse_vector(entry.vector, self.location),)
            yield LiveFile(
                locate(self.location, entry.path),
                entry.bytes,
                partitions[id(entry.partition)],
                reason,
                deletes=deletes,
            )

    def all_files(self) -> tuple[Iterator[LiveFile], AbstractSet[str]]:
        return chain(self.live_files(), self._old_files()), frozenset()

    def _old_files(self) -> Iterator[LiveFile]:
        """Yield the files that any retained version has added or removed."""
        _, metadata = self._snapshot.ensure_complete()
        partitions: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = {}
        names = frozenset(metadata.partition_columns)
        # A removal need not say which partition the file had.
        columns = replace(self.columns, defaults=self.columns.defaults | self.partition_columns)
        with ErrorPlace(self.location):
            for fields in self._log.all_files():
                values = tuple(texts_of(fields, "partitionValues").items())
                partition = partitions.setdefault(values, _name_partition(metadata, dict(values)))
                unknown = names - partition.keys()
                yield LiveFile(
                    locate(self.location, required(fields, "path", str)),
                    optional(fields, "size", int),
                    partition,
                    columns=columns if unknown else None,
                    unknown=unknown,
                    is_live=False,
                )

    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        """Raise RefusedError, with the feature's name, if no commit can be made to this table."""
        self._conditional_put = conditional_put
        with ErrorPlace(self.location):
            self._snapshot.ensure_changeable()
            target = FolderOfTable(self.location).find_link_out(f"{self._log.path}/")
            if target is not None:
                raise RefusedError(
                    f"_delta_log is a link that leads out of the table's folder, to {target}",
                    hint="name the table by the folder that has its log",
                )
            if self.location.startswith(("s3://", "s3a://", "s3n://")) and not conditional_put:
                raise RefusedError(
                    "on S3, a commit is safe only if all writers of the table create log entries "
                    "by conditional PUT requests, which Delta Spark does not do by default: a "
                    "concurrent commit could replace the other one",
                    hint="if all writers do, confirm it by allowing conditional-put",
                )

    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        """Replace files in one commit in which no row changes: see `Table.commit`."""
        by_path = {replacement.old_path: replacement for replacement in replacements}
        with ErrorPlace(self.location):
            return self._commit(by_path, change)

    def paths_of_versions(self) -> Iterator[str]:
        """Yield the paths of all files in the log, also of those whose removal it records."""
        with ErrorPlace(self.location):
            for fields in self._log.all_files():
                yield decode(required(fields, "path", str))

    def _commit(self, replacements: Mapping[str, Replacement], change: Change) -> Commit:
        self.ensure_changeable(conditional_put=self._conditional_put)
        old_sizes = {
            live.path: live.bytes for live in self.live_files() if live.path in replacements
        }
        transaction = str(uuid.uuid4())

        def is_wanted(path: str) -> bool:
            return locate(self.location, path) in replacements

        newest = self._log.read(is_wanted)
        for attempt in attempts(_ATTEMPTS, _FIRST_WAIT, _LONGEST_WAIT):
            if attempt and not self._log.follow(newest):
                newest = self._log.read(is_wanted)
            newest.ensure_changeable()
            pairs = self._pair(newest, replacements, old_sizes)
            vanished = tuple(path for path in replacements if path not in pairs)
            if not pairs:
                return Commit(f"version {newest.version}", 0, vanished, attempt)
            data = self._build(newest, list(pairs.values()), change, transaction)
            if not self._is_exclusive:
                self._folders.ensure_exclusive(self.location)
                self._is_exclusive = True
            version = newest.version + 1
            if self._log.create(version, data, transaction):
                messages.info("committed version %s of %s", version, redact(self.location))
                quoted = self.location.replace("`", "``")
                undo = f"RESTORE TABLE delta.`{quoted}` TO VERSION AS OF {newest.version}"
                return Commit(f"version {version}", len(pairs), vanished, attempt, undo)
        raise overtaken_error(_ATTEMPTS, self.location)

    def _pair(
        self,
        newest: DeltaSnapshot,
        replacements: Mapping[str, Replacement],
        old_sizes: Mapping[str, int | None],
    ) -> dict[str, tuple[FileEntry, Replacement]]:
        """Return the files that are still live and can be replaced, by their paths."""
        reasons = _Reasons(newest, self.location)
        pairs = {}
        twice = set()
        for entry in newest.files.values():
            if entry.action is None:
                continue
            path = locate(self.location, entry.path)
            if path in pairs:
                twice.add(path)
            # A file of the same name but another size is not the one that was copied.
            is_copied = path in replacements and old_sizes.get(path) == entry.bytes
            if is_copied and reasons.of(entry) is None:
                pairs[path] = entry, replacements[path]
        return {path: pair for path, pair in pairs.items() if path not in twice}

    def _build(
        self,
        newest: DeltaSnapshot,
        pairs: Sequence[tuple[FileEntry, Replacement]],
        change: Change,
        transaction: str,
    ) -> bytes:
        """Return the bytes of the commit after `newest`. Each entry has its whole action."""
        _, metadata = newest.ensure_complete()
        properties = metadata.properties
        now = time.time_ns() // 1_000_000
        info: Action = {}
        if any(_is_true(properties, name) for name in _TIMESTAMPS):
            info["inCommitTimestamp"] = max(now, self._last_timestamp(newest.version) + 1)
        info |= {
            "timestamp": now,
            "operation": change.operation,
            "operationParameters": {"columns": json.dumps(change.columns)},
            "readVersion": newest.version,
            "isolationLevel": "SnapshotIsolation",
            "isBlindAppend": False,
            "operationMetrics": {
                "numAddedFiles": str(len(pairs)),
                "numRemovedFiles": str(len(pairs)),
            },
            "engineInfo": f"sbbf/{sbbf_tool.__version__}",
            "txnId": transaction,
        }
        if _is_true(properties, "delta.enableRowTracking"):
            info["tags"] = {"delta.rowTracking.preserved": "true"}
        drops_row_ids = _is_true(properties, _SUSPENDED)
        actions = [("commitInfo", info)]
        actions += [("remove", _remove(entry, now)) for entry, _ in pairs]
        actions += [("add", _add(entry, copy, drops_row_ids)) for entry, copy in pairs]
        return build_actions(actions)

    def _last_timestamp(self, version: int) -> int:
        """Return the timestamp in the commit of a version, in milliseconds since 1970."""
        info = self._log.commit_info(version) or {}
        timestamp = optional(info, "inCommitTimestamp", int)
        if timestamp is None:
            raise UnreadableError(
                f"version {version} has no inCommitTimestamp, although the table requires it"
            )
        return timestamp


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").lower() == "true"


class _Reasons:
    """The reasons why files of a snapshot cannot be replaced."""

    def __init__(self, snapshot: DeltaSnapshot, location: str) -> None:
        self._location = location
        self._folder = FolderOfTable(location)
        protocol, metadata = snapshot.ensure_complete()
        is_suspended = _is_true(metadata.properties, _SUSPENDED)
        self._needs_row_ids = "rowTracking" in protocol.writer_features and not is_suspended

    def of(self, entry: FileEntry) -> str | None:
        if is_absolute(entry.path):
            return "its path is absolute, as in a shallow clone: the file belongs to another table"
        if leads_out(entry.path):
            return "its path leads out of the table's folder"
        target = self._folder.find_link_out(locate(self._location, entry.path))
        if target is not None:
            return f"a link in its path leads out of the table's folder, to {target}"
        if self._needs_row_ids and not entry.has_row_ids:
            return "it has no row ids, although the table has the feature rowTracking"
        return None


def _name_partition(
    metadata: DeltaMetadata, values: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Return partition values by the names that users know. An empty text stands for NULL."""
    names = metadata.schema.logical_names
    return {names.get(name, name): text or None for name, text in values.items()}
