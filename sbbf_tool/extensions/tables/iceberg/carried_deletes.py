"""Position deletes that a commit carries over from data files to their copies (Iceberg
specification, "Position Delete Files").

Each copy gets a position delete file of its own, with the positions of all deletes that apply to
the old file. Its entry is in the manifest of one of these deletes, whose partition is that of the
copy. An old delete file leaves the snapshot if no data file that it names is live any more; the
file itself stays for older snapshots, branches and tags.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import open_batches
from sbbf_tool.extensions.tables.iceberg.commit_plan import EntryChange
from sbbf_tool.extensions.tables.iceberg.deletes import DeleteIndex, PositionDelete
from sbbf_tool.extensions.tables.iceberg.manifest import FILE_PATH_ID, EntryId, IcebergEntry
from sbbf_tool.extensions.tables.iceberg.source import join, open_name
from sbbf_tool.file.table_file import copy_name, new_run, run_of_copy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.extensions.tables.iceberg.deletes import DataFileKey

_POSITION_ID = 2147483545
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


def carry_deletes(
    index: DeleteIndex,
    copies: Mapping[str, Copied],
    find_live: Callable[[AbstractSet[str]], AbstractSet[str]],
    create: Callable[[str, bytes], None],
) -> dict[EntryId, EntryChange]:
    """Carry the deletes of data files over to these copies, given by the location of the old file;
    none of them has a reason in `DeleteIndex.why_not_carried`.

    `find_live` returns which of these locations are those of data files that the snapshot still
    has, and `create` creates a file. Returns what becomes of the entries of delete files. Raises
    UnreadableError if a delete file is damaged.
    """
    wanted: dict[EntryId, set[str]] = defaultdict(set)
    deletes: dict[EntryId, PositionDelete] = {}
    for location, copy in copies.items():
        for delete in index.near(copy.file):
            wanted[delete.entry.id].add(location)
            deletes[delete.entry.id] = delete
    positions: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    homes: dict[str, PositionDelete] = {}
    others: dict[EntryId, AbstractSet[str]] = {}
    for number, delete in deletes.items():
        named = _read_named(delete.entry, wanted[number])
        for location, values in named.positions.items():
            positions[location].append(values)
            homes.setdefault(location, delete)
            others[number] = named.others - copies.keys()
    still_live = find_live(frozenset().union(*others.values()))
    changes: dict[EntryId, EntryChange] = {}
    for number, locations in others.items():
        changes[number] = EntryChange(is_removed=still_live.isdisjoint(locations))
    for location, home in homes.items():
        rows = np.unique(np.concatenate(positions[location]))
        new_file = _create_file(copies[location].new_location, rows, create)
        change = changes[home.entry.id]
        additions = (*change.additions, _new_fields(home.entry, new_file))
        changes[home.entry.id] = change._replace(additions=additions)
    return changes


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
    if batch.drop_null().num_rows < batch.num_rows:
        raise UnreadableError("the position delete file has a null", file=path)
    locations = batch.column("file_path").cast(pa.string()).dictionary_encode()
    positions = batch.column("pos").cast(pa.int64())
    numbers = locations.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(locations.dictionary)))
    parts = np.split(positions.to_numpy(zero_copy_only=False)[order], ends[:-1])
    yield from zip(locations.dictionary.to_pylist(), parts, strict=True)


def _create_file(
    data_file: str, rows: NDArray[np.int64], create: Callable[[str, bytes], None]
) -> dict[str, Any]:
    """Create the position delete file of a data file, beside it; return what its entry says of
    it."""
    numbers = pa.array(np.zeros(len(rows), np.int32))
    paths = pa.DictionaryArray.from_arrays(numbers, pa.array([data_file], pa.string()))
    schema = _SCHEMA.set(0, _SCHEMA.field(0).with_type(paths.type))
    stream = BytesIO()
    table = pa.Table.from_arrays([paths, pa.array(rows, pa.int64())], schema=schema)
    parquet.write_table(table, stream, store_schema=False)
    data = stream.getvalue()
    folder, _, name = data_file.rpartition("/")
    location = join(folder, copy_name(run_of_copy(name) or new_run(), "deletes.parquet"))
    create(location, data)
    bound = [{"key": FILE_PATH_ID, "value": data_file.encode()}]
    return {
        "file_path": location,
        "file_format": "PARQUET",
        "record_count": len(rows),
        "file_size_in_bytes": len(data),
        "lower_bounds": bound,
        "upper_bounds": bound,
        "referenced_data_file": data_file,
    }


def _new_fields(home: IcebergEntry, new_file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in which the entry of a new delete file differs from that of an old one
    with the same partition."""
    fields: dict[str, Any] = {}
    for name in _OF_ONE_FILE:
        if name in home.file:
            fields[name] = None
    return {**fields, **new_file}
