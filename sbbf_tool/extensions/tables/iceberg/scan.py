"""From the metadata of a table to the files of its current snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader
from sbbf_tool.extensions.tables.iceberg.manifest import (
    DATA,
    MAX_MANIFEST,
    IcebergEntry,
    Manifest,
    ManifestFile,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.tables.iceberg.metadata import IcebergSnapshot, TableMetadata
from sbbf_tool.extensions.tables.iceberg.position_deletes import DeleteIndex, find_reachable
from sbbf_tool.extensions.tables.iceberg.schema import PartitionTexts, leaves
from sbbf_tool.extensions.tables.iceberg.source import TableState, open_name, read_file
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional
from sbbf_tool.reports.rows import NOT_PARQUET
from sbbf_tool.running.table import LiveFile

_DELETED_BY_POSITION = "rows are deleted by position: compact the file first"
_TWICE = "the table has the file twice"


def read_manifest_list(state: TableState, snapshot: IcebergSnapshot) -> tuple[AvroHeader | None, list[ManifestFile]]:
    """Return the header and the manifests of a snapshot's manifest list; no header if the snapshot lists its manifests itself."""
    if snapshot.manifest_list is not None:
        return read_file(state.files, snapshot.manifest_list, MAX_MANIFEST, parse_manifest_list)
    if snapshot.manifests is None:
        raise UnreadableError(f"snapshot {snapshot.id} has neither a manifest list nor manifests", file=state.location)
    return None, [ManifestFile(path, 0, DATA, 0, None, None, False, {}) for path in snapshot.manifests]


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
    return DeleteIndex(((file.spec_id, entry) for file in files for entry in iter_live(open_manifest(state, file))), state.metadata.specs)


def why_unchangeable(entry: IcebergEntry) -> str | None:
    """Return why the entry alone does not permit to replace its file; None if it does."""
    if entry.format != "PARQUET":
        return f"the file is in {entry.format[:20]}, not Parquet"
    if optional(entry.file, "key_metadata", bytes) is not None:
        return "the table encrypts the file with a key of its own"
    return None


def partition_texts(metadata: TableMetadata) -> PartitionTexts:
    """Return the partition values of the table as text."""
    return PartitionTexts({leaf.id: (leaf.path, leaf.type) for leaf in leaves(metadata.schema)}, metadata.specs)


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
        files[entry.key] = file._replace(unchangeable=why_unchangeable(entry), deletes=deletes.of(spec_id, entry))
        names[entry.path] = entry.key
    for location in find_reachable(deletes.reaches, names.keys()):
        key = names[location]
        files[key] = files[key]._replace(unchangeable=files[key].unchangeable or _DELETED_BY_POSITION)
    return list(files.values())


def list_all_files(state: TableState) -> tuple[list[LiveFile], set[str]]:
    """Return the data files of all snapshots, those of the current one first, and the paths of their delete files."""
    manifests = _all_manifests(state)
    old_files = {entry.key: file for _, entry, file in _read_files(state, manifests)}
    files = [*list_live_files(state), *(file._replace(is_live=False) for file in old_files.values())]
    return files, set(map(open_name, read_deletes(state, manifests).paths))


def _all_manifests(state: TableState) -> Collection[ManifestFile]:
    """Return the manifests of all snapshots."""
    return {file.path: file for snapshot in state.metadata.snapshots.values() for file in read_manifest_list(state, snapshot)[1]}.values()


def _read_files(state: TableState, manifests: Iterable[ManifestFile]) -> Iterator[tuple[int, IcebergEntry, LiveFile]]:
    """Yield the data files of these manifests, each with its entry and the id of its partition spec."""
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
            partition = {name: texts.text_of(field, entry.partition[at]) for at, field, field_names in fields for name in field_names}
            skipped = NOT_PARQUET.get(entry.format)
            yield file.spec_id, entry, LiveFile(open_name(entry.path), entry.size, partition, skipped=skipped, unknown=unknown)


def find_referenced(state: TableState, names: AbstractSet[str]) -> set[str]:
    """Return those of these file names that a snapshot of the metadata has. Raises UnreadableError if a manifest cannot be read."""
    referenced: set[str] = set()
    for file in _all_manifests(state):
        if len(referenced) == len(names):
            break
        live = (entry.path.rpartition("/")[2] for entry in iter_live(open_manifest(state, file)))
        referenced.update(name for name in live if name in names)
    return referenced
