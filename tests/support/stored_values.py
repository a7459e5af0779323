"""The values of a column as `read_chunk` yields them."""

from __future__ import annotations

from pathlib import Path

import xxhash

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.values import read_chunk


def stored(path: Path, name: str = "v") -> list[bytes]:
    """Return all plain values of a column, row group by row group, and check them against their hashes."""
    plain_values = []
    with ParquetFile.open(path) as file:
        column = find_column(file.footer.columns, name)
        for row_group in range(file.footer.num_row_groups):
            for values in read_chunk(file.source.open_arrow, file.footer, row_group, column):
                plain = [values[position] for position in range(len(values))]
                assert list(values.hashes()) == [xxhash.xxh64_intdigest(value, 0) for value in plain]
                plain_values += plain
    return plain_values
