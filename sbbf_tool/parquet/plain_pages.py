"""The PLAIN form of values in a column chunk's pages (parquet-format README, "Data Pages";
Encodings.md, "Plain", "Dictionary Encoding").

    dictionary page               each distinct value once, in PLAIN form
    data page that refers to it   only values of the dictionary, so no byte of the page is read
    data page in PLAIN form       its values, after their levels, in the form that is hashed

So finding the set of a chunk's values needs no decoding, and no data page is read if all refer to
the dictionary; finding their rows needs levels and indices alone. `values.read_chunk`, which
decodes everything, handles pages of other encodings, codecs and sizes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import cramjam

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.parquet import levels
from sbbf_tool.parquet.codecs import CODECS
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import (
    ColumnMetaData,
    CompressionCodec,
    DataPageHeaderV2,
    Encoding,
    PageType,
)
from sbbf_tool.parquet.page_runs import SMALL_PAGE, PageRun, PageSpan, RunReader
from sbbf_tool.parquet.pages import (
    DICTIONARY_ENCODINGS,
    ChunkPages,
    StoredPage,
    page_range,
    read_page,
)
from sbbf_tool.parquet.plain_page import PlainPage, hash_byte_arrays

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_DICTIONARY_BYTES = 64 << 20
MAX_DATA_BYTES = 16 << 20
"""Larger pages are better read as part of the chunk's stream, in batches."""


# RLE and BIT_PACKED encode levels.
_ENCODINGS = {Encoding.PLAIN, *DICTIONARY_ENCODINGS, Encoding.RLE, Encoding.BIT_PACKED}


class NotPlainError(Exception):
    """The chunk has a page that this module does not read."""


Indices: TypeAlias = "tuple[Callable[[], NDArray[np.int64]], NDArray[np.uint32]]"
"""How to get the rows of the values of pages that refer to the dictionary, and their numbers
there."""
ReadIndices: TypeAlias = Callable[[], Indices]
"""Data pages that refer to the dictionary: returns their indices. Raises NotPlainError."""
_FEW_SMALL = 4
"""Small pages that refer to the dictionary after which the headers of several are read at once."""


def may_be_plain(column: Column, meta: ColumnMetaData) -> bool:
    """Return whether, according to the footer, this module can read every page of the chunk."""
    return _is_readable(column, meta) and _ENCODINGS.issuperset(meta.encodings or ())


def _is_readable(column: Column, meta: ColumnMetaData) -> bool:
    # In PLAIN form, a BOOLEAN is one bit, and a value of fixed length 0 has no bytes.
    has_bytes = column.width is not None or column.physical == "BYTE_ARRAY"
    return has_bytes and (meta.codec in CODECS or meta.codec == CompressionCodec.UNCOMPRESSED)


class _Parts(NamedTuple):
    """The parts of a data page without compression."""

    before: memoryview
    """All bytes before the values."""
    defined: memoryview
    """Definition levels, the last of these bytes."""
    values: memoryview


class _DataPages(NamedTuple):
    """Data pages that are read together."""

    span: PageSpan
    content: PlainPage | ReadIndices


