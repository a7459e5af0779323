"""A segment of an index: two Parquet files that never change, one with the units, one with the
blocks of their filters.

A unit is the filter of a row group, or of several row groups of a file. Units whose columns have
the same type, and whose filters have the same number of blocks, form a class. The file of blocks
has a row group per class: block 0 of all its units, then block 1 of all, and so on, a page for
each. A page header has a constant length, since its checksum takes five bytes whatever its value
is, so the place of a page is computed, and one read returns what a key needs of a class. The file
of units has the units of the first class, then of the next ones, and last those without filter,
which may hold any value. A header also states where its page belongs, so that a page of another
segment, or of another place, is not taken for it. `docs/reference/index-format.md` describes both
files to the byte.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import IO, Any, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    ConvertedType,
    DataPageHeader,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    PageHeader,
    PageType,
    RowGroup,
    SchemaElement,
    Type,
)
from sbbf_tool.parquet.logical import Logical, Reading
from sbbf_tool.parquet.structs import build_struct
from sbbf_tool.storage import places
from sbbf_tool.storage.source import Source

UNITS, BLOCKS = ".units.parquet", ".blocks.parquet"
WHOLE_FILE = NO_CLASS = UNKNOWN_ROWS = -1
FINGERPRINT_BYTES = 16
_UNITS_PER_ROW_GROUP = 4096
_MOST_HEADER, _MOST_VALUE = 64, 1 << 16
"""Bytes of a page header, and of a value, on average over a page."""
_LONGEST_CHECKSUM = -(2**31)
"""The checksum whose varint has the most bytes, and these bytes, which occur in no other field of a
page header."""
_ITS_BYTES = b"\xff\xff\xff\xff\x0f"
_PLACE_BYTES = 8
_PLACE_FIELD = bytes((0x1C, 0x28, _PLACE_BYTES))
"""Beginning of the statistics of a data page in Thrift's compact protocol: the field `min`, a
binary, and its length. That field is deprecated, and without `max` no reader uses it. A field of
another number would do as well, but Polars and fastparquet read no header with one."""
_TESTED_AT_ONCE = 1 << 16
"""Units among which the upper half of a hash can select each."""


class Unit(NamedTuple):
    """A row of the file of units."""

    path: str
    row_group: int
    """Number of the row group, or `WHOLE_FILE`."""
    file_bytes: int
    version: str
    """What changes with the content of the file: its ETag, or its times and its inode."""
    rows: int
    """Number of rows, or `UNKNOWN_ROWS`."""
    has_bounds: int
    """1 if `low` and `high` are bounds of the values, as plain bytes of the column; otherwise 0."""
    low: bytes
    high: bytes
    blocks: int
    number: int
    """Number of the class, or `NO_CLASS` for a unit that may hold any value."""
    position: int
    """Position in the class."""
    fingerprint: bytes
    """Hash of path, length and version; see `lake_index.fingerprint_of`."""
    skipped: str
    """Why a listing skips the file, such as a link; empty for other files."""


_TEXT, _I32, _I64, _BYTES, _FIXED = "text", "i", "q", "bytes", "fixed"
_KINDS = {
    "path": _TEXT, "row_group": _I32, "file_bytes": _I64, "version": _TEXT, "rows": _I64, "has_bounds": _I32, "low": _BYTES,
    "high": _BYTES, "blocks": _I32, "number": _I32, "position": _I32, "fingerprint": _FIXED,
    "skipped": _TEXT,
}  # fmt: skip
"""The kind of each column of the file of units."""
_BLOCK = "block"
"""The column of the file of blocks."""
_TYPES = {
    _TEXT: Type.BYTE_ARRAY,
    _BYTES: Type.BYTE_ARRAY,
    _I32: Type.INT32,
    _I64: Type.INT64,
    _FIXED: Type.FIXED_LEN_BYTE_ARRAY,
}


def damaged(message: str, file: str, place: str | None = None) -> UnreadableError:
    """Return the error of a damaged file of an index."""
    return UnreadableError(
        f"the index is damaged: {message}", file=file, place=place, hint=rebuild_hint(file)
    )


def rebuild_hint(file: str) -> str:
    """Return what to do about an index of which a file cannot be used."""
    folder = os.path.dirname(file) or "of the index"
    return f"remove the folder {folder}, then build it again with sbbf index"


class UnitClass(Frozen):
    """Units of one segment with the same type and number of blocks, and where their blocks are."""

    type: dict[str, Any]
    """Type of the column as plain values; see `describe_type`. Empty for files without the column,
    in which it is null."""
    blocks: int
    units: int
    offset: int
    """First byte of the class in the file of blocks."""
    first: int
    """Position of its first unit in the file of units."""

    @cached_property
    def column(self) -> Column:
        """The column as questions need it. Raises KeyError, TypeError and ValueError for a type
        that no column has."""
        logical, reading = self.type["logical"], Reading(**self.type["reading"])
        kind, length = str(self.type["physical"]), int(self.type["length"])
        return Column(
            0,
            ("",),
            ("",),
            kind,
            length,
            None if logical is None else Logical(**logical),
            1,
            0,
            reading=reading,
        )


def describe_type(column: Column) -> dict[str, Any]:
    """Return the parts of a column on which hashes of values depend."""
    logical = None if column.logical is None else column.logical._asdict()
    return {
        "physical": column.physical,
        "length": column.type_length,
        "logical": logical,
        "reading": column.reading._asdict(),
    }


def parts_of(units: int) -> Iterator[tuple[int, int]]:
    """Yield, for each part of a run, its number of units, and the distance of the hashes that
    select them one after the other."""
    for start in range(0, units, _TESTED_AT_ONCE):
        count = min(_TESTED_AT_ONCE, units - start)
        yield count, -(-(1 << 32) // count) << 32


def find_units(run: memoryview, h: int, bases: Sequence[Any] | None = None) -> Iterator[bytes]:
    """Yield, part by part, a byte for each block of a run: 1 if it has all bits of hash `h`,
    otherwise 0.

    A run is itself the bytes of a filter. The upper half of a hash selects the block of a unit, and
    the lower half is that of `h`. `bases` are the hashes of each part without lower half, as arrays
    of numpy, for many calls.
    """
    start, low = 0, h & 0xFFFF_FFFF
    for number, (count, step) in enumerate(parts_of(len(run) // BLOCK_BYTES)):
        part = run[start * BLOCK_BYTES : (start + count) * BLOCK_BYTES]
        start += count
        yield BloomFilter(part).check_hashes(
            array("Q", range(low, count * step, step)) if bases is None else bases[number] | low
        )


def place_of(segment: str, column: str, first: int, block: int = 0) -> bytes:
    """Return what a page header states of the place of the page: a hash of the name of the segment,
    the column, the position of the first unit, and the number of the block.

    The names of segments are random: no other index has one of the same name.
    """
    text = "\0".join((segment, column, str(first), str(block)))
    return blake2b(text.encode(), digest_size=_PLACE_BYTES).digest()


def build_page_header(
    page_bytes: int, values: int, checksum: int, place: bytes = bytes(_PLACE_BYTES)
) -> bytes:
    """Build the header of a PLAIN page without levels. Its length depends on the first two numbers
    alone."""
    header = build_struct(
        PageHeader(
            type=PageType.DATA_PAGE,
            uncompressed_page_size=page_bytes,
            compressed_page_size=page_bytes,
            crc=_LONGEST_CHECKSUM,
            data_page_header=DataPageHeader(
                num_values=values,
                encoding=Encoding.PLAIN,
                definition_level_encoding=Encoding.RLE,
                repetition_level_encoding=Encoding.RLE,
            ),
        )
    )
    signed = checksum - (1 << 32) if checksum >> 31 else checksum
    folded = (signed << 1 ^ signed >> 31) & 0xFFFF_FFFF
    # A varint may have bytes that say no more: all five are there.
    header = header.replace(
        _ITS_BYTES,
        bytes((folded >> shift & 0x7F) | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7)),
        1,
    )
    # The last bytes end the structs of the data page and of the page.
    return b"".join((header[:-2], _PLACE_FIELD, place, b"\0", header[-2:]))


def _build_page(data: bytes | memoryview, values: int, place: bytes) -> bytes:
    return b"".join((build_page_header(len(data), values, zlib.crc32(data), place), data))


class _Columns:
    """A Parquet file that is written row group by row group, with the pages as they are given."""

    def __init__(self, stream: IO[bytes], columns: Sequence[tuple[str, str, int]]) -> None:
        self._stream, self._columns = stream, columns
        self._row_groups: list[RowGroup] = []
        self.position = len(MAGIC)
        stream.write(MAGIC)

    def add(self, rows: int, chunks: Iterable[tuple[int, Iterable[bytes]]]) -> None:
        """Write a row group: for each column, its number of values and its pages."""
        written, first = [], self.position
        for (name, kind, _), (values, pages) in zip(self._columns, chunks, strict=True):
            start = self.position
            for page in pages:
                self._stream.write(page)
                self.position += len(page)
            meta = ColumnMetaData(
                type=_TYPES[kind],
                encodings=[Encoding.PLAIN, Encoding.RLE],
                path_in_schema=[name],
                codec=CompressionCodec.UNCOMPRESSED,
                num_values=values,
                total_uncompressed_size=self.position - start,
                total_compressed_size=self.position - start,
                data_page_offset=start,
            )
            written.append(ColumnChunk(file_offset=0, meta_data=meta))
        self._row_groups.append(
            RowGroup(columns=written, total_byte_size=self.position - first, num_rows=rows)
        )

    def end(self) -> int:
        """Write the footer; return the length of the file."""
        leaves = [
            SchemaElement(
                name=name,
                type=_TYPES[kind],
                type_length=length or None,
                repetition_type=FieldRepetitionType.REQUIRED,
                converted_type=ConvertedType.UTF8 if kind == _TEXT else None,
            )
            for name, kind, length in self._columns
        ]
        rows = sum(group.num_rows for group in self._row_groups)
        schema = [SchemaElement(name="schema", num_children=len(leaves)), *leaves]
        footer = build_struct(
            FileMetaData(
                version=1,
                schema=schema,
                num_rows=rows,
                row_groups=self._row_groups,
                created_by="sbbf",
            )
        )
        tail = footer + build_tail(footer)
        self._stream.write(tail)
        return self.position + len(tail)


def write_units(stream: IO[bytes], segment: str, units: Iterable[Unit]) -> int:
    """Write the file of units of a segment with this name; return its length."""
    file = _Columns(
        stream,
        [(name, kind, FINGERPRINT_BYTES * (kind == _FIXED)) for name, kind in _KINDS.items()],
    )
    rows: list[Unit] = []
    first = 0

    def write() -> None:
        nonlocal first
        count = len(rows)
        chunks: list[tuple[int, list[bytes]]] = []
        for (name, kind), values in zip(_KINDS.items(), zip(*rows, strict=True), strict=True):
            place = place_of(segment, name, first)
            chunks.append((count, [_build_page(_encode(kind, values), count, place)]))
        file.add(count, chunks)
        first += count
        rows.clear()

    for unit in units:
        rows.append(unit)
        if len(rows) == _UNITS_PER_ROW_GROUP:
            write()
    if rows:
        write()
    return file.end()


def write_blocks(
    stream: IO[bytes], segment: str, classes: Iterable[tuple[int, int, Iterable[bytes]]]
) -> tuple[int, list[int]]:
    """Write the file of blocks of a segment with this name; for each class its number of blocks and
    of units, and the run of each block. Return length and offsets."""
    file = _Columns(stream, [(_BLOCK, _FIXED, BLOCK_BYTES)])
    offsets = []
    first = 0
    for blocks, units, runs in classes:
        offsets.append(file.position)
        file.add(blocks * units, [(blocks * units, _build_runs(segment, first, units, runs))])
        first += units
    return file.end(), offsets


def _build_runs(segment: str, first: int, units: int, runs: Iterable[bytes]) -> Iterator[bytes]:
    for block, run in enumerate(runs):
        yield _build_page(run, units, place_of(segment, _BLOCK, first, block))


def _encode(kind: str, values: Sequence[Any]) -> bytes:
    if kind in (_I32, _I64):
        return b"".join(
            value.to_bytes(4 if kind == _I32 else 8, "little", signed=True) for value in values
        )
    if kind == _FIXED:
        return b"".join(values)
    plains = (value.encode() for value in values) if kind == _TEXT else values
    return b"".join(
        chain.from_iterable((len(plain).to_bytes(4, "little"), plain) for plain in plains)
    )


def _decode(kind: str, data: bytes, count: int) -> list[Any]:
    if kind in (_I32, _I64, _FIXED):
        width = {_I32: 4, _I64: 8, _FIXED: FINGERPRINT_BYTES}[kind]
        parts = (
            data[at : at + width] for at in range(0, min(len(data), (count + 1) * width), width)
        )
        return (
            list(parts)
            if kind == _FIXED
            else [int.from_bytes(part, "little", signed=True) for part in parts]
        )
    values, at = list[Any](), 0
    while at < len(data) and len(values) <= count:
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        values.append(data[at + 4 : end].decode() if kind == _TEXT else data[at + 4 : end])
        at = end
    return values


class OpenSegment:
    """The two files of a segment, open for reading as they are needed. Use as a context manager."""

    def __init__(
        self, path: str, units: int, classes: Sequence[UnitClass], lengths: tuple[int, int]
    ) -> None:
        """`path` is that of the segment without the ends of its files' names, which have these
        lengths."""
        self.path, self.units, self.classes = path, units, classes
        self._name = path.rpartition("/")[2]
        self._lengths = lengths
        self._open = ExitStack()

    def __enter__(self) -> OpenSegment:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._open.close()

    @cached_property
    def _blocks(self) -> Source:
        return self._open_whole(self.path + BLOCKS, self._lengths[1])

    @cached_property
    def _units(self) -> ParquetFile:
        file = ParquetFile.of(self._open_whole(self.path + UNITS, self._lengths[0]))
        if [column.name for column in file.footer.columns] != list(_KINDS):
            raise damaged("the columns are not those of an index", file.name)
        counts = [file.footer.num_rows(number) or 0 for number in range(file.footer.num_row_groups)]
        if sum(counts) != self.units or not all(
            0 < count <= _UNITS_PER_ROW_GROUP for count in counts
        ):
            raise damaged(f"the file has {sum(counts):,} units, and not {self.units:,}", file.name)
        return file

    def _open_whole(self, name: str, length: int) -> Source:
        try:
            source = self._open.enter_context(places.open_source(name))
        except MissingError as error:
            raise damaged(error.message, name) from None
        if source.size != length:
            raise damaged(f"the file has {source.size:,} bytes, and not {length:,}", source.name)
        return source

    def ensure_whole(self) -> None:
        """Raise UnreadableError if the files are not of the lengths that the index states, before
        memory is taken for their units."""
        _, size = self._units.source, self._blocks.size
        if any(sum(self._span(group, group.blocks - 1)) > size for group in self.classes):
            raise damaged("a class is outside the file", self.path + BLOCKS)

    def run(self, group: UnitClass, block: int) -> memoryview:
        """Read one block of all units of a class. Raises UnreadableError, if the bytes are not
        those that were written."""
        offset, _ = self._span(group, block)
        place = place_of(self._name, _BLOCK, group.first, block)
        return self._page(self._blocks, offset, group.units * BLOCK_BYTES, group.units, place)

    def expect(self, runs: Iterable[tuple[UnitClass, int]]) -> None:
        """Announce the runs of these blocks, which are fetched concurrently."""
        self._blocks.prefetch(self._span(*each) for each in runs)

    def _span(self, group: UnitClass, block: int) -> tuple[int, int]:
        length = _page_bytes(group.units * BLOCK_BYTES, group.units)
        return group.offset + block * length, length

    def _page(
        self, source: Source, offset: int, body_bytes: int, values: int, place: bytes
    ) -> memoryview:
        data = memoryview(source.read(offset, _page_bytes(body_bytes, values)))
        body = data[len(data) - body_bytes :]
        # The header has the checksum, and the place to which the page belongs.
        if data[: len(data) - body_bytes] != build_page_header(
            body_bytes, values, zlib.crc32(body), place
        ):
            raise damaged(
                "the bytes are not those that were written there",
                source.name,
                place=f"byte {offset:,}",
            )
        return body

    def read_units(
        self, *names: str, only: Callable[[range], bool] = lambda rows: True
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the position of each unit with the values of these columns; only of row groups
        whose range of positions is wanted."""
        file, start = self._units, 0
        indexes = [list(_KINDS).index(name) for name in names]
        wanted = []
        for number in range(file.footer.num_row_groups):
            count = file.footer.num_rows(number) or 0
            if only(range(start, start + count)):
                wanted.append((number, start, count))
            start += count
        spans = {
            (number, index): file.footer.chunk_meta(number, index).page_range
            for number, _, _ in wanted
            for index in indexes
        }
        if sum(end - begin for begin, end in spans.values()) > file.source.size:
            raise damaged("pages overlap", file.name)
        file.source.prefetch((begin, end - begin) for begin, end in spans.values())
        for number, first, count in wanted:
            columns = [
                self._decode(*spans[number, index], name, first, count)
                for name, index in zip(names, indexes, strict=True)
            ]
            yield from zip(range(first, first + count), *columns, strict=True)

    def _decode(self, start: int, end: int, column: str, first: int, count: int) -> list[Any]:
        source, length = self._units.source, end - start
        if length > _MOST_HEADER + count * _MOST_VALUE:
            raise damaged("a page is too large", source.name, place=f"byte {start:,}")
        body_bytes = next(
            (
                size
                for size in range(length, max(0, length - _MOST_HEADER), -1)
                if _page_bytes(size, count) == length
            ),
            0,
        )
        place = place_of(self._name, column, first)
        try:
            page = self._page(source, start, body_bytes, count, place)
            values = _decode(_KINDS[column], bytes(page), count)
        except ValueError:
            values = []
        if len(values) != count:
            raise damaged(
                "the page has other values than its row group", source.name, place=f"byte {start:,}"
            )
        return values


def _page_bytes(body_bytes: int, values: int) -> int:
    """Return the length of a page with its header."""
    return len(build_page_header(body_bytes, values, 0)) + body_bytes
