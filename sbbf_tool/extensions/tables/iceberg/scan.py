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
        return (self.lower is None or self.lower <= path) and (
            self.upper is None or path <= (self.upper if is_exact else f"{self.upper}\U0010ffff")
        )


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
        start = 0 if reach.lower is None else bisect_left(ordered, reach.lower)
        # Bounds may be the beginnings of paths.
        end = (
            len(ordered)
            if reach.upper is None
            else bisect_right(ordered, f"{reach.upper}\U0010ffff")
        )
        candidates = {location for location in ordered[start:end] if location not in reachable}
        if not candidates:
            continue
        if (reach.lower is not None and reach.lower == reach.upper) or not reach.is_readable:
            reachable |= candidates
        else:
            with open_batches(
                open_name(reach.delete_file), ("file_path",), "position delete file"
            ) as batches:
                for batch in batches:
                    reachable |= candidates.intersection(
                        batch.column("file_path").unique().to_pylist()
                    )
    return reachable


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
        self._by_partition: dict[tuple[int, str], list[tuple[Reach, IcebergEntry]]] = defaultdict(
            list
        )
        self._by_value: dict[tuple[int, str] | None, int] = {}
        """The newest sequence number of equality deletes, by partition; those of None apply to all
        partitions."""
        for spec_id, entry in entries:
            self.paths.add(entry.path)
            partition = spec_id, repr(entry.partition)
            if (reach := reach_of(entry)) is None:
                key = (
                    None
                    if all(field.transform == "void" for field in specs.get(spec_id, ()))
                    else partition
                )
                self._by_value[key] = max(self._by_value.get(key, 0), entry.sequence_number or 0)
                continue
            self.reaches.append(reach)
            is_of_path = reach.lower is not None and reach.lower == reach.upper
            (
                self._by_path[reach.lower or ""] if is_of_path else self._by_partition[partition]
            ).append((reach, entry))
        self._lengths = set(map(len, self._by_path))

    def of(
        self, spec_id: int, file: IcebergEntry
    ) -> tuple[PositionFile | Vector | UnknownDeletes, ...]:
        """Return the deletes that apply to a data file with a partition of this spec."""
        partition, sequence = (spec_id, repr(file.partition)), file.sequence_number or 0
        # Bounds may be the beginnings of paths.
        by_path = (
            pair for length in self._lengths for pair in self._by_path.get(file.path[:length], ())
        )
        deletes = [
            _deletes_of(reach, entry, file.path)
            for reach, entry in (*by_path, *self._by_partition.get(partition, ()))
            if (entry.sequence_number or 0) >= sequence
            and reach.includes(file.path, is_exact=entry.format == "PUFFIN")
        ]
        # Earlier position deletes are part of a deletion vector.
        deletes = [each for each in deletes if isinstance(each, Vector)] or deletes
        newest = max(self._by_value.get(None, 0), self._by_value.get(partition, 0))
        unknown = (
            [UnknownDeletes("rows may be deleted by equality deletes, which are not applied")]
            if newest > sequence
            else []
        )
        return (*deletes, *unknown)


def _deletes_of(
    reach: Reach, entry: IcebergEntry, data_file: str
) -> PositionFile | Vector | UnknownDeletes:
    """Return the deletes of a delete file for one data file."""
    if reach.is_readable:
        return PositionFile(open_name(entry.path), data_file)
    if (
        reach.lower == data_file
        and (offset := optional(entry.file, "content_offset", int)) is not None
    ):
        return Vector(entry.rows, open_name(entry.path), offset)
    return UnknownDeletes(
        f"rows may be deleted by a file in {entry.format[:20]} or with encryption, which is not "
        "read"
    )


def _text(data: bytes | None) -> str | None:
    """Decode a bound; a bound that is not UTF-8 is no limit."""
    try:
        return None if data is None else data.decode()
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
    files = (file for file in manifests if file.content != DATA)
    return DeleteIndex(
        (
            (file.spec_id, entry)
            for file in files
            for entry in iter_live(open_manifest(state, file))
        ),
        state.metadata.specs,
    )


def why_unchangeable(entry: IcebergEntry) -> str | None:
    """Return why the entry alone does not permit to replace its file; None if it does."""
    if entry.format != "PARQUET":
        return f"the file is in {entry.format[:20]}, not Parquet"
    if optional(entry.file, "key_metadata", bytes) is not None:
        return "the table encrypts the file with a key of its own"
    return None


def partition_texts(metadata: TableMetadata) -> PartitionTexts:
    """Return the partition values of the table as text."""
    return PartitionTexts(
        {leaf.id: (leaf.path, leaf.type) for leaf in leaves(metadata.schema)}, metadata.specs
    )


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
        files[key] = files[key]._replace(
            unchangeable=files[key].unchangeable or _DELETED_BY_POSITION
        )
    return list(files.values())


def list_all_files(state: TableState) -> tuple[list[LiveFile], set[str]]:
    """Return the data files of all snapshots, those of the current one first, and the paths of
    their delete files."""
    manifests = _all_manifests(state)
    old_files = {entry.key: file for _, entry, file in _read_files(state, manifests)}
    files = [
        *list_live_files(state),
        *(file._replace(is_live=False) for file in old_files.values()),
    ]
    return files, set(map(open_name, read_deletes(state, manifests).paths))


def _all_manifests(state: TableState) -> Collection[ManifestFile]:
    """Return the manifests of all snapshots."""
    return {
        file.path: file
        for snapshot in state.metadata.snapshots.values()
        for file in read_manifest_list(state, snapshot)[1]
    }.values()


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
        fields = [
            (at, field_by_id[number], texts.names_of(field_by_id[number]))
            for at, number in enumerate(manifest.partition_ids)
            if number in field_by_id
        ]
        unknown = texts.names - {name for _, _, field_names in fields for name in field_names}
        for entry in iter_live(manifest):
            partition = {
                name: texts.text_of(field, entry.partition[at])
                for at, field, field_names in fields
                for name in field_names
            }
            skipped = NOT_PARQUET.get(entry.format)
            yield (
                file.spec_id,
                entry,
                LiveFile(
                    open_name(entry.path), entry.size, partition, skipped=skipped, unknown=unknown
                ),
            )


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
