"""Rows deleted by position (Iceberg specification, "Position Delete Files", "Deletion Vectors"): they name data files by their paths.

A copy of a data file has another path, so the deletes would no longer reach it. Here it is only determined which files have such deletes.
The sequence numbers and partitions of delete files are ignored: a file that they only appear to reach is not replaced, which is safe.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg.manifest import FILE_PATH_ID, POSITION_DELETES, IcebergEntry
from sbbf_tool.records import optional

MAX_DELETE_FILE = 1 << 30
"""Maximum number of bytes of a delete file that is read."""


class Reach(NamedTuple):
    """Data files that a delete file can reach: those between two paths, inclusive; None for no limit."""

    lower: str | None
    upper: str | None
    delete_file: str
    is_readable: bool
    """Whether the delete file is a Parquet file without encryption."""


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


def find_reachable(reaches: Iterable[Reach], locations: AbstractSet[str], read: Callable[[str], bytes]) -> set[str]:
    """Return those of these locations of data files that position deletes name.

    `read` returns the bytes of a delete file. A delete file that reaches several paths is read; if it is not a Parquet file, all data files
    between its bounds count as reached. Raises UnreadableError if a delete file is damaged.
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
            for paths in _iter_paths(read(reach.delete_file), reach.delete_file):
                reachable |= candidates & paths
    return reachable


def _iter_paths(data: bytes, location: str) -> Iterator[set[str]]:
    """Yield the distinct paths in the column `file_path` of a position delete file, in parts."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        name = next((field.name for field in file.schema_arrow if _field_id(field) == FILE_PATH_ID), "file_path")
        for batch in file.iter_batches(columns=[name]):
            yield set(batch.column(0).unique().to_pylist())
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        message = " ".join(f"{error}".split())[:120]
        raise UnreadableError(f"the paths of the position delete file cannot be read: {message}", file=location) from None


def _field_id(field: Any) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id", b"")
    return int(text) if text.isdigit() else None


def _text(data: bytes | None) -> str | None:
    """Decode a bound; a bound that is not UTF-8 is no limit."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
