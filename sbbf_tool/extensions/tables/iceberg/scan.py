"""From the metadata of a table to the files of a snapshot, and the deletes of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.iceberg.deletes import DeleteIndex, data_file
from sbbf_tool.extensions.tables.iceberg.manifest import (
    DATA,
    MAX_MANIFEST,
    IcebergEntry,
    Manifest,
    ManifestFile,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.tables.iceberg.metadata import (
    IcebergSnapshot,
    TableMetadata,
)
from sbbf_tool.extensions.tables.iceberg.schema import PartitionTexts, leaves
from sbbf_tool.extensions.tables.iceberg.source import TableState, open_name, read_file
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional
from sbbf_tool.reports.rows import NOT_PARQUET
from sbbf_tool.running.table import LiveFile

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
    data_files = {}
    for spec_id, entry, file in _read_files(state, manifests):
        if entry.key in files:
            # Deletes of the one entry may not apply to the other.
            unknown = (UnknownDeletes(_TWICE),) if files[entry.key].deletes else ()
            files[entry.key] = files[entry.key]._replace(unchangeable=_TWICE, deletes=unknown)
            continue
        files[entry.key] = file._replace(
            unchangeable=why_unchangeable(entry), deletes=deletes.of(spec_id, entry)
        )
        data_files[entry.path] = data_file(spec_id, entry)
    for location, reason in deletes.why_not_carried(data_files, metadata.format_version).items():
        key = data_files[location].key
        if files[key].unchangeable is None:
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
    by_path = {}
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
        values = []
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


def find_live(
    state: TableState, manifests: Iterable[ManifestFile], locations: AbstractSet[str]
) -> set[str]:
    """Return those of these locations that are those of data files in these manifests."""
    live = set[str]()
    if locations:
        for file in manifests:
            if file.content == DATA:
                paths = (entry.path for entry in iter_live(open_manifest(state, file)))
                live.update(path for path in paths if path in locations)
    return live


def paths_of_snapshots(state: TableState) -> Iterator[str]:
    """Yield the paths of the files of all snapshots. Raises UnreadableError if a manifest cannot be
    read."""
    for file in _all_manifests(state):
        for entry in iter_live(open_manifest(state, file)):
            yield entry.path
