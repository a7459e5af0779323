"""Deletes of a snapshot, and which of them apply to a data file (Iceberg specification, "Position
Delete Files", "Deletion Vectors", "Scan Planning").

Position deletes and deletion vectors name data files by their locations, so those of a file do not
reach its copy: they are carried over to it by the same commit. A delete applies if it is not older
than the data file, and of the same partition. Readers differ about a delete of another partition
that names the file; with such a delete, or one that cannot be read, the file is not replaced.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Vector, open_batches
from sbbf_tool.extensions.tables.iceberg.manifest import (
    FILE_PATH_ID,
    POSITION_DELETES,
    EntryId,
    IcebergEntry,
)
from sbbf_tool.extensions.tables.iceberg.metadata import PartitionField
from sbbf_tool.extensions.tables.iceberg.puffin import PuffinVector
from sbbf_tool.extensions.tables.iceberg.source import open_name
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional

_Partition = tuple[int, str]
"""Id of the partition spec, and the values as text."""
_OF_ANOTHER_PARTITION = (
    "rows are deleted by position, by a file of another partition: compact the file first"
)
_NOT_READ = (
    "rows are deleted by position, by a file that is encrypted, in another format than that of the "
    "table's version, in the table twice, or a vector older than the data file: compact the data "
    "file first"
)
_OF_VECTOR = ("referenced_data_file", "content_offset", "content_size_in_bytes")
"""Fields that the entry of a deletion vector must have."""


class DataFileKey(NamedTuple):
    """What decides which deletes apply to a data file."""

    key: str
    """`source.identity` of the location."""
    location: str
    partition: _Partition
    sequence_number: int | None


def data_file(spec_id: int, entry: IcebergEntry) -> DataFileKey:
    """Return the data file of an entry with a partition of this spec."""
    partition = (spec_id, repr(entry.partition))
    return DataFileKey(entry.key, entry.path, partition, entry.sequence_number)


class PositionDelete(NamedTuple):
    """A file of position deletes or a deletion vector, and which data files it can reach: those
    between two locations, inclusive; None for no limit."""

    lower: str | None
    upper: str | None
    partition: _Partition
    entry: IcebergEntry

    @property
    def is_vector(self) -> bool:
        return self.entry.format == "PUFFIN"

    @property
    def is_encrypted(self) -> bool:
        return optional(self.entry.file, "key_metadata", bytes) is not None

    @property
    def is_readable(self) -> bool:
        """Whether it is a Parquet file without encryption."""
        return self.entry.format == "PARQUET" and not self.is_encrypted

    def is_carried(self, format_version: int) -> bool:
        """Return whether it can be carried over in a table of this format version."""
        if self.is_vector:
            is_complete = all(self.entry.file.get(name) is not None for name in _OF_VECTOR)
            return format_version > 2 and is_complete and not self.is_encrypted
        return format_version > 1 and self.is_readable

    @property
    def single(self) -> str | None:
        """The only location between the bounds; None if there may be several."""
        return self.lower if self.lower == self.upper else None

    def includes(self, location: str) -> bool:
        """Return whether a location is between the bounds, which may be the beginnings of locations
        except for a deletion vector."""
        if self.lower is not None and location < self.lower:
            return False
        if self.upper is None:
            return True
        return location <= (self.upper if self.is_vector else _end_of(self.upper))

    def is_older(self, file: DataFileKey) -> bool:
        """Return whether the data file was written after it, so that it does not apply."""
        return not self.is_vector and self.precedes(file)

    def precedes(self, file: DataFileKey) -> bool:
        """Return whether its sequence number is below that of the data file. No table may have such
        a deletion vector: one reader applies it, another one fails."""
        if self.entry.sequence_number is None or file.sequence_number is None:
            return False
        return self.entry.sequence_number < file.sequence_number


def _end_of(prefix: str) -> str:
    """Return the last of the locations that begin so."""
    return f"{prefix}\U0010ffff"


def position_delete(spec_id: int, entry: IcebergEntry) -> PositionDelete | None:
    """Return what the entry of a delete manifest of this spec can reach; None for equality deletes,
    which do not depend on locations."""
    if entry.content != POSITION_DELETES:
        return None
    partition = (spec_id, repr(entry.partition))
    single = optional(entry.file, "referenced_data_file", str)
    if single is not None:
        return PositionDelete(single, single, partition, entry)
    lower, upper = map(_text, entry.bounds_of(FILE_PATH_ID))
    return PositionDelete(lower, upper, partition, entry)


class DeleteIndex:
    """The deletes of a snapshot, and which of them apply to a data file."""

    def __init__(
        self,
        entries: Iterable[tuple[int, IcebergEntry]],
        specs: Mapping[int, tuple[PartitionField, ...]],
    ) -> None:
        """Take the entries of delete manifests, each with the id of its partition spec."""
        self.positions: list[PositionDelete] = []
        self.paths: set[str] = set()
        """Locations of the delete files."""
        self._by_path: dict[str, list[PositionDelete]] = defaultdict(list)
        self._by_partition: dict[_Partition, list[PositionDelete]] = defaultdict(list)
        self._by_value: dict[_Partition | None, int] = {}
        """The newest sequence number of equality deletes, by partition; those of None apply to all
        partitions."""
        self._twice = set[EntryId]()
        """Deletes that the table has twice."""
        ids = set[EntryId]()
        for spec_id, entry in entries:
            self.paths.add(entry.path)
            if entry.id in ids:
                self._twice.add(entry.id)
            ids.add(entry.id)
            delete = position_delete(spec_id, entry)
            if delete is None:
                is_of_all = all(field.transform == "void" for field in specs.get(spec_id, ()))
                key = None if is_of_all else (spec_id, repr(entry.partition))
                self._by_value[key] = max(self._by_value.get(key, 0), entry.sequence_number or 0)
                continue
            self.positions.append(delete)
            if delete.single is None:
                self._by_partition[delete.partition].append(delete)
            else:
                self._by_path[delete.single].append(delete)
        self._lengths = set(map(len, self._by_path))

    def of(
        self, spec_id: int, entry: IcebergEntry
    ) -> tuple[PositionFile | Vector | UnknownDeletes, ...]:
        """Return the deletes that apply to a data file with a partition of this spec."""
        file = data_file(spec_id, entry)
        near = list(self.near(file))
        deletes = [deletes_of(delete, file.location) for delete in near]
        vectors = [delete for delete in deletes if isinstance(delete, Vector)]
        if any(delete.precedes(file) for delete in near):
            deletes = [UnknownDeletes("the deletion vector is older than the file")]
        elif vectors:
            # Earlier position deletes are part of a deletion vector.
            deletes = [*vectors]
        newest = max(self._by_value.get(None, 0), self._by_value.get(file.partition, 0))
        if newest > (file.sequence_number or 0):
            reason = "rows may be deleted by equality deletes, which are not applied"
            deletes.append(UnknownDeletes(reason))
        return tuple(deletes)

    def near(self, file: DataFileKey) -> Iterator[PositionDelete]:
        """Yield the position deletes that may name a data file and are not older, of its partition
        or, with the location of a single file, of any."""
        # Bounds may be the beginnings of locations.
        beginnings = {file.location[:length] for length in self._lengths}
        deletes = [self._by_path.get(beginning, ()) for beginning in beginnings]
        deletes.append(self._by_partition.get(file.partition, ()))
        for delete in chain.from_iterable(deletes):
            if delete.includes(file.location) and not delete.is_older(file):
                yield delete

    def why_not_carried(
        self, files: Mapping[str, DataFileKey], format_version: int
    ) -> dict[str, str]:
        """Return why deletes of some of these data files, given by location, cannot be carried over
        to a copy, by location."""
        reasons = {}
        for location, file in files.items():
            num_vectors = 0
            for delete in self.near(file):
                num_vectors += delete.is_vector
                is_twice = num_vectors > 1 or delete.entry.id in self._twice
                is_doubtful = is_twice or delete.precedes(file)
                if is_doubtful or not delete.is_carried(format_version):
                    reasons[location] = _NOT_READ
                elif delete.single is not None:
                    is_certain = delete.partition == file.partition and delete.single == location
                    if not is_certain:
                        reasons[location] = _OF_ANOTHER_PARTITION
        for location in self._find_strays(files):
            reasons.setdefault(location, _OF_ANOTHER_PARTITION)
        return reasons

    def _find_strays(self, files: Mapping[str, DataFileKey]) -> set[str]:
        """Return the locations of these data files that are named by a delete file of several
        data files of another partition.

        Such a file is read; if it is not a Parquet file, or damaged, all data files between its
        bounds count as named.
        """
        ordered = sorted(files)
        strays = set[str]()
        for deletes in self._by_partition.values():
            for delete in deletes:
                candidates = set[str]()
                for location in _between(ordered, delete):
                    file = files[location]
                    if delete.partition != file.partition and not delete.is_older(file):
                        candidates.add(location)
                candidates -= strays
                if candidates and delete.is_readable:
                    with suppress(UnreadableError):
                        candidates = _read_named(delete.entry.path, candidates)
                strays |= candidates
        return strays


def _between(ordered: list[str], delete: PositionDelete) -> list[str]:
    """Return those of these locations, which ascend, that are between the bounds of a delete."""
    start = 0
    end = len(ordered)
    if delete.lower is not None:
        start = bisect_left(ordered, delete.lower)
    if delete.upper is not None:
        # Bounds may be the beginnings of locations.
        end = bisect_right(ordered, _end_of(delete.upper))
    return ordered[start:end]


def _read_named(delete_file: str, candidates: AbstractSet[str]) -> set[str]:
    """Return those of these locations of data files that a file of position deletes names."""
    named = set[str]()
    name = open_name(delete_file)
    with open_batches(name, ("file_path",), "position delete file") as batches:
        for batch in batches:
            named |= candidates & set(batch.column("file_path").unique().to_pylist())
    return named


def deletes_of(delete: PositionDelete, location: str) -> PositionFile | Vector | UnknownDeletes:
    """Return the deletes of a delete file for one data file."""
    entry = delete.entry
    if delete.is_readable:
        return PositionFile(open_name(entry.path), location)
    if delete.is_vector and delete.lower == location:
        offset = optional(entry.file, "content_offset", int)
        if offset is not None:
            length = optional(entry.file, "content_size_in_bytes", int)
            path = open_name(entry.path)
            return PuffinVector(entry.rows, path, offset, data_file=location, length=length)
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
