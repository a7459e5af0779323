"""Position deletes and deletion vectors that a commit carries over from data files to their copies
(Iceberg specification, "Position Delete Files", "Deletion Vectors").

In format 2, each copy gets a position delete file of its own, with the positions of all deletes
that apply to the old file. In format 3, it gets a deletion vector: that of the old file or, if that
has none, a new one of these positions; a Puffin file has the vectors of many copies. The new entry
is in the manifest of one of the old deletes, whose partition is that of the copy. An old delete
leaves the snapshot if no data file that it names is live any more; the file itself stays for older
snapshots, branches and tags.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import build_vector, open_batches
from sbbf_tool.extensions.tables.iceberg.commit_plan import EntryChange
from sbbf_tool.extensions.tables.iceberg.deletes import DeleteIndex, PositionDelete, deletes_of
from sbbf_tool.extensions.tables.iceberg.manifest import FILE_PATH_ID, EntryId, IcebergEntry
from sbbf_tool.extensions.tables.iceberg.puffin import (
    MOST_VECTORS,
    NewVector,
    PuffinVector,
    build_puffin,
    read_vectors,
)
from sbbf_tool.extensions.tables.iceberg.source import join, open_name
from sbbf_tool.file.table_file import copy_name, new_run, run_of_copy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.extensions.tables.iceberg.deletes import DataFileKey

_POSITION_ID = 2147483545
_MOST_ROWS = 1 << 40
"""Readers of deletion vectors allocate memory up to the last position."""
_PUFFIN_BYTES = 64 << 20
"""Bytes of vectors after which another Puffin file begins."""
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(FILE_PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)
_OF_ONE_FILE = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "distinct_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
"""Fields of an entry that do not hold for another delete file; all are optional."""


class Copied(NamedTuple):
    """A data file, and the location of its copy."""

    file: DataFileKey
    new_location: str


class _Named(NamedTuple):
    """What a position delete file names."""

    positions: Mapping[str, NDArray[np.int64]]
    """Of the wanted data files, by location."""
    others: AbstractSet[str]
    """Locations of other data files."""


class _OldDeletes(NamedTuple):
    """Deletes of data files that get copies."""

    homes: Mapping[str, PositionDelete]
    """A delete of each data file, by location, with the partition of the file; the only one if it
    is a deletion vector."""
    positions: Mapping[str, Sequence[NDArray[np.int64]]]
    """By location; of files without a deletion vector."""
    others: Mapping[EntryId, AbstractSet[str]]
    """Locations of other data files that each delete names."""


def carry_deletes(
    index: DeleteIndex,
    copies: Mapping[str, Copied],
    format_version: int,
    find_live: Callable[[AbstractSet[str]], AbstractSet[str]],
    create: Callable[[str, bytes], None],
) -> dict[EntryId, EntryChange]:
    """Carry the deletes of data files over to these copies, given by the location of the old file;
    none of them has a reason in `DeleteIndex.why_not_carried`.

    `find_live` returns which of these locations are those of data files that the snapshot still
    has, and `create` creates a file. Returns what becomes of the entries of delete files. Raises
    UnreadableError if a delete file is damaged.
    """
    old = _read_old(index, copies)
    still_live = find_live(frozenset().union(*old.others.values()))
    changes = {}
    for number, locations in old.others.items():
        changes[number] = EntryChange(is_removed=still_live.isdisjoint(locations))
    make = _create_position_files if format_version == 2 else _create_puffins
    for location, new_file in make(old, copies, create):
        home = old.homes[location].entry
        change = changes[home.id]
        additions = (*change.additions, _new_fields(home, new_file))
        changes[home.id] = change._replace(additions=additions)
    return changes


def _read_old(index: DeleteIndex, copies: Mapping[str, Copied]) -> _OldDeletes:
    homes = {}
    others: dict[EntryId, AbstractSet[str]] = {}
    wanted = defaultdict(set)
    deletes = {}
    for location, copy in copies.items():
        near = list(index.near(copy.file))
        vectors = [delete for delete in near if delete.is_vector]
        if vectors:
            # Earlier position deletes are part of it.
            homes[location] = vectors[0]
            others[vectors[0].entry.id] = frozenset()
            continue
        for delete in near:
            wanted[delete.entry.id].add(location)
            deletes[delete.entry.id] = delete
    positions: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for number, delete in deletes.items():
        named = _read_named(delete.entry, wanted[number])
        for location, values in named.positions.items():
            positions[location].append(values)
            homes.setdefault(location, delete)
            others[number] = named.others - copies.keys()
    return _OldDeletes(homes, positions, others)


def _read_named(entry: IcebergEntry, wanted: AbstractSet[str]) -> _Named:
    """Read a position delete file to its end."""
    path = open_name(entry.path)
    parts: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    others = set[str]()
    with open_batches(path, ("file_path", "pos"), "position delete file") as batches:
        for batch in batches:
            for location, positions in _split(batch, path):
                if location in wanted:
                    parts[location].append(positions)
                else:
                    others.add(location)
    positions_of = {location: np.concatenate(arrays) for location, arrays in parts.items()}
    return _Named(positions_of, others)


def _split(batch: pa.RecordBatch, path: str) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the locations of data files in a batch, with the positions of each."""
    if not batch.num_rows:
        return
    if batch.drop_null().num_rows < batch.num_rows:
        raise UnreadableError("the position delete file has a null", file=path)
    locations = batch.column("file_path").cast(pa.string()).dictionary_encode()
    positions = batch.column("pos").cast(pa.int64())
    numbers = locations.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(locations.dictionary)))
    parts = np.split(positions.to_numpy(zero_copy_only=False)[order], ends[:-1])
    yield from zip(locations.dictionary.to_pylist(), parts, strict=True)


