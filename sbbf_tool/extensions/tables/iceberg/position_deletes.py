"""Rows deleted by position (Iceberg specification, "Position Delete Files", "Deletion Vectors"): they name data files by their paths.

`DeleteIndex` says which deletes apply to a data file.

A copy of a data file has another path, so the deletes would no longer reach it. `find_reachable` determines which files have deletes.
The sequence numbers and partitions of delete files are ignored: a file that they only appear to reach is not replaced, which is safe.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Vector, open_batches
from sbbf_tool.extensions.tables.iceberg.manifest import FILE_PATH_ID, POSITION_DELETES, IcebergEntry
from sbbf_tool.extensions.tables.iceberg.metadata import PartitionField
from sbbf_tool.extensions.tables.iceberg.source import open_name
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional


class Reach(NamedTuple):
    """Data files that a delete file can reach: those between two paths, inclusive; None for no limit."""

    lower: str | None
    upper: str | None
    delete_file: str
    is_readable: bool
    """Whether the delete file is a Parquet file without encryption."""

    def includes(self, path: str, *, is_exact: bool) -> bool:
        """Return whether a path is between the bounds, which may be the beginnings of paths unless they are exact."""
        return (self.lower is None or self.lower <= path) and (
            self.upper is None or path <= (self.upper if is_exact else f"{self.upper}\U0010ffff")
        )


def reach_of(entry: IcebergEntry) -> Reach | None:
    """Return which paths the entry of a delete manifest can reach; None for equality deletes, which do not depend on paths."""
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

    A delete file that reaches several paths is read; if it is not a Parquet file, all data files between its bounds count as reached.
    Raises UnreadableError if a delete file is damaged.
    """
    ordered = sorted(locations)
    reachable: set[str] = set()
    for reach in reaches:
        start = 0 if reach.lower is None else bisect_left(ordered, reach.lower)
        # Bounds may be the beginnings of paths.
        end = len(ordered) if reach.upper is None else bisect_right(ordered, f"{reach.upper}\U0010ffff")
        candidates = {location for location in ordered[start:end] if location not in reachable}
        if not candidates:
            continue
        if (reach.lower is not None and reach.lower == reach.upper) or not reach.is_readable:
            reachable |= candidates
        else:
            with open_batches(open_name(reach.delete_file), ("file_path",), "position delete file") as batches:
                for batch in batches:
                    reachable |= candidates.intersection(batch.column("file_path").unique().to_pylist())
    return reachable


class DeleteIndex:
    """The deletes of a snapshot, and which of them apply to a data file (Iceberg specification, "Scan Planning")."""

    def __init__(self, entries: Iterable[tuple[int, IcebergEntry]], specs: Mapping[int, tuple[PartitionField, ...]]) -> None:
        """Take the entries of delete manifests, each with the id of its partition spec."""
        self.reaches: list[Reach] = []
        """Which paths each file of position deletes can reach."""
        self.paths: set[str] = set()
        """Locations of the delete files."""
        self._by_path: dict[str, list[tuple[Reach, IcebergEntry]]] = defaultdict(list)
        self._by_partition: dict[tuple[int, str], list[tuple[Reach, IcebergEntry]]] = defaultdict(list)
        self._by_value: dict[tuple[int, str] | None, int] = {}
        """The newest sequence number of equality deletes, by partition; those of None apply to all partitions."""
        for spec_id, entry in entries:
            self.paths.add(entry.path)
            partition = spec_id, repr(entry.partition)
            if (reach := reach_of(entry)) is None:
                key = None if all(field.transform == "void" for field in specs.get(spec_id, ())) else partition
                self._by_value[key] = max(self._by_value.get(key, 0), entry.sequence_number or 0)
                continue
            self.reaches.append(reach)
            is_of_path = reach.lower is not None and reach.lower == reach.upper
            (self._by_path[reach.lower or ""] if is_of_path else self._by_partition[partition]).append((reach, entry))
        self._lengths = set(map(len, self._by_path))

    def of(self, spec_id: int, file: IcebergEntry) -> tuple[PositionFile | Vector | UnknownDeletes, ...]:
        """Return the deletes that apply to a data file with a partition of this spec."""
        partition, sequence = (spec_id, repr(file.partition)), file.sequence_number or 0
        # Bounds may be the beginnings of paths.
        by_path = (pair for length in self._lengths for pair in self._by_path.get(file.path[:length], ()))
        deletes = [
            _deletes_of(reach, entry, file.path)
            for reach, entry in (*by_path, *self._by_partition.get(partition, ()))
            if (entry.sequence_number or 0) >= sequence and reach.includes(file.path, is_exact=entry.format == "PUFFIN")
        ]
        # Earlier position deletes are part of a deletion vector.
        deletes = [each for each in deletes if isinstance(each, Vector)] or deletes
        newest = max(self._by_value.get(None, 0), self._by_value.get(partition, 0))
        unknown = [UnknownDeletes("rows may be deleted by equality deletes, which are not applied")] if newest > sequence else []
        return (*deletes, *unknown)


def _deletes_of(reach: Reach, entry: IcebergEntry, data_file: str) -> PositionFile | Vector | UnknownDeletes:
    """Return the deletes of a delete file for one data file."""
    if reach.is_readable:
        return PositionFile(open_name(entry.path), data_file)
    if reach.lower == data_file and (offset := optional(entry.file, "content_offset", int)) is not None:
        return Vector(entry.rows, open_name(entry.path), offset)
    return UnknownDeletes(f"rows may be deleted by a file in {entry.format[:20]} or with encryption, which is not read")


def _text(data: bytes | None) -> str | None:
    """Decode a bound; a bound that is not UTF-8 is no limit."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
