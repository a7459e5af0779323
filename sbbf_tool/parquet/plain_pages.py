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
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import cramjam

from sbbf_tool.bloom import hashing, kernels
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import equals, levels, statistics
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec, Encoding, PageType
from sbbf_tool.parquet.pages import (
    DICTIONARY_ENCODINGS,
    EnsureSize,
    Read,
    StoredPage,
    page_range,
    read_page,
)
from sbbf_tool.parquet.statistics import Extremes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.parquet.comparison import Pairs

MAX_DICTIONARY_BYTES = 64 << 20
MAX_DATA_BYTES = 16 << 20
"""Larger pages are better read as part of the chunk's stream, in batches."""


def _decompress_lz4(stored: bytes | memoryview, plain: memoryview) -> int:
    """Decompress what is named LZ4: either blocks of Hadoop, or one block as in LZ4_RAW; only the
    lengths in it show which.

    Hadoop's streams state one uncompressed length, big-endian, and then compressed blocks, each
    after its length, until it is reached.
    """
    try:
        position = written = 0
        while position < len(stored):
            end = written + int.from_bytes(stored[position : position + 4], "big")
            position += 4
            while written < end <= len(plain):
                length = int.from_bytes(stored[position : position + 4], "big")
                position += 4
                if not 0 < length <= len(stored) - position:
                    raise ValueError("no blocks of Hadoop")
                block = stored[position : position + length]
                written += cramjam.lz4.decompress_block_into(
                    block, plain[written:end], output_len=end - written
                )
                position += length
        if written == len(plain) and position == len(stored):
            return written
    except (ValueError, cramjam.DecompressionError):
        pass
    return int(cramjam.lz4.decompress_block_into(stored, plain, output_len=len(plain)))


_CODECS: dict[int, Callable[[bytes | memoryview, memoryview], int]] = {
    CompressionCodec.SNAPPY: cramjam.snappy.decompress_raw_into,
    CompressionCodec.GZIP: cramjam.gzip.decompress_into,
    CompressionCodec.BROTLI: cramjam.brotli.decompress_into,
    CompressionCodec.LZ4: _decompress_lz4,
    CompressionCodec.ZSTD: cramjam.zstd.decompress_into,
    CompressionCodec.LZ4_RAW: lambda stored, plain: int(
        cramjam.lz4.decompress_block_into(stored, plain, output_len=len(plain))
    ),
}
"""Functions that decompress into memory of the stated size and return the number of bytes written,
without numpy or pyarrow."""

_ENCODINGS = {
    Encoding.PLAIN,
    *DICTIONARY_ENCODINGS,
    Encoding.RLE,
    Encoding.BIT_PACKED,
}  # the last two encode levels


class NotPlainError(Exception):
    """The chunk has a page that this module does not read."""


_LENGTH_BYTES = 4
"""Bytes of the length before each BYTE_ARRAY value."""
_PADDING = bytes(8)
"""Bytes that fastparquet writes after the values of every page (`writer.py`, `write_column`)."""


def _hash_byte_arrays(plain: memoryview, count: int) -> tuple[memoryview, memoryview]:
    """Return the bytes of a page's values without fastparquet's padding, and their hashes. Raises
    UnreadableError.

    If levels were read as a value, all values would shift by one. The length and the bytes of the
    last value would then be left over before the padding, never the padding alone.
    """
    try:
        return plain, hashing.hash_length_prefixed(plain, count)
    except UnreadableError:
        if plain[-len(_PADDING) :] != _PADDING:
            raise
        try:
            return plain[: -len(_PADDING)], hashing.hash_length_prefixed(
                plain[: -len(_PADDING)], count
            )
        except UnreadableError:
            pass
        raise