def _create_position_files(
    old: _OldDeletes, copies: Mapping[str, Copied], create: Callable[[str, bytes], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Create a position delete file for each data file with deletes; yield the location of the old
    one, and what the entry of the delete file says of it."""
    for location, parts in old.positions.items():
        data_file = copies[location].new_location
        rows = np.unique(np.concatenate(parts))
        data = _build_position_file(data_file, rows)
        bound = [{"key": FILE_PATH_ID, "value": data_file.encode()}]
        yield (
            location,
            {
                "file_path": _create_beside(data_file, "deletes.parquet", data, create),
                "file_format": "PARQUET",
                "record_count": len(rows),
                "file_size_in_bytes": len(data),
                "lower_bounds": bound,
                "upper_bounds": bound,
                "referenced_data_file": data_file,
            },
        )


def _build_position_file(data_file: str, rows: NDArray[np.int64]) -> bytes:
    numbers = pa.array(np.zeros(len(rows), np.int32))
    paths = pa.DictionaryArray.from_arrays(numbers, pa.array([data_file], pa.string()))
    schema = _SCHEMA.set(0, _SCHEMA.field(0).with_type(paths.type))
    stream = BytesIO()
    table = pa.Table.from_arrays([paths, pa.array(rows, pa.int64())], schema=schema)
    parquet.write_table(table, stream, store_schema=False)
    return stream.getvalue()


def _create_puffins(
    old: _OldDeletes, copies: Mapping[str, Copied], create: Callable[[str, bytes], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Create the Puffin files of these data files; yield the location of each, and what the entry
    of its new deletion vector says of it."""
    batch = {}
    size = 0
    for vector in _iter_vectors(old):
        data_file = copies[vector.data_file].new_location
        batch[vector.data_file] = vector._replace(data_file=data_file)
        size += len(vector.data)
        if size > _PUFFIN_BYTES or len(batch) == MOST_VECTORS:
            yield from _create_puffin(batch, create)
            batch.clear()
            size = 0
    if batch:
        yield from _create_puffin(batch, create)


def _iter_vectors(old: _OldDeletes) -> Iterator[NewVector]:
    """Yield the deletion vectors of the data files: those that they have, as they are, and those of
    their positions."""
    vectors = defaultdict(list)
    for location, delete in old.homes.items():
        vector = deletes_of(delete, location)
        if isinstance(vector, PuffinVector):
            vectors[vector.path or ""].append(vector)
    for path, of_file in vectors.items():
        yield from read_vectors(path, of_file)
    for location, parts in old.positions.items():
        rows = np.unique(np.concatenate(parts))
        if rows[0] < 0 or rows[-1] >= _MOST_ROWS:
            raise UnreadableError(
                "the position delete file has a position that no data file has",
                file=old.homes[location].entry.path,
            )
        yield NewVector(location, len(rows), build_vector(rows))


def _create_puffin(
    vectors: Mapping[str, NewVector], create: Callable[[str, bytes], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Create a Puffin file beside one of the data files; see `_create_puffins`."""
    data, places = build_puffin(vectors.values())
    first = next(iter(vectors.values()))
    path = _create_beside(first.data_file, "deletes.puffin", data, create)
    for (location, vector), place in zip(vectors.items(), places, strict=True):
        yield (
            location,
            {
                "file_path": path,
                "file_format": "PUFFIN",
                "record_count": vector.num_rows,
                "file_size_in_bytes": len(data),
                "referenced_data_file": vector.data_file,
                "content_offset": place.offset,
                "content_size_in_bytes": place.length,
            },
        )


def _create_beside(
    data_file: str, name: str, data: bytes, create: Callable[[str, bytes], None]
) -> str:
    """Create a file beside a data file, in whose name this one is; return its location."""
    folder, _, copy = data_file.rpartition("/")
    location = join(folder, copy_name(run_of_copy(copy) or new_run(), name))
    create(location, data)
    return location


def _new_fields(home: IcebergEntry, new_file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in which the entry of a new delete file differs from that of an old one
    with the same partition."""
    fields: dict[str, Any] = {}
    for name in _OF_ONE_FILE:
        if name in home.file:
            fields[name] = None
    return {**fields, **new_file}
