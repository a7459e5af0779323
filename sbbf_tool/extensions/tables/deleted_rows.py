"""Rows that a table has deleted without rewriting their data file: by deletion vectors, position
delete files, or rows of a catalog.

Each class is a `file.table_file.Deletes`: it is sent to the worker that has found rows of the data
file, and reads only there. A deletion vector is a Roaring bitmap in the portable form for 64 bits,
the same for Delta (PROTOCOL.md, "Deletion Vector Format"), Iceberg (Puffin specification,
"deletion-vector-v1") and DuckLake.
"""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.row_file import PYARROW_ERRORS
from sbbf_tool.file.table_file import Deletes
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.checked_streams import open_checked
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.storage.source import Source

_BATCH_ROWS = 256
"""Few, because a dictionary of a megabyte may hold one value, which each row then has."""
_MOST_BYTES = 1 << 30
_MOST_BYTES_PER_ROW = 1 << 16
"""Bytes of values beyond the first gibibyte that a row has on average."""
_MAGIC = 1681511377
_MAX_VECTOR = 1 << 30
"""Maximum number of bytes of a deletion vector that is read: more than the vector of two billion
rows can have."""
_WITH_RUNS = 12347
_WITHOUT_RUNS = 12346
_MAX_CONTAINERS = 1 << 16
_LARGEST_ARRAY = 4096
"""Number of values of a container above which it is a bitset."""


