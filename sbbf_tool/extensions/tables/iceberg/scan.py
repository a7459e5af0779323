"""From the metadata of a table to the files of its current snapshot, and to the rows of them that
are deleted by position.

Position deletes (Iceberg specification, "Position Delete Files", "Deletion Vectors") name data
files by their paths; `DeleteIndex` says which apply to a data file. A copy of a data file has
another path, so the deletes would no longer reach it. `find_reachable` determines which files have
deletes. The sequence numbers and partitions of delete files are ignored: a file that they only
appear to reach is not replaced, which is safe.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Vector, open_batches
from sbbf_tool.extensions.tables.iceberg.manifest import (
    DATA,
    FILE_PATH_ID,
    MAX_MANIFEST,
    POSITION_DELETES,
    IcebergEntry,
    Manifest,
    ManifestFile,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.tables.iceberg.metadata import (
    IcebergSnapshot,
    PartitionField,
    TableMetadata,
)
from sbbf_tool.extensions.tables.iceberg.schema import PartitionTexts, leaves
from sbbf_tool.extensions.tables.iceberg.source import TableState, open_name, read_file
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional
from sbbf_tool.reports.rows import NOT_PARQUET
from sbbf_tool.running.table import LiveFile

_Partition = tuple[int, str]
"""Id of the partition spec, and the values as text."""


class Reach(NamedTuple):
    """Data files that a delete file can reach: those between two paths, inclusive; None for no
    limit."""

    lower: str | None
    upper: str | None
    delete_file: str
    is_readable: bool
    """Whether the delete file is a Parquet file without encryption."""

    def includes(self, path: str, *, is_exact: bool) -> bool:
        """Return whether a path is between the bounds, which may be the beginnings of paths unless
        they are exact."""
        if self.lower is not None and path < self.lower:
            return False
        if self.upper is None:
            return True
        return path <= (self.upper if is_exact else _end_of(self.upper))

    @property
    def single(self) -> str | None:
        """The only path between the bounds; None if there may be several."""
        return self.lower if self.lower == self.upper else None


def _end_of(prefix: str) -> str:
    """Return the last of the paths that begin so."""
    return f"{prefix}\U0010ffff"


def reach_of(entry: IcebergEntry) -> Reach | None:
    """Return which paths the entry of a delete manifest can reach; None for equality deletes, which
    do not depend on paths."""
    if entry.content != POSITION_DELETES:
        return None
    is_readable = entry.format == "PARQUET" and optional(entry.file, "key_metadata", bytes) is None
    single = optional(entry.file, "referenced_data_file", str)
    if single is not None:
        return Reach(single, single, entry.path, is_readable)
    lower, upper = map(_text, entry.bounds_of(FILE_PATH_ID))
    return Reach(lower, upper, entry.path, is_readable)


def find_reachable(reaches: Iterable[Reach], locations: AbstractSet[str]) -> set[str]:
    """Return those of these locations of data files that position deletes name.

    A delete file that reaches several paths is read; if it is not a Parquet file, all data files
    between its bounds count as reached. Raises UnreadableError if a delete file is damaged.
    """
    ordered = sorted(locations)
    reachable: set[str] = set()
    for reach in reaches:
        start = 0
        end = len(ordered)
        if reach.lower is not None:
            start = bisect_left(ordered, reach.lower)
        if reach.upper is not None:
            # Bounds may be the beginnings of paths.
            end = bisect_right(ordered, _end_of(reach.upper))
        candidates = set(ordered[start:end]) - reachable
        if not candidates:
            continue
        if reach.single is not None or not reach.is_readable:
            reachable |= candidates
        else:
            reachable |= _read_paths(reach.delete_file, candidates)
    return reachable


def _read_paths(delete_file: str, candidates: AbstractSet[str]) -> set[str]:
    """Return those of these locations of data files that a file of position deletes names."""
    paths = set[str]()
    name = open_name(delete_file)
    with open_batches(name, ("file_path",), "position delete file") as batches:
        for batch in batches:
            paths |= candidates & set(batch.column("file_path").unique().to_pylist())
    return paths


class DeleteIndex:
    """The deletes of a snapshot, and which of them apply to a data file (Iceberg specification,
    "Scan Planning")."""

    def __init__(
        self,
        entries: Iterable[tuple[int, IcebergEntry]],
        specs: Mapping[int, tuple[PartitionField, ...]],
    ) -> None:
        """Take the entries of delete manifests, each with the id of its partition spec."""
        self.reaches: list[Reach] = []
        """Which paths each file of position deletes can reach."""
        self.paths: set[str] = set()
        """Locations of the delete files."""
        self._by_path: dict[str, list[tuple[Reach, IcebergEntry]]] = defaultdict(list)
        self._by_partition: dict[_Partition, list[tuple[Reach, IcebergEntry]]] = defaultdict(list)
        self._by_value: dict[_Partition | None, int] = {}
        """The newest sequence number of equality deletes, by partition; those of None apply to all
        partitions."""
        for spec_id, entry in entries:
            self.paths.add(entry.path)
            partition = (spec_id, repr(entry.partition))
            reach = reach_of(entry)
            if reach is None:
                is_of_all = all(field.transform == "void" for field in specs.get(spec_id, ()))
                key = None if is_of_all else partition
                self._by_value[key] = max(self._by_value.get(key, 0), entry.sequence_number or 0)
                continue
            self.reaches.append(reach)
            if reach.single is None:
                self._by_partition[partition].append((reach, entry))
            else:
                self._by_path[reach.single].append((reach, entry))
        self._lengths = set(map(len, self._by_path))

    def of(
        self, spec_id: int, file: IcebergEntry
    ) -> tuple[PositionFile | Vector | UnknownDeletes, ...]:
        """Return the deletes that apply to a data file with a partition of this spec."""
        partition = (spec_id, repr(file.partition))
        sequence = file.sequence_number or 0
        deletes: list[PositionFile | Vector | UnknownDeletes] = []
        for reach, entry in self._list_near(partition, file.path):
            is_exact = entry.format == "PUFFIN"
            is_later = (entry.sequence_number or 0) >= sequence
            if is_later and reach.includes(file.path, is_exact=is_exact):
                deletes.append(_deletes_of(reach, entry, file.path))
        vectors = [delete for delete in deletes if isinstance(delete, Vector)]
        if vectors:
            # Earlier position deletes are part of a deletion vector.
            deletes = [*vectors]
        newest = max(self._by_value.get(None, 0), self._by_value.get(partition, 0))
        if newest > sequence:
            reason = "rows may be deleted by equality deletes, which are not applied"
            deletes.append(UnknownDeletes(reason))
        return tuple(deletes)

    def _list_near(self, partition: _Partition, path: str) -> Iterator[tuple[Reach, IcebergEntry]]:
        """Yield the delete files of a path, and those of a partition."""
        for length in self._lengths:
            # Bounds may be the beginnings of paths.
            yield from self._by_path.get(path[:length], ())
        yield from self._by_partition.get(partition, ())


def _deletes_of(
    reach: Reach, entry: IcebergEntry, data_file: str
) -> PositionFile | Vector | UnknownDeletes:
    """Return the deletes of a delete file for one data file."""
    if reach.is_readable:
        return PositionFile(open_name(entry.path), data_file)
    if reach.lower == data_file:
        offset = optional(entry.file, "content_offset", int)
        if offset is not None:
            return Vector(entry.rows, open_name(entry.path), offset)
    return UnknownDeletes(
        f"rows may be deleted by a file in {entry.format[:20]} or with encryption, which is not "
        "read"
    )


def _text(data: bytes | None) -> str | None:
    """Decode a bound; a bound that is not UTF-8 is no limit."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