class PlainChunk:
    """One column chunk, page by page."""

    def __init__(self, pages: ChunkPages, column: Column) -> None:
        self._ensure_size = pages.ensure_size
        self._column = column
        self._meta = pages.meta
        self._start, self._end = page_range(pages.meta)
        self._runs = RunReader(pages.read, column, pages.meta.codec, self._end)
        self._read = self._runs.read
        self._num_small = 0
        self._scratch = bytearray()

    def dictionary(self) -> PlainPage | None:
        """Read the chunk's dictionary page; None if it is missing or better read with the chunk
        (large, or an unusual codec).

        Raises UnreadableError if the page contradicts itself, and the error of
        `ChunkPages.ensure_size` for sizes that it does not accept.
        """
        if not _is_readable(self._column, self._meta):
            return None
        page = read_page(self._read, self._start, self._end)
        try:
            return self._dictionary_page(page)
        except NotPlainError:
            return None

    def pages(self, dictionary: PlainPage | None = None) -> Iterator[PlainPage | ReadIndices]:
        """Read the dictionary page, if there is one, and every data page that does not refer to it.
        They contain all values of the chunk, and possibly unused values of the dictionary. A given
        `dictionary` is not read again, and other pages only when they are called.

        Raises NotPlainError, at any page, if the chunk must be decoded instead; also if its pages
        contradict the footer or themselves, since a decoder explains that better. Raises
        UnreadableError for a page with a wrong checksum, and the error of `ensure_size` for sizes
        that it does not accept.
        """
        if not _is_readable(self._column, self._meta):
            raise NotPlainError
        position = self._start
        num_values = self._meta.num_values or 0
        first_row = 0
        if dictionary is not None:
            yield dictionary
            position += dictionary.stored_bytes
        while first_row < num_values:
            page = self._page_at(position)
            if page.is_dictionary:
                dictionary = self._dictionary_page(page)
                yield dictionary
                position = page.end
            else:
                pages = self._data_pages(page, first_row, dictionary)
                yield pages.content
                first_row += pages.span.values
                position += pages.span.bytes
            if position > self._end:
                raise NotPlainError
        if first_row != num_values:
            raise NotPlainError

    def _data_pages(
        self, page: StoredPage, first_row: int, dictionary: PlainPage | None
    ) -> _DataPages:
        """Read a data page, and those after it that are read together with it."""
        if page.data is None:
            raise NotPlainError
        span = _span_of(page)
        most_values = (self._meta.num_values or 0) - first_row
        if page.data.encoding == Encoding.PLAIN:
            run = self._plain_run(page, most_values)
            if run is None:
                return _DataPages(span, self._data_page(page, first_row))
            return _DataPages(run.span, self._page_of_run(run, page, first_row))
        if page.data.encoding not in DICTIONARY_ENCODINGS or dictionary is None:
            raise NotPlainError
        if page.stored <= SMALL_PAGE:
            self._num_small += 1
        if self._num_small > _FEW_SMALL:
            # Only headers are read, unless the indices are asked for.
            small_pages = self._runs.small_indices(page.offset, most_values)
            if small_pages.pages:
                span = small_pages
        read = partial(self._read_indices, page, span, first_row, len(dictionary))
        return _DataPages(span, read)

    def _plain_run(self, page: StoredPage, most_values: int) -> PageRun | None:
        """Read the data pages in PLAIN form from a page on; None if it must be read alone."""
        if max(page.stored, page.size) > MAX_DATA_BYTES or page.end > self._end:
            return None
        run = self._runs.plain(page.offset, page.end, most_values)
        if run is None or not self._may_have_size(run.span.sizes):
            return None
        return run

    def _page_of_run(self, run: PageRun, page: StoredPage, first_row: int) -> PlainPage:
        """Build one page of the values of a run that begins with `page`."""
        if self._column.width is None:
            hashes = hashing.hash_length_prefixed(run.content, run.num_present)
        else:
            hashes = hashing.hash_fixed(run.content, self._column.width)
        rows = None
        if not self._column.max_repetition:
            rows = partial(run.rows, first_row)
        return PlainPage(self._column, run.content, hashes, page.header.type, run.span.bytes, rows)

    def _may_have_size(self, size: int) -> bool:
        """Return whether no limit refuses pages of this size together. One that does may accept
        each alone: then the pages of the chunk are read one by one."""
        try:
            self._ensure_size(0, size)
        except SbbfError:
            self._runs.is_able = False
            return False
        return True

    def _page_at(self, position: int) -> StoredPage:
        if position >= self._end:
            raise NotPlainError
        try:
            return read_page(self._read, position, self._end)
        except UnreadableError:
            raise NotPlainError from None

    def _dictionary_page(self, page: StoredPage) -> PlainPage:
        """Read a dictionary page. Raises UnreadableError if the page contradicts itself: then no
        reader can read the chunk."""
        header = page.header.dictionary_page_header
        if not page.is_dictionary or header is None:
            raise NotPlainError
        if header.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
            raise NotPlainError
        place = f"dictionary page at byte {page.offset:,}"
        page.ensure_size(self._ensure_size)
        count = header.num_values
        size = page.header.uncompressed_page_size
        if count is None or size is None:
            raise NotPlainError
        if count < 0 or size < 0:
            raise UnreadableError("the stated size is negative", place=place)
        body = self._body(page, MAX_DICTIONARY_BYTES, place)
        if len(body) != page.stored:
            raise UnreadableError("the page is truncated", place=place)
        try:
            plain = self._decompress(body, page.size, self._meta.codec)
        except ValueError as error:
            raise UnreadableError(
                f"the page cannot be decompressed: {error}", place=place
            ) from error
        width = self._column.width
        if width is not None and len(plain) != count * width:
            raise UnreadableError(
                f"the page has {len(plain):,} bytes for {count:,} values of {width} bytes",
                place=place,
            )
        return self._page(plain, count, page, place)

    def _data_page(self, page: StoredPage, first_row: int) -> PlainPage:
        """Read a data page in PLAIN form."""
        defined, plain = self._levels_and_values(page)
        try:
            count = levels.count_highest(defined, self._column.max_definition, page.values)
        except ValueError:
            raise NotPlainError from None
        if self._column.width is not None and len(plain) != count * self._column.width:
            raise NotPlainError
        rows = None
        if not self._column.max_repetition:
            rows = partial(self._rows, defined, page.values, first_row)
        return self._page(plain, count, page, f"page at byte {page.offset:,}", rows)

    def _read_indices(
        self, page: StoredPage, span: PageSpan, first_row: int, num_entries: int
    ) -> Indices:
        """Read the data pages of a span, which begins with `page`, and which refer to a
        dictionary with so many entries: see `ReadIndices`."""
        if page.end <= self._end and self._may_have_size(span.sizes):
            run = self._runs.indices(page.offset, span, num_entries)
            if run is not None:
                return partial(run.rows, first_row), run.indices()
        if span.pages > 1:
            return self._read_indices_one_by_one(page, span.pages, first_row, num_entries)
        defined, packed = self._levels_and_values(page)
        try:
            count = levels.count_highest(defined, self._column.max_definition, page.values)
            # The first byte is the width of an index; a page of nulls may have none.
            width = packed[0] if packed else 0
            indices = levels.decode(packed[1:], width, count)
        except ValueError:
            raise NotPlainError from None
        if len(indices) and indices.max() >= num_entries:
            raise NotPlainError
        return partial(self._rows, defined, page.values, first_row), indices

    def _read_indices_one_by_one(
        self, page: StoredPage, num_pages: int, first_row: int, num_entries: int
    ) -> Indices:
        """Read pages of which at least one is not as expected, which may be an error."""
        import numpy as np

        rows = []
        indices = []
        for _ in range(num_pages):
            span = _span_of(page)
            rows_of, indices_of = self._read_indices(page, span, first_row, num_entries)
            rows.append(rows_of())
            indices.append(indices_of)
            first_row += page.values
            if len(rows) < num_pages:
                page = self._page_at(page.end)
        all_rows = np.concatenate(rows)
        return lambda: all_rows, np.concatenate(indices)

    def _rows(self, defined: memoryview, count: int, first_row: int) -> NDArray[np.int64]:
        """Return the rows of the values of a page with these levels, of a column without lists.
        Raises as `levels.decode`."""
        import numpy as np

        highest = self._column.max_definition
        if not highest:
            return np.arange(first_row, first_row + count)
        are_present = levels.decode(defined, highest.bit_length(), count) == highest
        return np.flatnonzero(are_present) + first_row

    def _levels_and_values(self, page: StoredPage) -> tuple[memoryview, memoryview]:
        page.ensure_size(self._ensure_size)
        body = self._body(page, MAX_DATA_BYTES, f"page at byte {page.offset:,}")
        if len(body) != page.stored:
            raise NotPlainError
        try:
            parts = self._split(body, page, page.size)
        except ValueError:
            raise NotPlainError from None
        return parts.defined, parts.values

    def _body(self, page: StoredPage, most_bytes: int, place: str) -> bytes:
        """Read a page as stored, which may be truncated; `most_bytes` limits its size."""
        # Writers such as fastparquet before 0.1.5 left the dictionary page out of
        # total_compressed_size.
        if max(page.stored, page.size) > most_bytes or page.end > self._end:
            raise NotPlainError
        body = self._read(page.body, page.stored)
        if len(body) == page.stored:
            _ensure_sum(body, page, place)
        return body

    def _page(
        self,
        plain: memoryview,
        count: int,
        page: StoredPage,
        place: str,
        rows: Callable[[], NDArray[np.int64]] | None = None,
    ) -> PlainPage:
        """Build the page of these `count` values. Raises UnreadableError if there are fewer, or
        bytes after the last one: then levels were read as values, or the writer miscounted.
        """
        column = self._column
        try:
            if column.width is None:
                plain, hashes = hash_byte_arrays(plain, count)
            else:
                hashes = hashing.hash_fixed(plain, column.width)
        except UnreadableError as error:
            raise error.at(place=place) from error.__cause__
        return PlainPage(column, plain, hashes, page.header.type, page.end - page.offset, rows)

    def decompress_page(
        self, stored: bytes, page: StoredPage, size: int, place: str
    ) -> tuple[bytes, bool]:
        """Return a page as its `size` bytes without compression, and whether it may have values
        besides nulls. Raises ValueError.

        UnreadableError says that its checksum is wrong.
        """
        _ensure_sum(stored, page, place)
        if page.is_dictionary:
            return bytes(self._decompress(stored, size, self._meta.codec)), True
        try:
            parts = self._split(stored, page, size)
            highest = self._column.max_definition
            num_present = levels.count_highest(parts.defined, highest, page.values)
            return b"".join((parts.before, parts.values)), num_present > 0
        except NotPlainError:
            raise ValueError("its levels have a form that sbbf does not read") from None

    def _split(self, body: bytes, page: StoredPage, size: int) -> _Parts:
        """Split a data page, of `size` bytes without compression. Raises NotPlainError, and
        ValueError if it cannot be decompressed."""
        if page.header.type == PageType.DATA_PAGE_V2:
            return self._split_v2(memoryview(body), page.data, size)
        data = page.data
        plain = self._decompress(body, size, self._meta.codec)
        # A length precedes each kind of levels; levels that are always 0 are missing.
        start = end = 0
        for highest, encoding in (
            (self._column.max_repetition, data.repetition_level_encoding),
            (self._column.max_definition, data.definition_level_encoding),
        ):
            if highest:
                start = end + 4
                end = start + int.from_bytes(plain[end:start], "little")
                if encoding != Encoding.RLE or end > len(plain):
                    raise NotPlainError
        return _Parts(plain[:end], plain[start:end], plain[end:])

    def _split_v2(self, body: memoryview, data: DataPageHeaderV2, size: int) -> _Parts:
        # The levels are not compressed, and the header states their lengths.
        repeated_bytes = data.repetition_levels_byte_length or 0
        defined_bytes = data.definition_levels_byte_length or 0
        level_bytes = repeated_bytes + defined_bytes
        size -= level_bytes
        if min(repeated_bytes, defined_bytes, size) < 0 or level_bytes > len(body):
            raise NotPlainError
        before = body[:level_bytes]
        values = body[level_bytes:]
        if not size:
            values = values[:0]
        elif data.is_compressed is not False:
            values = self._decompress(values, size, self._meta.codec)
        return _Parts(before, before[repeated_bytes:], values)

    def _decompress(self, stored: bytes | memoryview, size: int, codec: int) -> memoryview:
        """Return the bytes of a page, valid until the next one is decompressed. Raises ValueError.

        Allocating memory for each page would take longer than decompressing into it.
        """
        if codec == CompressionCodec.UNCOMPRESSED:
            return memoryview(stored)
        if codec not in CODECS:
            raise ValueError(f"sbbf does not read codec {codec}")
        if size > len(self._scratch):
            self._scratch = bytearray(size)
        plain = memoryview(self._scratch)[:size]
        try:
            num_written = CODECS[codec](stored, plain)
        except cramjam.DecompressionError as error:
            raise ValueError(str(error)) from error
        if num_written != size:
            raise ValueError(f"it has {num_written:,} bytes, but the header states {size:,}")
        return plain


def _span_of(page: StoredPage) -> PageSpan:
    return PageSpan(1, page.end - page.offset, page.values, page.size)


def _ensure_sum(stored: bytes, page: StoredPage, place: str) -> None:
    if page.header.crc is not None and zlib.crc32(stored) != page.header.crc & 0xFFFF_FFFF:
        raise UnreadableError("the checksum does not match", place=place)
