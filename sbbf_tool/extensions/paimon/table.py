"""How the directory of a table leads to its data files (the specification's "Snapshot", "Manifest",
"Data File").

    <table>/snapshot/LATEST, snapshot-<id>     one state of the table: its two manifest lists
    <table>/schema/schema-<id>                 columns, keys, options
    <table>/manifest/<name>                    manifest lists and manifests
    <table>/[<key>=<value>/...]bucket-<n>/     data files and their .index files
    <table>/branch/branch-<name>/              snapshot/ and schema/ of a branch; manifests and data are with those of the table

A data file with an external path is stored there, as is its `.index` file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
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
from sbbf_tool.extensions.paimon.index_options import IndexRequest, parse_boolean
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
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    PaimonSnapshot,
    TableSchema,
    indexed_type,
    parse_snapshot,
    parse_table_schema,
    resolve_column,
)
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import file_name
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage import places
from sbbf_tool.storage.folders import LocalFolders

SNAPSHOT_PREFIX = "snapshot-"
SCHEMA_PREFIX = "schema-"
POSTPONE_BUCKET = -2
PATH_DIRECTORY = "data-file.path-directory"
EXTERNAL_PATHS = "data-file.external-paths"
_MAX_LEVELS = 20
_LARGEST_HINT = 100  # bytes: the file holds a number


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Data file in one snapshot of the table."""

    entry: ManifestEntry
    partition: tuple[tuple[str, DataType, Value], ...]
    """The partition columns, their types and their values."""
    directory: str
    """The directory of the data file and its `.index` file."""
    outside: str | None = None
    """Why the file is skipped: the table may not refer to it. An index in the manifest is still
    used."""

    @property
    def file(self) -> DataFile:
        return self.entry.file

    @property
    def path(self) -> str:
        return join(self.directory, self.file.name)

    @property
    def partition_text(self) -> str:
        """Partition for display, such as `dt=2024-02-29/hour=3`; empty for a table without
        partitions."""
        return "/".join(
            f"{key}={display_value(value, data_type)}" for key, data_type, value in self.partition
        )