_DELETED_BY_POSITION = "rows are deleted by position: compact the file first"
_TWICE = "the table has the file twice"


def read_manifest_list(
    state: TableState, snapshot: IcebergSnapshot
) -> tuple[AvroHeader | None, list[ManifestFile]]:
    """Return the header and the manifests of a snapshot's manifest list; no header if the snapshot
    lists its manifests itself."""
    if snapshot.manifest_list is not None:
        return read_file(state.files, snapshot.manifest_list, MAX_MANIFEST, parse_manifest_list)
    if snapshot.manifests is None:
        raise UnreadableError(
            f"snapshot {snapshot.id} has neither a manifest list nor manifests", file=state.location
        )
    return None, [
        ManifestFile(path, 0, DATA, 0, None, None, False, {}) for path in snapshot.manifests
    ]


def open_manifest(state: TableState, file: ManifestFile) -> Manifest:
    """Read a manifest. Raises UnreadableError."""
    return read_file(state.files, file.path, MAX_MANIFEST, lambda data: parse_manifest(data, file))


def iter_live(manifest: Manifest) -> Iterator[IcebergEntry]:
    """Yield the entries of the live files of a manifest. Errors name the manifest."""
    with ErrorPlace(manifest.file.path):
        yield from manifest.live_entries()


def read_deletes(state: TableState, manifests: Iterable[ManifestFile]) -> DeleteIndex:
    """Read the entries of the delete files of a snapshot."""
    return DeleteIndex(_iter_deletes(state, manifests), state.metadata.specs)


