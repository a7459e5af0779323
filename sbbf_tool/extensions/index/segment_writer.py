"""Writing the two files of a segment; see `segment`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES
from sbbf_tool.extensions.index.segment_pages import (
    BLOCK,
    BYTES,
    FINGERPRINT_BYTES,
    FIXED,
    I32,
    I64,
    KINDS,
    TEXT,
    UNITS_PER_ROW_GROUP,
    Unit,
    build_page,
    encode,
    place_of,
)
from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    ConvertedType,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    RowGroup,
    SchemaElement,
    Type,
)
from sbbf_tool.parquet.structs import build_struct

_TYPES = {
    TEXT: Type.BYTE_ARRAY,
    BYTES: Type.BYTE_ARRAY,
    I32: Type.INT32,
    I64: Type.INT64,
    FIXED: Type.FIXED_LEN_BYTE_ARRAY,
}


class _FileColumn(NamedTuple):
    name: str
    kind: str
    length: int
    """Bytes of a value of fixed length, 0 for others."""


class _PagedFile:
    """A Parquet file that is written row group by row group, with the pages as they are given."""

    def __init__(self, stream: IO[bytes], columns: Sequence[_FileColumn]) -> None:
        self._stream = stream
        self._columns = columns
        self._row_groups: list[RowGroup] = []
        self.position = len(MAGIC)
        stream.write(MAGIC)

    def add(self, rows: int, chunks: Iterable[Iterable[bytes]]) -> None:
        """Write a row group of so many rows: the pages of each column."""
        first = self.position
        columns = []
        for column, pages in zip(self._columns, chunks, strict=True):
            chunk = self._write_chunk(column, rows, pages)
            columns.append(chunk)
        self._row_groups.append(
            RowGroup(columns=columns, total_byte_size=self.position - first, num_rows=rows)
        )

    def _write_chunk(self, column: _FileColumn, values: int, pages: Iterable[bytes]) -> ColumnChunk:
        start = self.position
        for page in pages:
            self._stream.write(page)
            self.position += len(page)
        meta = ColumnMetaData(
            type=_TYPES[column.kind],
            encodings=[Encoding.PLAIN, Encoding.RLE],
            path_in_schema=[column.name],
            codec=CompressionCodec.UNCOMPRESSED,
            num_values=values,
            total_uncompressed_size=self.position - start,
            total_compressed_size=self.position - start,
            data_page_offset=start,
        )
        return ColumnChunk(file_offset=0, meta_data=meta)

    def end(self) -> int:
        """Write the footer; return the length of the file."""
        leaves = list(map(_build_leaf, self._columns))
        footer = build_struct(
            FileMetaData(
                version=1,
                schema=[SchemaElement(name="schema", num_children=len(leaves)), *leaves],
                num_rows=sum(group.num_rows for group in self._row_groups),
                row_groups=self._row_groups,
                created_by="sbbf",
            )
        )
        tail = footer + build_tail(footer)
        self._stream.write(tail)
        return self.position + len(tail)


def _build_leaf(column: _FileColumn) -> SchemaElement:
    return SchemaElement(
        name=column.name,
        type=_TYPES[column.kind],
        type_length=column.length or None,
        repetition_type=FieldRepetitionType.REQUIRED,
        converted_type=ConvertedType.UTF8 if column.kind == TEXT else None,
    )


def write_units(stream: IO[bytes], segment: str, units: Iterable[Unit]) -> int:
    """Write the file of units of a segment with this name; return its length."""
    columns = []
    for name, kind in KINDS.items():
        length = FINGERPRINT_BYTES if kind == FIXED else 0
        columns.append(_FileColumn(name, kind, length))
    file = _PagedFile(stream, columns)
    rows: list[Unit] = []
    first = 0

    def write() -> None:
        nonlocal first
        count = len(rows)
        chunks = []
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            place = place_of(segment, column.name, first)
            chunks.append([build_page(encode(column.kind, values), count, place)])
        file.add(count, chunks)
        first += count
        rows.clear()

    for unit in units:
        rows.append(unit)
        if len(rows) == UNITS_PER_ROW_GROUP:
            write()
    if rows:
        write()
    return file.end()


class ClassBlocks(NamedTuple):
    """The blocks of the filters of one class, in the order in which they are written."""

    blocks: int
    """Number of blocks of each filter."""
    units: int
    """Number of filters."""
    runs: Iterable[bytes]
    """For each block number, the run: the blocks with this number of all units, joined."""


def write_blocks(
    stream: IO[bytes], segment: str, classes: Iterable[ClassBlocks]
) -> tuple[int, list[int]]:
    """Write the file of blocks of a segment with this name: a row group for each class, with a page
    for each run. Return the length of the file, and the offset of each row group."""
    file = _PagedFile(stream, [_FileColumn(BLOCK, FIXED, BLOCK_BYTES)])
    offsets = []
    first_unit = 0
    for blocks, units, runs in classes:
        offsets.append(file.position)
        pages = _build_block_pages(segment, first_unit, units, runs)
        file.add(blocks * units, [pages])
        first_unit += units
    return file.end(), offsets


def _build_block_pages(
    segment: str, first_unit: int, units: int, runs: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield the page of each run of a class, whose first unit is at this position in the
    segment."""
    for block, run in enumerate(runs):
        yield build_page(run, units, place_of(segment, BLOCK, first_unit, block))