@dataclass(eq=False)
class PaimonTable:
    """Table at one of its snapshots. Files are read on access; schemas are cached."""

    files: ConfinedFiles
    path: str
    snapshot: PaimonSnapshot | None
    """None for a table without commits."""
    schema: TableSchema
    """The schema with the current column names: the latest schema, or the schema of the snapshot if
    a snapshot number was given."""
    branch: str | None

    @property
    def snapshot_id(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.id

    @cached_property
    def _schemas(self) -> dict[int, TableSchema]:
        return {self.schema.id: self.schema}

    def schema_of(self, file: DataFile) -> TableSchema:
        """Return the schema of a data file, whose column names its index uses. Raises
        UnreadableError when it is missing."""
        if file.schema_id not in self._schemas:
            self._schemas[file.schema_id] = _read_schema(
                self.files, self.path, self.branch, file.schema_id
            )
        return self._schemas[file.schema_id]

    def manifest_names(self) -> Iterator[str]:
        """Yield the names of the manifests, base list before delta list. Raises UnreadableError if
        a manifest is listed twice."""
        names: set[str] = set()
        for list_name in self.snapshot.manifest_lists if self.snapshot else ():
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
        keys, types = self.schema.partition_keys, self.schema.partition_types
        try:
            values = parse_row(entry.partition, types) if keys else ()
        except UnreadableError as error:
            raise UnreadableError(
                f"the partition of {entry.file.name} cannot be read: {error.message}",
                file=self.path,
            ) from None
        external = entry.file.external_path
        directory = self._find_directory(entry, values) if external is None else parent(external)
        live = IndexedFile(entry, tuple(zip(keys, types, values, strict=True)), directory)
        return live if self.files.allow_outside else replace(live, outside=self._why_outside(live))

    def _why_outside(self, live: IndexedFile) -> str | None:
        """Return why the table may not refer to this file; None if it may."""
        external = live.file.external_path
        if external is not None and not is_below(
            external, self.schema.options.get(EXTERNAL_PATHS, "").split(",")
        ):
            return f"the external path {redact(external)} is not below the table's {EXTERNAL_PATHS}"
        try:
            place = self.files.find_outside_place(live.path)
        except (OSError, ValueError) as error:
            return (
                "the path cannot be resolved: "
                f"{error.strerror if isinstance(error, OSError) else error}"
            )
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
        bucket = "bucket-postpone" if entry.bucket == POSTPONE_BUCKET else f"bucket-{entry.bucket}"
        root = join(self.path, _check_path_directory(self.path, options))
        return self._search(
            root, list(zip(keys, segments, strict=True)), bucket, entry.file.name
        ) or join(root, bucket)

    def _search(
        self, directory: str, levels: list[tuple[str, str | None]], bucket: str, name: str
    ) -> str | None:
        """Find the bucket below `directory`. If a level's name is unknown, search for the data
        file, whose name is unique."""
        if not levels:
            return join(directory, bucket)
        (key, segment), next_levels = levels[0], levels[1:]
        if segment is not None:
            return self._search(join(directory, segment), next_levels, bucket, name)
        for candidate in list_names(self.files, directory):
            if candidate.startswith(escape(key) + "="):
                with suppress(OutsideError):
                    bucket_directory = self._search(
                        join(directory, candidate), next_levels, bucket, name
                    )
                    if bucket_directory is not None and name in list_names(
                        self.files, bucket_directory
                    ):
                        return bucket_directory
        return None


def _check_path_directory(path: str, options: Mapping[str, str]) -> str:
    """Return the directory of the data, relative to the table's. Raises RefusedError if the option
    leads out of the table."""
    directory = options.get(PATH_DIRECTORY, "")
    if directory.startswith("/") or ":" in directory or ".." in directory.split("/"):
        raise RefusedError(
            f"option {PATH_DIRECTORY} leads out of the table: {directory}", file=path
        )
    return directory


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path or address is textually below one of these roots; False if it contains
    `..`."""
    plain_path = path.removeprefix("file://").removeprefix("file:")
    trimmed = (
        root.strip().removeprefix("file://").removeprefix("file:").rstrip("/")
        for root in roots
        if root.strip()
    )
    return ".." not in plain_path.split("/") and any(
        plain_path.startswith(f"{root}/") for root in trimmed
    )


def request_in_file(
    table: PaimonTable, live: IndexedFile, request: IndexRequest
) -> IndexRequest | None:
    """Translate a request from current names to the names and types in the schema of a data file;
    None if the schema lacks it."""
    indexed, field, _ = resolve_column(table.schema, request.column)
    schema = table.schema_of(live.file)
    stored = schema.field_by_id(field.id)
    renamed = replace(indexed, column=stored.name) if stored else None
    data_type = indexed_type(schema, renamed) if renamed else None
    return replace(request, column=str(renamed), type=data_type) if data_type else None


def open_table(
    files: FileIO | None,
    table: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
) -> PaimonTable:
    """Open a table, by default on the local file system, at its latest snapshot, or at the snapshot
    with this number.

    Files outside the table's directory are skipped, with the reason, unless `allow_outside` allows
    reading them. Raises UnreadableError if the directory is not a table or lacks the schema of the
    snapshot, and UsageError if the table has no such snapshot.
    """
    path = os.fsdecode(table).rstrip("/") or "/"
    root = _find_branch_root(path, branch)
    files = ConfinedFiles(files or LocalFolders(), path, allow_outside)
    if snapshot is None:
        number = latest_snapshot_id(files, root)
    else:
        number = (
            snapshot
            if snapshot in _list_numbers(files, join(root, "snapshot"), SNAPSHOT_PREFIX)
            else None
        )
    state = (
        parse_file(files, snapshot_path(root, number), parse_snapshot)
        if number is not None
        else None
    )
    # Schemas are listed after the snapshot is read, because a schema is written before the snapshot
    # that refers to it.
    schema_ids = _list_numbers(files, join(root, "schema"), SCHEMA_PREFIX)
    if not schema_ids:
        raise UnreadableError("not a Paimon table: there is no schema/schema-<number>", file=root)
    if state is None and snapshot is not None:
        raise UsageError(f"there is no snapshot {snapshot}", file=path)
    if state is not None and state.schema_id not in schema_ids:
        raise UnreadableError(
            f"the snapshot refers to schema-{state.schema_id}, which does not exist",
            file=snapshot_path(root, state.id),
        )
    schema_id = max(schema_ids) if state is None or snapshot is None else state.schema_id
    schema = _read_schema(files, path, branch, schema_id)
    _check_path_directory(path, schema.options)
    return PaimonTable(files, path, state, schema, branch)


def latest_snapshot_id(files: FileIO, root: str) -> int | None:
    """Return the number of the latest snapshot of a table, or None if the table has none. The
    LATEST file is a hint and may lag behind."""
    directory = join(root, "snapshot")
    try:
        hint = int(files.read(join(directory, "LATEST"), _LARGEST_HINT).decode("ascii"))
    except (OSError, ValueError):
        hint = 0
    ids = _list_numbers(files, directory, SNAPSHOT_PREFIX)
    newest = max(ids, default=None)
    if hint > (newest or 0):
        raise UnreadableError(
            f"LATEST refers to snapshot {hint}, which does not exist",
            file=snapshot_path(root, hint),
        )
    return hint if hint in ids and hint + 1 not in ids else newest


def snapshot_path(root: str, snapshot_id: int) -> str:
    return join(root, "snapshot", f"{SNAPSHOT_PREFIX}{snapshot_id}")


def _find_branch_root(path: str, branch: str | None) -> str:
    return (
        path
        if branch in (None, "main")
        else join(path, "branch", f"branch-{file_name(branch or '')}")
    )


def _list_numbers(files: FileIO, directory: str, prefix: str) -> set[int]:
    names = (
        name.removeprefix(prefix)
        for name in list_names(files, directory)
        if name.startswith(prefix)
    )
    return {int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 20}


def _read_schema(files: FileIO, path: str, branch: str | None, schema_id: int) -> TableSchema:
    return parse_file(
        files,
        join(_find_branch_root(path, branch), "schema", f"{SCHEMA_PREFIX}{schema_id}"),
        parse_table_schema,
    )


def _is_table(files: FileIO, directory: str) -> bool:
    """Return whether a directory has the schemas of a table; an unrelated directory may also be
    called `schema`."""
    try:
        return bool(_list_numbers(files, join(directory, "schema"), SCHEMA_PREFIX))
    except UnreadableError:
        return False


def find_table_around(files: FileIO, data_path: str) -> tuple[PaimonTable, IndexedFile] | None:
    """Find the table of a data file, and the file in its latest snapshot; None if there is no such
    table, or its snapshot lacks the file.

    Searches the parent directories, up to `_MAX_LEVELS` levels, because partitions are nested
    directories.
    """
    # A path may be relative; an address such as `file:/lake/...` is absolute.
    directory = data_path = data_path if ":" in data_path else places.absolute(data_path)
    for _ in range(_MAX_LEVELS):
        directory = parent(directory)
        if not directory:
            return None
        if _is_table(files, directory):
            table = open_table(files, directory)
            name = data_path.rpartition("/")[2]
            return next(
                ((table, live) for live in table.live_files if live.file.name == name), None
            )
    return None


EMBEDDED = "embedded"
FILE = "file"
NONE = "none"


class FileIndex(Frozen):
    """Index of a data file, as Paimon finds it (io/FileIndexEvaluator.java): in the manifest or, if
    there is none, in an `.index` file."""

    place: str
    """EMBEDDED in the manifest, in a FILE beside the data file, or NONE."""
    path: str | None
    """Path of the `.index` file, if the index is in a file."""
    container: Container | None
    """None when there is no index, or it cannot be used."""
    problem: str | None = None
    """Why an existing index cannot be used. Paimon's reader fails on such a file."""
    is_damaged: bool = False
    """Whether the problem is in the index itself, which is missing, contradicts the format or
    occurs twice, not in reading it."""


def find_index(files: FileIO, live: IndexedFile) -> FileIndex:
    """Find the index of a data file; a defect of the index is returned as `problem`, not raised."""
    file = live.file
    if file.embedded_index is None and not file.index_files:
        return FileIndex(NONE, None, None)
    if file.embedded_index is None and len(file.index_files) > 1:
        names = ", ".join(file.index_files)
        problem = (
            f"the data file has {len(file.index_files)} index files, but Paimon "
            f"supports one: {names}"
        )
        return FileIndex(FILE, None, None, problem, is_damaged=True)
    place, path = (
        (FILE, join(live.directory, file.index_files[0]))
        if file.embedded_index is None
        else (EMBEDDED, None)
    )
    if path is not None and live.outside is not None:
        return FileIndex(place, path, None, live.outside)
    try:
        data = file.embedded_index if path is None else read_metadata(files, path, LARGEST_METADATA)
        return FileIndex(place, path, parse_container(data or b""))
    except UnreadableError as error:
        # An error of the storage is the cause of one that it raised; a missing file has no cause.
        return FileIndex(place, path, None, error.with_place, is_damaged=error.__cause__ is None)
