"""Rows that a table has deleted without rewriting their data file: by deletion vectors, position
delete files, or rows of a catalog.

Each class is a `file.table_file.Deletes`: it is sent to the worker that has found rows of the data
file, and reads only there. A deletion vector is a Roaring bitmap in the portable form for 64 bits,
the same for Delta (PROTOCOL.md, "Deletion Vector Format"), Iceberg (Puffin specification,
"deletion-vector-v1") and DuckLake.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.pages import open_checked
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH_ROWS = 8192
_MAGIC = 1681511377
_MAX_VECTOR = 1 << 30
"""Maximum number of bytes of a deletion vector that is read: more than the vector of two billion
rows can have."""
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_MAX_CONTAINERS = 1 << 16
_LARGEST_ARRAY = 4096
"""Number of values of a container above which it is a bitset."""


class Vector(Frozen):
    """A deletion vector: its bytes, or a file that has at this offset its length in four bytes, the
    vector, and its CRC-32."""

    count: int
    """Number of deleted rows that the table records."""
    path: str | None = None
    offset: int = 0
    data: bytes = b""

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        try:
            return _find_in_vector(
                self.data if self.path is None else self._read(self.path), self.count, rows
            )
        except (ValueError, IndexError):
            raise UnreadableError("the deletion vector is damaged", file=self.path) from None

    def _read(self, path: str) -> bytes:
        with places.open_source(path) as source:
            length = int.from_bytes(source.read(self.offset, 4), "big")
            if length > _MAX_VECTOR:
                raise UnreadableError(
                    f"the deletion vector states {length:,} bytes", file=source.name
                )
            data = source.read(self.offset + 4, length + 4)
        if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
            raise UnreadableError(
                "the bytes of the deletion vector do not have its checksum", file=source.name
            )
        return data[:-4]


class PositionFile(Frozen):
    """A Parquet file with positions of deleted rows."""

    path: str
    data_file: str | None
    """The data file as the column `file_path` has it; None if all positions are those of one data
    file."""

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        deleted = np.zeros(len(rows), np.bool_)
        columns = ("pos",) if self.data_file is None else ("pos", "file_path")
        with open_batches(self.path, columns, "position delete file") as batches:
            for batch in batches:
                if self.data_file is not None:
                    batch = batch.filter(
                        compute.equal(batch.column("file_path").cast(pa.string()), self.data_file)
                    )
                positions = batch.column("pos").cast(pa.int64()).to_numpy(zero_copy_only=False)
                places = np.minimum(np.searchsorted(rows, positions), len(rows) - 1)
                deleted[places[rows[places] == positions]] = True
        return deleted


class Positions(Frozen):
    """Positions of deleted rows, which the catalog has."""

    rows: tuple[int, ...]

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.isin(rows, np.asarray(self.rows, np.int64))


def _find_in_vector(data: bytes, count: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these row numbers, which ascend, a deletion vector of `count` rows has.
    Raises ValueError and IndexError.

    No container is expanded: a few bytes may state billions of rows.
    """
    at = total = 0

    def take(kind: str, number: int = 1) -> NDArray[Any]:
        nonlocal at
        values = np.frombuffer(data, kind, number, at)
        at += values.nbytes
        return values

    deleted = np.zeros(len(rows), np.bool_)
    high, low = rows >> 16, (rows & 0xFFFF).astype(np.uint16)
    if take("<u4")[0] != _MAGIC:
        raise ValueError
    for _ in range(int(take("<u8")[0])):
        first = int(take("<u4")[0]) << 16
        cookie = int(take("<u4")[0])
        has_runs = cookie & 0xFFFF == _WITH_RUNS
        size = (cookie >> 16) + 1 if has_runs else int(take("<u4")[0])
        if size > _MAX_CONTAINERS or not (has_runs or cookie == _WITHOUT_RUNS):
            raise ValueError
        runs = (
            np.unpackbits(take("u1", (size + 7) // 8), count=size, bitorder="little")
            if has_runs
            else np.zeros(size, np.uint8)
        )
        containers = take("<u2", 2 * size).reshape(-1, 2)
        take("<u4", size if not has_runs or size >= 4 else 0)  # offsets of the containers
        for (key, last), is_run in zip(containers.tolist(), runs.tolist(), strict=True):
            start, end = np.searchsorted(high, (first | key, (first | key) + 1))
            wanted = low[start:end]
            if is_run:
                starts, lengths = take("<u2", 2 * int(take("<u2")[0])).reshape(-1, 2).T
                place = np.searchsorted(starts, wanted, "right") - 1
                deleted[start:end] |= (place >= 0) & (wanted - starts[place] <= lengths[place])
            elif last < _LARGEST_ARRAY:
                deleted[start:end] |= np.isin(wanted, take("<u2", last + 1))
            else:
                deleted[start:end] |= (take("u1", 8192)[wanted >> 3] >> (wanted & 7) & 1).astype(
                    np.bool_
                )
            total += last + 1
    if total != count or at != len(data):
        raise ValueError
    return deleted


@contextmanager
def open_batches(
    path: str, columns: tuple[str, ...], noun: str
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Open a Parquet file of a table's metadata, and read those of these columns that it has, batch
    by batch.

    The block uses the batches, because pyarrow decodes some values only when they are used; its
    errors become UnreadableError.
    """
    with ParquetFile.open(path) as file:
        footer = file.footer
        chunks = (
            footer.chunk(number, column.index)
            for number in range(footer.num_row_groups)
            for column in footer.columns
        )
        try:
            # A small file may state pages of gigabytes.
            with open_checked(
                file.source.open_arrow,
                [chunk for chunk in chunks if chunk is not None],
                file.limit.ensure,
            ) as stream:
                reader = parquet.ParquetFile(stream)
                present = set(reader.schema_arrow.names)
                names = [column for column in columns if column.partition(".")[0] in present]
                yield reader.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)
        except (
            pa.ArrowException,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
        ) as error:
            text = " ".join(str(error).split())[:200]
            raise UnreadableError(f"the {noun} cannot be read: {text}", file=path) from error
