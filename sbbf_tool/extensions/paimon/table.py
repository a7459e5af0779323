"""How the directory of a table leads to its data files (the specification's "Snapshot", "Manifest",
"Data File").

    <table>/snapshot/LATEST, snapshot-<id>     one state of the table: its two manifest lists
    <table>/schema/schema-<id>                 columns, keys, options
    <table>/manifest/<name>                    manifest lists and manifests
    <table>/[<key>=<value>/...]bucket-<n>/     data files and their .index files
    <table>/branch/branch-<name>/              snapshot/ and schema/ of a branch; manifests and data
                                               are with those of the table

A data file with an external path is stored there, as is its `.index` file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.files import (
    LARGEST_METADATA,
    ConfinedFiles,
    FileIO,
    OutsideError,
    join,
    list_names,
    parent,
    parse_file,
)
from sbbf_tool.extensions.paimon.index_container import Container, parse_container
from sbbf_tool.extensions.paimon.index_options import parse_boolean
from sbbf_tool.extensions.paimon.manifest import (
    DataFile,
    ManifestEntry,
    live_entries,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.paimon.partition import (
    DEFAULT_NAME,
    Value,
    build_segments,
    display_value,
    escape,
    parse_row,
)
from sbbf_tool.extensions.paimon.snapshots import (
    branch_root,
    list_schema_ids,
    read_schema,
    read_snapshot,
    snapshot_path,
)
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    PaimonSnapshot,
    TableSchema,
)
from sbbf_tool.frozen import Frozen
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage.folders import LocalFolders

POSTPONE_BUCKET = -2
PATH_DIRECTORY = "data-file.path-directory"
EXTERNAL_PATHS = "data-file.external-paths"


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Data file in one snapshot of the table."""

    entry: ManifestEntry
    partition: tuple[tuple[str, DataType, Value], ...]
    """The partition columns, their types and their values."""
    directory: str
    """The directory of the data file and its `.index` file."""
    outside: str | None = None
    """Why the file is skipped: the table may not refer to it. An index in its manifest is used."""

    @property
    def file(self) -> DataFile:
        return self.entry.file

    @property
    def path(self) -> str:
        return join(self.directory, self.file.name)

    @property
    def partition_text(self) -> str:
        """Partition for display, such as `dt=2024-02-29/hour=3`; empty without partition keys."""
        segments = [
            f"{key}={display_value(value, data_type)}" for key, data_type, value in self.partition
        ]
        return "/".join(segments)