def _iter_deletes(
    state: TableState, manifests: Iterable[ManifestFile]
) -> Iterator[tuple[int, IcebergEntry]]:
    """Yield the entries of the delete files, each with the id of its partition spec."""
    for file in manifests:
        if file.content != DATA:
            for entry in iter_live(open_manifest(state, file)):
                yield file.spec_id, entry


def why_unchangeable(entry: IcebergEntry) -> str | None:
    """Return why the entry alone does not permit to replace its file; None if it does."""
    if entry.format != "PARQUET":
        return f"the file is in {entry.format[:20]}, not Parquet"
    if optional(entry.file, "key_metadata", bytes) is not None:
        return "the table encrypts the file with a key of its own"
    return None


def partition_texts(metadata: TableMetadata) -> PartitionTexts:
    """Return the partition values of the table as text."""
    columns = {leaf.id: (leaf.path, leaf.type) for leaf in leaves(metadata.schema)}
    return PartitionTexts(columns, metadata.specs)


def list_live_files(state: TableState) -> list[LiveFile]:
    """Return the data files of the current snapshot, in the order of its manifests."""
    metadata = state.metadata
    if metadata.current is None:
        return []
    _, manifests = read_manifest_list(state, metadata.current)
    deletes = read_deletes(state, manifests)
    files: dict[str, LiveFile] = {}
    names: dict[str, str] = {}
    for spec_id, entry, file in _read_files(state, manifests):
        if entry.key in files:
            # Deletes of the one entry may not apply to the other.
            unknown = (UnknownDeletes(_TWICE),) if files[entry.key].deletes else ()
            files[entry.key] = files[entry.key]._replace(unchangeable=_TWICE, deletes=unknown)
            continue
        files[entry.key] = file._replace(
            unchangeable=why_unchangeable(entry), deletes=deletes.of(spec_id, entry)
        )
        names[entry.path] = entry.key
    for location in find_reachable(deletes.reaches, names.keys()):
        key = names[location]
        reason = files[key].unchangeable or _DELETED_BY_POSITION
        files[key] = files[key]._replace(unchangeable=reason)
    return list(files.values())


def list_all_files(state: TableState) -> tuple[list[LiveFile], set[str]]:
    """Return the data files of all snapshots, those of the current one first, and the paths of
    their delete files."""
    manifests = _all_manifests(state)
    old_files = {entry.key: file for _, entry, file in _read_files(state, manifests)}
    files = list_live_files(state)
    files += [file._replace(is_live=False) for file in old_files.values()]
    return files, set(map(open_name, read_deletes(state, manifests).paths))


def _all_manifests(state: TableState) -> Collection[ManifestFile]:
    """Return the manifests of all snapshots."""
    by_path: dict[str, ManifestFile] = {}
    for snapshot in state.metadata.snapshots.values():
        _, manifests = read_manifest_list(state, snapshot)
        by_path.update({file.path: file for file in manifests})
    return by_path.values()


def _read_files(
    state: TableState, manifests: Iterable[ManifestFile]
) -> Iterator[tuple[int, IcebergEntry, LiveFile]]:
    """Yield the data files of these manifests, each with its entry and the id of its partition
    spec."""
    metadata = state.metadata
    with ErrorPlace(state.location):
        texts = partition_texts(metadata)
    for file in manifests:
        if file.content != DATA:
            continue
        manifest = open_manifest(state, file)
        field_by_id = {field.id: field for field in metadata.specs.get(file.spec_id, ())}
        values: list[tuple[str, int, PartitionField]] = []
        for at, number in enumerate(manifest.partition_ids):
            if number in field_by_id:
                field = field_by_id[number]
                values += [(name, at, field) for name in texts.names_of(field)]
        unknown = texts.names - {name for name, _, _ in values}
        for entry in iter_live(manifest):
            live = LiveFile(
                open_name(entry.path),
                entry.size,
                {name: texts.text_of(field, entry.partition[at]) for name, at, field in values},
                skipped=NOT_PARQUET.get(entry.format),
                unknown=unknown,
            )
            yield file.spec_id, entry, live


def find_referenced(state: TableState, names: AbstractSet[str]) -> set[str]:
    """Return those of these file names that a snapshot of the metadata has. Raises UnreadableError
    if a manifest cannot be read."""
    referenced: set[str] = set()
    for file in _all_manifests(state):
        if len(referenced) == len(names):
            break
        live = (entry.path.rpartition("/")[2] for entry in iter_live(open_manifest(state, file)))
        referenced.update(name for name in live if name in names)
    return referenced
