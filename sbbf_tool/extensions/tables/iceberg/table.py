"""`IcebergTable`: the current snapshot of the branch `main`, and the commit that replaces its data
files by copies. Other branches, and tags, keep their files.

The manifests are written first, under new names; the commit takes effect when the source has the
new snapshot. If another commit comes first, the new manifests are removed, and the commit is
planned again. After a commit whose outcome is unknown, no file is removed: the table is loaded
again, and the snapshot is looked for. Each attempt requires that `main` is still where it was, so
at most one of them succeeds.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any

from sbbf_tool import log
from sbbf_tool.errors import ErrorPlace, RefusedError, SbbfError, UncertainWriteError, WriteError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.iceberg import scan
from sbbf_tool.extensions.tables.iceberg.carried_deletes import Copied, carry_deletes
from sbbf_tool.extensions.tables.iceberg.catalog import load_source
from sbbf_tool.extensions.tables.iceberg.commit_plan import (
    EntryChange,
    EntryChanges,
    ManifestRewrite,
    NewSnapshot,
    build_manifest_list,
    build_snapshot,
    rewrite_manifest,
)
from sbbf_tool.extensions.tables.iceberg.deletes import DataFileKey, DeleteIndex, data_file
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.manifest import DATA, DELETES, EntryId, ManifestFile
from sbbf_tool.extensions.tables.iceberg.metadata import read_clock
from sbbf_tool.extensions.tables.iceberg.schema import build_column_names, leaves
from sbbf_tool.extensions.tables.iceberg.source import (
    CommitConflictError,
    CommitStateUnknownError,
    MetadataSource,
    TableState,
    identity,
    is_below,
    is_local,
    join,
    location_of,
    open_name,
    parent,
)
from sbbf_tool.extensions.tables.lake_table import FolderOfTable, LakeTable, Replacement
from sbbf_tool.parquet.columns import quote
from sbbf_tool.running.table import (
    Change,
    Commit,
    LiveFile,
    NewFiles,
    attempts,
    change_properties,
    overtaken_error,
)

_ATTEMPTS = 20
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0
"""Seconds; the wait doubles per attempt."""


def ensure_changeable(source: MetadataSource, state: TableState) -> None:
    """Raise RefusedError if no commit can be made to a table in this state."""
    snapshot = state.metadata.current
    source.ensure_changeable(state)
    is_encrypted = snapshot is not None and snapshot.key_id is not None
    if is_encrypted or "encryption.key-id" in state.metadata.properties:
        raise RefusedError(
            "the table is encrypted with table encryption, which is not supported", file=source.name
        )
    if snapshot is not None and snapshot.manifest_list is None:
        raise RefusedError(
            "the snapshot has no manifest list, as very old writers made them",
            file=source.name,
            hint="rewrite the manifests first",
        )


class Publication:
    """The commit of these copies or, without any, of the properties alone; it lives for one call of
    `run`."""

    def __init__(
        self, source: MetadataSource, replacements: Sequence[Replacement], change: Change
    ) -> None:
        self._source = source
        self._change = change
        self._pending = {identity(copy.old_path): copy for copy in replacements}
        self._files_of_manifest: dict[str, tuple[DataFileKey, ...]] = {}
        """The pending files that a manifest has, by its path: a manifest never changes."""
        self._doubtful: dict[int, Commit] = {}
        """Commits whose outcome is unknown, by snapshot id."""
        self._doubt = ""

    def run(self) -> Commit:
        """Commit. See `Table.commit`."""
        for attempt in attempts(_ATTEMPTS, _FIRST_WAIT, _LONGEST_WAIT):
            try:
                state = self._source.load()
                for number, commit in self._doubtful.items():
                    if number in state.metadata.snapshots:
                        return commit
                ensure_changeable(self._source, state)
                return self._attempt(state, attempt)
            except CommitConflictError:
                log.info("another commit to %s came first", self._source.name)
            except CommitStateUnknownError as error:
                self._doubt = str(error)
                log.info("the outcome of a commit to %s is unknown: %s", self._source.name, error)
            except SbbfError as error:
                if (self._doubtful or self._doubt) and not isinstance(error, UncertainWriteError):
                    raise self._uncertain(error.message) from error
                raise
        if self._doubtful or self._doubt:
            raise self._uncertain()
        raise overtaken_error(_ATTEMPTS, self._source.name)

    def _uncertain(self, reason: str = "") -> UncertainWriteError:
        numbers = " or ".join(map(str, self._doubtful))
        hint = "look at the properties of the table"
        if numbers:
            hint = f"look for snapshot {numbers} in the table's history"
        return UncertainWriteError(
            f"it is unknown whether the commit succeeded ({self._doubt or reason})",
            file=self._source.name,
            hint=hint,
        )

    def _attempt(self, state: TableState, attempt: int) -> Commit:
        """Commit to the table in this state. Raises CommitConflictError and
        CommitStateUnknownError, after which another attempt may succeed."""
        metadata = state.metadata
        snapshot = metadata.current
        if not self._pending:
            self._set_properties(state)
            return Commit("no snapshot", 0)
        if snapshot is None:
            old_paths = tuple(copy.old_path for copy in self._pending.values())
            return Commit("no snapshot", 0, old_paths, attempt)
        header, manifests = scan.read_manifest_list(state, snapshot)
        deletes = scan.read_deletes(state, manifests)
        files = self._find_present(state, manifests, deletes)
        copies = {file.location: self._copy(state, file) for file in files.values()}
        pending = self._pending.items()
        vanished = tuple(copy.old_path for key, copy in pending if key not in files)
        if header is None or not files:
            return Commit(f"snapshot {snapshot.id}", 0, vanished, attempt)
        new = NewSnapshot.after(metadata, _choose_id(metadata.snapshots), read_clock())
        undo = self._source.undo(snapshot.id)
        commit = Commit(f"snapshot {new.id}", len(files), vanished, attempt, undo)
        with NewFiles(state.files) as scratch:
            create = partial(_create, scratch, state)
            find_live = partial(scan.find_live, state, manifests)
            carried = carry_deletes(deletes, copies, metadata.format_version, find_live, create)
            commit = commit._replace(new_names=scratch.names())
            changes = {DATA: self._replace_files(copies.values()), DELETES: carried}
            record = self._write_snapshot(state, header, manifests, changes, new, attempt, create)
            self._publish(state, record, commit, scratch)
        log.info("committed snapshot %s of %s", new.id, self._source.name)
        return commit

    def _set_properties(self, state: TableState) -> None:
        properties = self._change.properties
        before = state.metadata.properties
        if change_properties(before, properties) != before:
            self._source.commit(state, None, properties)

    def _write_snapshot(
        self,
        state: TableState,
        header: AvroHeader,
        manifests: Sequence[ManifestFile],
        changes: Mapping[int, EntryChanges],
        new: NewSnapshot,
        attempt: int,
        create: Callable[[str, bytes], None],
    ) -> dict[str, Any]:
        """Write the manifests with these changes and the manifest list; return the record of the
        snapshot."""
        metadata = state.metadata
        names = f"{uuid.uuid4()}"
        records: dict[str, dict[str, Any]] = {}
        rewrites: dict[str, ManifestRewrite] = {}
        for file in manifests:
            changed = changes[file.content]
            if changed.keys().isdisjoint(self._entry_ids(state, file)):
                continue
            manifest = scan.open_manifest(state, file)
            data, record, numbers = rewrite_manifest(manifest, changed, new)
            location = join(state.metadata_folder, f"{names}-manifest{len(records)}.avro")
            create(location, data)
            record |= {"manifest_path": location, "manifest_length": len(data)}
            records[file.path] = record
            rewrites[file.path] = numbers
        assert metadata.current is not None
        with ErrorPlace(metadata.current.manifest_list):
            data, rows = build_manifest_list(metadata, header, manifests, records, new)
        location = join(state.metadata_folder, f"snap-{new.id}-{attempt}-{names}.avro")
        create(location, data)
        return build_snapshot(metadata, [*rewrites.values()], new, location, rows, self._change)

    def _entry_ids(self, state: TableState, manifest: ManifestFile) -> Iterator[EntryId]:
        """Yield the ids of the entries of a manifest that a commit may replace."""
        if manifest.content == DATA:
            for file in self._pending_files(state, manifest):
                yield file.key, None
        else:
            for entry in scan.iter_live(scan.open_manifest(state, manifest)):
                yield entry.id

    def _publish(
        self, state: TableState, record: Mapping[str, Any], commit: Commit, scratch: NewFiles
    ) -> None:
        """Commit the snapshot of this record; the new manifests are kept if it may refer to
        them."""
        number = record["snapshot-id"]
        scratch.keep = True  # from here on a snapshot may refer to them
        self._doubtful[number] = commit
        try:
            self._source.commit(state, record, self._change.properties)
        except (CommitStateUnknownError, UncertainWriteError):
            raise
        except (CommitConflictError, SbbfError):
            # A proxy may have repeated a request that succeeded, which is then in conflict with
            # itself, or refused its answer.
            if number not in self._source.load().metadata.snapshots:
                del self._doubtful[number]
                scratch.keep = False
                raise

    def _find_present(
        self, state: TableState, manifests: Sequence[ManifestFile], deletes: DeleteIndex
    ) -> dict[str, DataFileKey]:
        """Return the pending files that are in the table and can be replaced, by their identity."""
        counts = Counter[str]()
        files = {}
        for manifest in manifests:
            if manifest.content == DATA:
                for file in self._pending_files(state, manifest):
                    counts[file.key] += 1
                    files[file.location] = file
        left_out = deletes.why_not_carried(files, state.metadata.format_version)
        present = {}
        for location, file in files.items():
            if counts[file.key] == 1 and location not in left_out:
                present[file.key] = file
        return present

    def _pending_files(self, state: TableState, manifest: ManifestFile) -> tuple[DataFileKey, ...]:
        """Return the pending files that a manifest has."""
        if manifest.path not in self._files_of_manifest:
            entries = scan.iter_live(scan.open_manifest(state, manifest))
            self._files_of_manifest[manifest.path] = tuple(
                data_file(manifest.spec_id, entry)
                for entry in entries
                if entry.key in self._pending and scan.why_unchangeable(entry) is None
            )
        return self._files_of_manifest[manifest.path]

    def _copy(self, state: TableState, file: DataFileKey) -> Copied:
        """Return the copy of a pending file with its location, as the table spells its folders."""
        folders = (parent(file.location), state.data_folder)
        return Copied(file, location_of(self._pending[file.key].new_path, folders))

    def _replace_files(self, copies: Iterable[Copied]) -> EntryChanges:
        """Return what becomes of the entries of data files."""
        changes: dict[EntryId, EntryChange] = {}
        for file, new_location in copies:
            new_bytes = self._pending[file.key].new_bytes
            fields = {"file_path": new_location, "file_size_in_bytes": new_bytes}
            changes[file.key, None] = EntryChange(True, (fields,))
        return changes


def _choose_id(snapshots: Mapping[int, object]) -> int:
    while True:
        number = secrets.randbits(63)
        if number and number not in snapshots:
            return number


def _create(scratch: NewFiles, state: TableState, location: str, data: bytes) -> None:
    """Create a file. Raises RefusedError without permission, and WriteError."""
    with ErrorPlace(state.location):
        path = open_name(location)
    try:
        scratch.create(path, data)
    except PermissionError as error:
        raise RefusedError(
            f"cannot be written: {error.strerror or error}", file=location
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WriteError(f"cannot be written: {reason}", file=location) from error


class IcebergTable(LakeTable):
    """One version of an Iceberg table. See `Table`."""

    format = "Iceberg"
    old_files_stay = "until their snapshots expire"
    takes_properties = True

    def __init__(self, source: MetadataSource) -> None:
        self._source = source
        self._state = source.load()
        metadata = self._state.metadata
        with ErrorPlace(self._state.location):
            self.name = source.name
            self.location = open_name(metadata.location)
            self._folder = FolderOfTable(self.location)
            self.version = f"snapshot {metadata.current.id}" if metadata.current else "no snapshot"
            self.properties = metadata.properties
            self.columns = build_column_names(metadata.schema, metadata.properties)
            self.partition_types = scan.partition_texts(metadata).types
            self.why_unchangeable = source.why_unchangeable
            self.undo_lacks_names = source.undo_lacks_names
            self.access = source.access
            self._full_names = {leaf.name: leaf.path for leaf in leaves(metadata.schema)}

    @property
    def marker_folder(self) -> str:
        # Stores for tables alone take only files of data and of metadata.
        with ErrorPlace(self._state.location):
            return open_name(self._state.data_folder)

    def column_of_property(self, name: str) -> str:
        """Return the name of the column: Iceberg counts `element` of a list as a part of the
        name."""
        return quote(self._full_names[name]) if name in self._full_names else name

    def name_for_property(self, column: str) -> str:
        path = self.columns.path_of(column)
        for name, full_path in self._full_names.items():
            if full_path == path:
                return name
        return column

    def live_files(self) -> Sequence[LiveFile]:
        # Some files of deletes are read.
        with self.access.through():
            return [
                file._replace(unchangeable=file.unchangeable or self._find_link_out(file))
                for file in scan.list_live_files(self._state)
            ]

    def all_files(self) -> tuple[Iterable[LiveFile], AbstractSet[str]]:
        with self.access.through():
            return scan.list_all_files(self._state)

    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        ensure_changeable(self._source, self._state)

    def copy_path(self, file: LiveFile, name: str) -> str:
        """Return the path beside the file, or in the table's folder of data if the file is outside
        the table, also by a link. A local folder is created."""
        folder = self._folder_of_copy(file)
        if is_local(folder):
            with suppress(OSError):  # the writer of the copy reports the error
                os.makedirs(folder, exist_ok=True)
        return join(folder, name)

    def _folder_of_copy(self, file: LiveFile) -> str:
        if is_below(file.path, self.location) and not self._folder.find_link_out(file.path):
            return parent(file.path)
        with ErrorPlace(self._state.location):
            return open_name(self._state.data_folder)

    def _find_link_out(self, file: LiveFile) -> str | None:
        """Return that the copy would be written outside of the table through a link in its folder;
        a folder that a property names may be anywhere."""
        path = join(self._folder_of_copy(file), "copy")
        if not is_below(path, self.location):
            return None
        target = self._folder.find_link_out(path)
        return target and f"a link in its path leads out of the table's folder, to {target}"

    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        with self.access.through():
            return Publication(self._source, replacements, change).run()

    def paths_of_versions(self) -> Iterator[str]:
        return scan.paths_of_snapshots(self._source.load())


def open_folder(name: str) -> IcebergTable:
    """Open the table in a folder, or below a URL. Raises UnreadableError."""
    return IcebergTable(FolderSource(name))


def open_in_catalog(name: str) -> IcebergTable:
    """Open a table by `CATALOG:NAMESPACE.TABLE`, through PyIceberg. Raises UnreadableError, and
    UsageError without PyIceberg."""
    return IcebergTable(load_source(name))