@dataclass(eq=False)
class PaimonTable:
    """Table at one of its snapshots. Files are read on access; schemas are cached."""

    files: ConfinedFiles
    path: str
    snapshot: PaimonSnapshot | None
    """None for a table without commits."""
    schema: TableSchema
    """The schema with the current column names: the latest, or that of the snapshot if a number
    was given."""
    branch: str | None

    @property
    def snapshot_id(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.id

    @cached_property
    def _schemas(self) -> dict[int, TableSchema]:
        return {self.schema.id: self.schema}

    def schema_of(self, file: DataFile) -> TableSchema:
        """Return the schema of a data file, whose column names its index uses.

        Raises UnreadableError when the schema is missing.
        """
        if file.schema_id not in self._schemas:
            root = branch_root(self.path, self.branch)
            self._schemas[file.schema_id] = read_schema(self.files, root, file.schema_id)
        return self._schemas[file.schema_id]

    def manifest_names(self) -> Iterator[str]:
        """Yield the names of the manifests, base list before delta list.

        Raises UnreadableError if a manifest is listed twice.
        """
        if self.snapshot is None:
            return
        names = set()
        for list_name in self.snapshot.manifest_lists:
            path = self.manifest_path(list_name)
            for name, _ in parse_file(self.files, path, parse_manifest_list):
                if name in names:
                    raise UnreadableError(
                        f"manifest {name} appears twice in the manifest lists", file=path
                    )
                names.add(name)
                yield name

    def manifest_path(self, name: str) -> str:
        return join(self.path, "manifest", name)

    def entries(self) -> Iterator[ManifestEntry]:
        """Yield the entries of all manifests of the snapshot."""
        for name in self.manifest_names():
            yield from parse_file(self.files, self.manifest_path(name), parse_manifest)

    @cached_property
    def live_files(self) -> tuple[IndexedFile, ...]:
        """Data files of the snapshot, in the order in which they were added."""
        return tuple(map(self._build_live_file, live_entries(self.entries())))

    def _build_live_file(self, entry: ManifestEntry) -> IndexedFile:
        keys = self.schema.partition_keys
        types = self.schema.partition_types
        try:
            values = parse_row(entry.partition, types) if keys else ()
        except UnreadableError as error:
            raise UnreadableError(
                f"the partition of {entry.file.name} cannot be read: {error.message}",
                file=self.path,
            ) from None
        external = entry.file.external_path
        directory = self._find_directory(entry, values) if external is None else parent(external)
        partition = tuple(zip(keys, types, values, strict=True))
        live = IndexedFile(entry, partition, directory)
        if self.files.allow_outside:
            return live
        return replace(live, outside=self._why_outside(live))

    def _why_outside(self, live: IndexedFile) -> str | None:
        """Return why the table may not refer to this file; None if it may."""
        external = live.file.external_path
        if external is not None:
            roots = self.schema.options.get(EXTERNAL_PATHS, "").split(",")
            if not is_below(external, roots):
                return (
                    f"the external path {redact(external)} is not below the table's "
                    f"{EXTERNAL_PATHS}"
                )
        try:
            place = self.files.find_outside_place(live.path)
        except OSError as error:
            return f"the path cannot be resolved: {error.strerror}"
        except ValueError as error:
            return f"the path cannot be resolved: {error}"
        return None if place is None else f"the file is outside the table, at {place}"

    def _find_directory(self, entry: ManifestEntry, values: tuple[Value, ...]) -> str:
        options = self.schema.options
        keys = self.schema.partition_keys
        segments = build_segments(
            keys,
            self.schema.partition_types,
            values,
            options.get("partition.default-name", DEFAULT_NAME),
            parse_boolean(options, "partition.legacy-name", default=True),
        )
        levels = list(zip(keys, segments, strict=True))
        bucket = f"bucket-{entry.bucket}"
        if entry.bucket == POSTPONE_BUCKET:
            bucket = "bucket-postpone"
        root = join(self.path, _check_path_directory(self.path, options))
        directory = self._search(root, levels, bucket, entry.file.name)
        return join(root, bucket) if directory is None else directory

    def _search(
        self, directory: str, levels: Sequence[tuple[str, str | None]], bucket: str, name: str
    ) -> str | None:
        """Find the bucket with the data file `name` below `directory`.

        `levels` are the keys and names of the partition's directories. If the name of one is
        unknown, the file is searched for, whose name is unique.
        """
        if not levels:
            return join(directory, bucket)
        key, segment = levels[0]
        inner_levels = levels[1:]
        if segment is not None:
            return self._search(join(directory, segment), inner_levels, bucket, name)
        prefix = f"{escape(key)}="
        for candidate in list_names(self.files, directory):
            if candidate.startswith(prefix):
                with suppress(OutsideError):
                    place = self._search(join(directory, candidate), inner_levels, bucket, name)
                    if place is not None and name in list_names(self.files, place):
                        return place
        return None


def _check_path_directory(path: str, options: Mapping[str, str]) -> str:
    """Return the directory of the data, relative to the table's.

    Raises RefusedError if the option leads out of the table.
    """
    directory = options.get(PATH_DIRECTORY, "")
    if directory.startswith("/") or ":" in directory or ".." in directory.split("/"):
        raise RefusedError(
            f"option {PATH_DIRECTORY} leads out of the table: {directory}", file=path
        )
    return directory


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path or address is textually below one of these roots.

    A path that contains `..` is below none.
    """
    plain_path = _without_scheme(path)
    if ".." in plain_path.split("/"):
        return False
    for root in roots:
        plain_root = _without_scheme(root.strip()).rstrip("/")
        if root.strip() and plain_path.startswith(f"{plain_root}/"):
            return True
    return False


def _without_scheme(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")


def open_table(
    files: FileIO | None,
    table: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
) -> PaimonTable:
    """Open a table at its latest snapshot, or at the snapshot with this number.

    The table is by default on the local file system. Files outside its directory are skipped, with
    the reason, unless `allow_outside` allows reading them. Raises UnreadableError if the directory
    is not a table or lacks the schema of the snapshot, and UsageError if the table has no such
    snapshot.
    """
    path = os.fsdecode(table).rstrip("/") or "/"
    root = branch_root(path, branch)
    files = ConfinedFiles(files or LocalFolders(), path, allow_outside)
    state = read_snapshot(files, root, snapshot)
    # Schemas are listed after the snapshot is read, because a schema is written before the snapshot
    # that refers to it.
    schema_ids = list_schema_ids(files, root)
    if not schema_ids:
        raise UnreadableError("not a Paimon table: there is no schema/schema-<number>", file=root)
    if state is None and snapshot is not None:
        raise UsageError(f"there is no snapshot {snapshot}", file=path)
    if state is not None and state.schema_id not in schema_ids:
        raise UnreadableError(
            f"the snapshot refers to schema-{state.schema_id}, which does not exist",
            file=snapshot_path(root, state.id),
        )
    schema_id = max(schema_ids)
    if state is not None and snapshot is not None:
        schema_id = state.schema_id
    schema = read_schema(files, root, schema_id)
    _check_path_directory(path, schema.options)
    return PaimonTable(files, path, state, schema, branch)


EMBEDDED = "embedded"
FILE = "file"
NONE = "none"


class FileIndex(Frozen):
    """Index of a data file, as Paimon finds it (io/FileIndexEvaluator.java).

    An index in the manifest comes before one in an `.index` file.
    """

    place: str
    """EMBEDDED in the manifest, in a FILE beside the data file, or NONE."""
    path: str | None
    """Path of the `.index` file, if the index is in a file."""
    container: Container | None
    """None when there is no index, or it cannot be used."""
    problem: str | None = None
    """Why an existing index cannot be used. Paimon's reader fails on such a file."""
    is_damaged: bool = False
    """Whether the index itself is missing, contradicts the format or occurs twice; False if only
    reading it failed."""


def find_index(files: FileIO, live: IndexedFile) -> FileIndex:
    """Find the index of a data file; a defect of the index is returned as `problem`, not raised."""
    file = live.file
    if file.embedded_index is not None:
        return _parse_index(EMBEDDED, None, file.embedded_index)
    if not file.index_files:
        return FileIndex(NONE, None, None)
    if len(file.index_files) > 1:
        names = ", ".join(file.index_files)
        problem = (
            f"the data file has {len(file.index_files)} index files, but Paimon "
            f"supports one: {names}"
        )
        return FileIndex(FILE, None, None, problem, is_damaged=True)
    path = join(live.directory, file.index_files[0])
    if live.outside is not None:
        return FileIndex(FILE, path, None, live.outside)
    try:
        data = read_metadata(files, path, LARGEST_METADATA)
    except UnreadableError as error:
        # An error of the storage is the cause of one that it raised; a missing file has no cause.
        return FileIndex(FILE, path, None, error.with_place, is_damaged=error.__cause__ is None)
    return _parse_index(FILE, path, data)


def _parse_index(place: str, path: str | None, data: bytes) -> FileIndex:
    try:
        return FileIndex(place, path, parse_container(data))
    except UnreadableError as error:
        return FileIndex(place, path, None, error.with_place, is_damaged=True)
