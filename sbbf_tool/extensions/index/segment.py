"""A segment of an index: two Parquet files that never change, one with the units, one with the
blocks of their filters.

A unit is the filter of a row group, or of several row groups of a file. Units whose columns have
the same type, and whose filters have the same number of blocks, form a class. The file of blocks
has a row group per class: block 0 of all its units, then block 1 of all, and so on, a page for
each. A page header has a constant length, since its checksum takes five bytes whatever its value
is, so the place of a page is computed, and one read returns what a key needs of a class. The file
of units has the units of the first class, then of the next ones, and last those without filter,
which may hold any value. `docs/reference/index-format.md` describes both files to the byte.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import starmap
from typing import Any, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.extensions.index.segment_pages import (
    BLOCK,
    KINDS,
    MOST_HEADER,
    UNITS_PER_ROW_GROUP,
    body_bytes_of,
    build_page_header,
    decode,
    page_bytes_of,
    place_of,
)
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical, Reading
from sbbf_tool.storage import places
from sbbf_tool.storage.source import Source

UNITS = ".units.parquet"
BLOCKS = ".blocks.parquet"
_MOST_VALUE = 1 << 16
"""Bytes of a value, on average over a page."""
_TESTED_AT_ONCE = 1 << 16
"""Units among which the upper half of a hash can select each."""


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
        stated = self.type["logical"]
        reading = Reading(**self.type["reading"])
        physical = str(self.type["physical"])
        length = int(self.type["length"])
        logical = None if stated is None else Logical(**stated)
        return Column(0, ("",), ("",), physical, length, logical, 1, 0, reading=reading)


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
    start = 0
    low = h & 0xFFFF_FFFF
    for number, (count, step) in enumerate(parts_of(len(run) // BLOCK_BYTES)):
        part = run[start * BLOCK_BYTES : (start + count) * BLOCK_BYTES]
        start += count
        if bases is None:
            hashes = array("Q", range(low, count * step, step))
        else:
            hashes = bases[number] | low
        yield BloomFilter(part).check_hashes(hashes)


class _RowGroup(NamedTuple):
    """A row group of the file of units."""

    number: int
    first: int
    """Position of its first unit."""
    units: int


class OpenSegment:
    """The two files of a segment, open for reading as they are needed. Use as a context manager."""

    def __init__(
        self, path: str, units: int, classes: Sequence[UnitClass], lengths: tuple[int, int]
    ) -> None:
        """`path` is that of the segment without the ends of its files' names, which have these
        lengths."""
        self.path = path
        self.units = units
        self.classes = classes
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
        if [column.name for column in file.footer.columns] != list(KINDS):
            raise damaged("the columns are not those of an index", file.name)
        num_units = 0
        is_usual = True
        for number in range(file.footer.num_row_groups):
            count = file.footer.num_rows(number) or 0
            num_units += count
            is_usual = is_usual and 0 < count <= UNITS_PER_ROW_GROUP
        if num_units != self.units or not is_usual:
            raise damaged(f"the file has {num_units:,} units, and not {self.units:,}", file.name)
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
        _ = self._units  # which is judged when it is opened
        size = self._blocks.size
        for group in self.classes:
            offset, length = self._span(group, group.blocks - 1)
            if offset + length > size:
                raise damaged("a class is outside the file", self.path + BLOCKS)

    def run(self, group: UnitClass, block: int) -> memoryview:
        """Read one block of all units of a class. Raises UnreadableError, if the bytes are not
        those that were written."""
        offset, _ = self._span(group, block)
        place = place_of(self._name, BLOCK, group.first, block)
        return self._page(self._blocks, offset, group.units * BLOCK_BYTES, group.units, place)

    def expect(self, runs: Iterable[tuple[UnitClass, int]]) -> None:
        """Announce the runs of these blocks, which are fetched concurrently."""
        self._blocks.prefetch(starmap(self._span, runs))

    def _span(self, group: UnitClass, block: int) -> tuple[int, int]:
        """Return the offset and the length of the page of a block of a class, in bytes."""
        length = page_bytes_of(group.units * BLOCK_BYTES, group.units)
        return group.offset + block * length, length

    def _page(
        self, source: Source, offset: int, body_bytes: int, values: int, place: bytes
    ) -> memoryview:
        """Read a page without its header, which has the checksum, and the place to which the page
        belongs."""
        data = memoryview(source.read(offset, page_bytes_of(body_bytes, values)))
        header_bytes = len(data) - body_bytes
        body = data[header_bytes:]
        header = build_page_header(body_bytes, values, zlib.crc32(body), place)
        if data[:header_bytes] != header:
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
        file = self._units
        row_groups = list(self._choose(only))
        all_names = list(KINDS)
        spans: dict[tuple[int, str], tuple[int, int]] = {}
        ranges = []
        num_bytes = 0
        for group in row_groups:
            for name in names:
                meta = file.footer.chunk_meta(group.number, all_names.index(name))
                start, end = meta.page_range
                spans[group.number, name] = (start, end)
                ranges.append((start, end - start))
                num_bytes += end - start
        if num_bytes > file.source.size:
            raise damaged("pages overlap", file.name)
        file.source.prefetch(ranges)
        for group in row_groups:
            columns = [self._decode(name, group, *spans[group.number, name]) for name in names]
            positions = range(group.first, group.first + group.units)
            yield from zip(positions, *columns, strict=True)

    def _choose(self, only: Callable[[range], bool]) -> Iterator[_RowGroup]:
        """Yield the row groups of the file of units whose range of positions is wanted."""
        footer = self._units.footer
        first = 0
        for number in range(footer.num_row_groups):
            count = footer.num_rows(number) or 0
            if only(range(first, first + count)):
                yield _RowGroup(number, first, count)
            first += count

    def _decode(self, column: str, group: _RowGroup, start: int, end: int) -> list[Any]:
        """Read the values of a column of a row group from the page in these bytes."""
        source = self._units.source
        length = end - start
        if length > MOST_HEADER + group.units * _MOST_VALUE:
            raise damaged("a page is too large", source.name, place=f"byte {start:,}")
        body_bytes = body_bytes_of(length, group.units)
        place = place_of(self._name, column, group.first)
        try:
            page = self._page(source, start, body_bytes, group.units, place)
            values = decode(KINDS[column], bytes(page), group.units)
        except ValueError:
            values = []
        if len(values) != group.units:
            raise damaged(
                "the page has other values than its row group", source.name, place=f"byte {start:,}"
            )
        return values
