"""Small files for the tests of verbs, and functions that read files without the code of the
verbs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from sbbf_tool import add_filters
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.filters import parse_header
from sbbf_tool.parquet.values import read_chunk
from sbbf_tool.verbs.add_filter import AddReport

ROWS = 300
ROW_GROUP_ROWS = 100


def events() -> pa.Table:
    """Return a table with a column of each relevant kind; all values of `nothing` are null."""
    numbers = range(ROWS)
    return pa.table(
        {
            "id": pa.array([n * 7 for n in numbers], pa.int64()),
            "name": pa.array([f"name {n % 90}" if n % 4 else None for n in numbers]),
            "score": pa.array([n / 4 for n in numbers], pa.float64()),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
            "nothing": pa.array([None] * ROWS, pa.int32()),
            "tags": pa.array(
                [[f"t{n}", f"t{n + 1}"] if n % 3 else None for n in numbers], pa.list_(pa.string())
            ),
            "point": pa.array(
                [{"x": n, "y": n * 2} for n in numbers],
                pa.struct([("x", pa.int32()), ("y", pa.int32())]),
            ),
        }
    )


def write_events(path: Path, **options: object) -> Path:
    pq.write_table(
        events(), path, **{"row_group_size": ROW_GROUP_ROWS, "write_page_index": True, **options}
    )
    return path


def write_column(path: Path, values: pa.Array, **options: object) -> Path:
    """Write a file of one column, `v`."""
    pq.write_table(pa.table({"v": values}), path, **options)
    return path


@dataclass(frozen=True)
class Place:
    """The place of a filter as pyarrow reports it."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


def places(path: Path) -> dict[tuple[int, str], Place]:
    """Return the place of every filter of a file, by row group and path of the column, as pyarrow
    reads the footer."""
    metadata = pq.read_metadata(path)
    filters = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            chunk = group.column(at)
            if chunk.bloom_filter_offset is not None:
                filters[number, chunk.path_in_schema] = Place(
                    chunk.bloom_filter_offset, chunk.bloom_filter_length
                )
    return filters


def filter_at(path: Path, place: Place) -> BloomFilter:
    raw = path.read_bytes()[place.offset : place.end]
    header = parse_header(raw)
    assert header.unsupported_reason is None
    assert header.length + header.num_bytes == place.length
    return BloomFilter(raw[header.length :])


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def listing(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content, to compare two moments."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def build_elsewhere(
    path: str | os.PathLike[str], columns: Iterable[str], **options: Any
) -> AddReport:
    """Return the report on filters that are written to another file, which is deleted."""
    with tempfile.TemporaryDirectory() as folder:
        return add_filters(path, columns, output=Path(folder, "new.parquet"), **options)


def stored(path: Path, name: str = "v") -> list[bytes]:
    """Return all plain values of a column, row group by row group, and check them against their
    hashes."""
    plain_values = []
    with ParquetFile.open(path) as file:
        column = find_column(file.footer.columns, name)
        for row_group in range(file.footer.num_row_groups):
            for values in read_chunk(file.footer, row_group, column, file.pages(row_group, column)):
                plain = [values[position] for position in range(len(values))]
                assert list(values.hashes()) == [
                    xxhash.xxh64_intdigest(value, 0) for value in plain
                ]
                plain_values += plain
    return plain_values