@dataclass(frozen=True, slots=True)
class PlainPage:
    """The values of one page, until the next page is read, and their hashes; `len` returns the
    number of values."""

    column: Column
    plain: memoryview
    """The values in PLAIN form."""
    hashes: memoryview
    """XXH64 of every value, in order."""
    page_type: int
    """DICTIONARY_PAGE, DATA_PAGE or DATA_PAGE_V2."""
    stored_bytes: int
    """Bytes of page header and page in the file, which are all bytes read."""
    rows: Callable[[], NDArray[np.int64]] | None = None
    """Returns the row of each value, unless the page is a dictionary or the column has lists."""

    def __len__(self) -> int:
        return len(self.hashes)

    def hashes_of_equals(self, *, normalised_intervals: bool) -> memoryview:
        """Hash the bytes that mean one of these values but are not stored for it: see `equals`."""
        return equals.hashes_of(self.column, self.plain, normalised_intervals=normalised_intervals)

    def extremes(self) -> Extremes | None:
        """Find the smallest and the largest value."""
        return statistics.of_plain(self.column, self.plain, len(self))

    def are_equal(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return of which pairs the value has the plain bytes. The page is walked once for all."""
        import numpy as np

        if width := self.column.width:
            return pairs.are_equal_fixed(self.plain, width)
        ends = np.asarray(kernels.active().ends_length_prefixed(self.plain, len(self)))
        starts = np.concatenate(([0], ends[:-1].astype(np.int64))) + _LENGTH_BYTES
        return pairs.are_equal_spans(self.plain, starts[pairs.places], ends[pairs.places])


ReadIndices: TypeAlias = "Callable[[], tuple[Callable[[], NDArray[np.int64]], NDArray[np.uint32]]]"
"""A data page that refers to the dictionary: returns how to get the rows of its values, and their
numbers there. Raises NotPlainError."""


def may_be_plain(column: Column, meta: ColumnMetaData) -> bool:
    """Return whether, according to the footer, this module can read every page of the chunk."""
    return _is_readable(column, meta) and _ENCODINGS.issuperset(meta.encodings or ())


def _is_readable(column: Column, meta: ColumnMetaData) -> bool:
    # In PLAIN form, a BOOLEAN is one bit, and a value of fixed length 0 has no bytes.
    has_bytes = column.width is not None or column.physical == "BYTE_ARRAY"
    return has_bytes and (meta.codec in _CODECS or meta.codec == CompressionCodec.UNCOMPRESSED)


class PlainChunk:
    """One column chunk, page by page; `ensure_size` accepts the sizes that a page header states, or
    raises an error."""

    def __init__(
        self,
        read: Read,
        column: Column,
        meta: ColumnMetaData,
        ensure_size: EnsureSize = lambda stored, size: None,
    ) -> None:
        self._read = read
        self._ensure_size = ensure_size
        self._column = column
        self._meta = meta
        self._start, self._end = page_range(meta)
        self._scratch = bytearray()

    def dictionary(self) -> PlainPage | None:
        """Read the chunk's dictionary page; None if it is missing or better read with the chunk
        (large, or an unusual codec).

        Raises UnreadableError if the page contradicts itself, and the error of `ensure_size` for
        sizes that it does not accept.
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
        position, remaining_values = self._start, self._meta.num_values or 0
        if dictionary is not None:
            yield dictionary
            position += dictionary.stored_bytes
        while remaining_values > 0:
            first_row = (self._meta.num_values or 0) - remaining_values
            if position >= self._end:
                raise NotPlainError
            try:
                page = read_page(self._read, position, self._end)
            except UnreadableError:
                raise NotPlainError from None
            if page.is_dictionary:
                dictionary = self._dictionary_page(page)
                yield dictionary
            elif page.data is None:
                raise NotPlainError
            elif page.data.encoding == Encoding.PLAIN:
                yield self._data_page(page, first_row)
            elif page.data.encoding not in DICTIONARY_ENCODINGS or dictionary is None:
                raise NotPlainError
            else:
                yield partial(self._read_indices, page, first_row, len(dictionary))
            remaining_values -= page.values
            position = page.end
            if position > self._end:
                raise NotPlainError
        if remaining_values:
            raise NotPlainError

    def _dictionary_page(self, page: StoredPage) -> PlainPage:
        """Read a dictionary page. Raises UnreadableError if the page contradicts itself: then no
        reader can read the chunk."""
        header = page.header.dictionary_page_header
        if (
            not page.is_dictionary
            or header is None
            or header.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY)
        ):
            raise NotPlainError
        count, place = header.num_values, f"dictionary page at byte {page.offset:,}"
        page.ensure_size(self._ensure_size)
        if None in (count, page.header.uncompressed_page_size):
            raise NotPlainError
        if min(count, page.header.uncompressed_page_size) < 0:
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
        rows = (
            None
            if self._column.max_repetition
            else partial(self._rows, defined, page.values, first_row)
        )
        return self._page(plain, count, page, f"page at byte {page.offset:,}", rows)

    def _read_indices(
        self, page: StoredPage, first_row: int, num_entries: int
    ) -> tuple[Callable[[], NDArray[np.int64]], NDArray[np.uint32]]:
        """Read a data page that refers to a dictionary with so many entries: see `ReadIndices`."""
        defined, packed = self._levels_and_values(page)
        try:
            count = levels.count_highest(defined, self._column.max_definition, page.values)
            # The first byte is the width of an index; a page of nulls may have none.
            indices = levels.decode(packed[1:], packed[0] if packed else 0, count)
        except ValueError:
            raise NotPlainError from None
        if len(indices) and indices.max() >= num_entries:
            raise NotPlainError
        return partial(self._rows, defined, page.values, first_row), indices

    def _rows(self, defined: memoryview, count: int, first_row: int) -> NDArray[np.int64]:
        """Return the rows of the values of a page with these levels, of a column without lists.
        Raises as `levels.decode`."""
        import numpy as np

        if not (highest := self._column.max_definition):
            return np.arange(first_row, first_row + count)
        return (
            np.flatnonzero(levels.decode(defined, highest.bit_length(), count) == highest)
            + first_row
        )

    def _levels_and_values(self, page: StoredPage) -> tuple[memoryview, memoryview]:
        page.ensure_size(self._ensure_size)
        body = self._body(page, MAX_DATA_BYTES, f"page at byte {page.offset:,}")
        if len(body) != page.stored:
            raise NotPlainError
        try:
            return self._split(body, page, page.size)[1:]
        except ValueError:
            raise NotPlainError from None

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
        self, plain: memoryview, count: int, page: StoredPage, place: str, rows: Any = None
    ) -> PlainPage:
        """Build the page of these `count` values. Raises UnreadableError if there are fewer, or
        bytes after the last one: then levels were read as values, or the writer miscounted.
        """
        column = self._column
        try:
            if column.width is None:
                plain, hashes = _hash_byte_arrays(plain, count)
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
            before, defined, values = self._split(stored, page, size)
            has_values = levels.count_highest(defined, self._column.max_definition, page.values) > 0
            return b"".join((before, values)), has_values
        except NotPlainError:
            raise ValueError("its levels have a form that sbbf does not read") from None

    def _split(
        self, body: bytes, page: StoredPage, size: int
    ) -> tuple[memoryview, memoryview, memoryview]:
        """Split a data page, of `size` bytes without compression, into the bytes before its values,
        definition levels, and values."""
        data = page.data
        if page.header.type == PageType.DATA_PAGE_V2:
            # The levels are not compressed, and the header states their lengths.
            repeated, defined = (
                data.repetition_levels_byte_length or 0,
                data.definition_levels_byte_length or 0,
            )
            size -= repeated + defined
            if min(repeated, defined, size) < 0 or repeated + defined > len(body):
                raise NotPlainError
            before, values = (
                memoryview(body)[: repeated + defined],
                memoryview(body)[repeated + defined :],
            )
            codec = (
                CompressionCodec.UNCOMPRESSED if data.is_compressed is False else self._meta.codec
            )
            return (
                before,
                before[repeated:],
                self._decompress(values, size, codec) if size else values[:0],
            )
        # A length precedes each kind of levels; levels that are always 0 are missing.
        plain, start, end = self._decompress(body, size, self._meta.codec), 0, 0
        for highest, encoding in (
            (self._column.max_repetition, data.repetition_level_encoding),
            (self._column.max_definition, data.definition_level_encoding),
        ):
            if highest:
                start = end + 4
                end = start + int.from_bytes(plain[end:start], "little")
                if encoding != Encoding.RLE or end > len(plain):
                    raise NotPlainError
        return plain[:end], plain[start:end], plain[end:]

    def _decompress(self, stored: bytes | memoryview, size: int, codec: int) -> memoryview:
        """Return the bytes of a page, valid until the next one is decompressed. Raises ValueError.

        Allocating memory for each page would take longer than decompressing into it.
        """
        if codec == CompressionCodec.UNCOMPRESSED:
            return memoryview(stored)
        if codec not in _CODECS:
            raise ValueError(f"sbbf does not read codec {codec}")
        if size > len(self._scratch):
            self._scratch = bytearray(size)
        plain = memoryview(self._scratch)[:size]
        try:
            came = _CODECS[codec](stored, plain)
        except cramjam.DecompressionError as error:
            raise ValueError(str(error)) from error
        if came != size:
            raise ValueError(f"it has {came:,} bytes, but the header states {size:,}")
        return plain


def _ensure_sum(stored: bytes, page: StoredPage, place: str) -> None:
    if page.header.crc is not None and zlib.crc32(stored) != page.header.crc & 0xFFFF_FFFF:
        raise UnreadableError("the checksum does not match", place=place)