class Vector(Frozen, Deletes):
    """A deletion vector: its bytes, or a file that has at this offset its length in four bytes, the
    vector, and its CRC-32."""

    count: int
    """Number of deleted rows that the table records."""
    path: str | None = None
    offset: int = 0
    data: bytes = b""

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self.path is None:
            return self._find(self.data, rows)
        with places.open_source(self.path) as source:
            return self._find(self._read(source), rows)

    def read(self, source: Source) -> bytes:
        """Read the vector, without length and checksum, from the file, which is open. Raises
        UnreadableError if it is damaged."""
        data = self._read(source)
        self._find(data, np.zeros(0, np.int64))
        return data

    def _find(self, data: bytes, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        try:
            return _find_in_vector(data, self.count, rows)
        except (ValueError, IndexError):
            raise UnreadableError("the deletion vector is damaged", file=self.path) from None

    def _read(self, source: Source) -> bytes:
        length = int.from_bytes(source.read(self.offset, 4), "big")
        if length > _MAX_VECTOR:
            raise UnreadableError(f"the deletion vector states {length:,} bytes", file=source.name)
        data = source.read(self.offset + 4, length + 4)
        if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
            raise UnreadableError(
                "the bytes of the deletion vector do not have its checksum", file=source.name
            )
        return data[:-4]


def build_vector(rows: NDArray[np.int64]) -> bytes:
    """Build a deletion vector, without length and checksum, of these row numbers, which ascend and
    are not negative."""
    heads = defaultdict(list)
    bodies = defaultdict(list)
    starts = np.flatnonzero(np.diff(rows >> 16, prepend=-1))
    for values in np.split(rows, starts[1:]):
        first = int(values[0])
        key = first >> 32
        low = (values & 0xFFFF).astype("<u2")
        heads[key].append(struct.pack("<HH", first >> 16 & 0xFFFF, len(low) - 1))
        if len(low) > _LARGEST_ARRAY:
            bits = np.zeros(_MAX_CONTAINERS, np.uint8)
            bits[low] = 1
            bodies[key].append(np.packbits(bits, bitorder="little").tobytes())
        else:
            bodies[key].append(low.tobytes())
    parts = [struct.pack("<IQ", _MAGIC, len(heads))]
    for key, containers in bodies.items():
        number = len(containers)
        offsets = 8 + 8 * number + np.cumsum([0, *map(len, containers[:-1])])
        parts += [struct.pack("<III", key, _WITHOUT_RUNS, number), *heads[key]]
        parts += [offsets.astype("<u4").tobytes(), *containers]
    return b"".join(parts)


class PositionFile(Frozen, Deletes):
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
                positions = self._positions(batch)
                places = np.minimum(np.searchsorted(rows, positions), len(rows) - 1)
                deleted[places[rows[places] == positions]] = True
        return deleted

    def _positions(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return the positions in the data file that a batch has."""
        if self.data_file is not None:
            paths = batch.column("file_path").cast(pa.string())
            batch = batch.filter(compute.equal(paths, self.data_file))
        positions = batch.column("pos").cast(pa.int64())
        return np.asarray(positions.to_numpy(zero_copy_only=False))


class Positions(Frozen, Deletes):
    """Positions of deleted rows, which the catalog has."""

    rows: tuple[int, ...]

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.isin(rows, np.asarray(self.rows, np.int64))


def _find_in_vector(data: bytes, count: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these row numbers, which ascend, a deletion vector of `count` rows has.
    Raises ValueError and IndexError.

    No container is expanded: a few bytes may state billions of rows.
    """
    reader = _VectorReader(data)
    if reader.take_number("<u4") != _MAGIC:
        raise ValueError
    deleted = np.zeros(len(rows), np.bool_)
    high = rows >> 16
    low = (rows & 0xFFFF).astype(np.uint16)
    total = 0
    for _ in range(reader.take_number("<u8")):
        first = reader.take_number("<u4") << 16
        for container in reader.take_containers():
            key = first | container.key
            start, end = np.searchsorted(high, (key, key + 1))
            deleted[start:end] |= reader.find_in_container(container, low[start:end])
            total += container.size
    if total != count or reader.at != len(data):
        raise ValueError
    return deleted


class _Container(NamedTuple):
    """The head of a container of a Roaring bitmap: values with the same upper bits."""

    key: int
    """Bits 16 to 31 of the values."""
    size: int
    """Number of values."""
    is_run: bool


class _VectorReader:
    """The bytes of a deletion vector, read from the first to the last. Raises ValueError and
    IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, kind: str, number: int = 1) -> NDArray[Any]:
        values = np.frombuffer(self._data, kind, number, self.at)
        self.at += values.nbytes
        return values

    def take_number(self, kind: str) -> int:
        return int(self.take(kind)[0])

    def take_containers(self) -> list[_Container]:
        """Read the head of a bitmap of 32 bits."""
        cookie = self.take_number("<u4")
        has_runs = cookie & 0xFFFF == _WITH_RUNS
        size = (cookie >> 16) + 1 if has_runs else self.take_number("<u4")
        if size > _MAX_CONTAINERS or not (has_runs or cookie == _WITHOUT_RUNS):
            raise ValueError
        if has_runs:
            flags = self.take("u1", (size + 7) // 8)
            runs = np.unpackbits(flags, count=size, bitorder="little")
        else:
            runs = np.zeros(size, np.uint8)
        heads = self.take("<u2", 2 * size).reshape(-1, 2)
        if not has_runs or size >= 4:
            self.take("<u4", size)  # offsets of the containers
        return [
            _Container(key, last + 1, bool(is_run))
            for (key, last), is_run in zip(heads.tolist(), runs.tolist(), strict=True)
        ]

    def find_in_container(
        self, container: _Container, wanted: NDArray[np.uint16]
    ) -> NDArray[np.bool_]:
        """Read the next container; return which of these lower halves of row numbers it has."""
        if container.is_run:
            pairs = self.take("<u2", 2 * self.take_number("<u2")).reshape(-1, 2)
            starts, lengths = pairs.T
            place = np.searchsorted(starts, wanted, "right") - 1
            is_in_run: NDArray[np.bool_] = wanted - starts[place] <= lengths[place]
            return is_in_run & (place >= 0)
        if container.size <= _LARGEST_ARRAY:
            return np.isin(wanted, self.take("<u2", container.size))
        bits = self.take("u1", 8192)[wanted >> 3] >> (wanted & 7) & 1
        return np.asarray(bits, np.bool_)


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
        chunks = file.footer.open_chunks()
        try:
            # A small file may state pages of gigabytes.
            with open_checked(file.source.open_arrow, chunks, file.context.limit.ensure) as stream:
                reader = parquet.ParquetFile(stream)
                present = set(reader.schema_arrow.names)
                names = [column for column in columns if column.partition(".")[0] in present]
                yield _limit(reader.iter_batches(_BATCH_ROWS, columns=names, use_threads=False))
        except PYARROW_ERRORS as error:
            text = " ".join(str(error).split())[:200]
            raise UnreadableError(f"the {noun} cannot be read: {text}", file=path) from error


def _limit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Raise UnreadableError where the values are far larger than those of metadata."""
    remaining = _MOST_BYTES
    for batch in batches:
        remaining += len(batch) * _MOST_BYTES_PER_ROW - batch.nbytes
        if remaining < 0:
            raise UnreadableError("its values take more than a gibibyte")
        yield batch
