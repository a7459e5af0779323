"""The PLAIN form of values in a column chunk's pages (parquet-format README, "Data Pages"; Encodings.md, "Plain", "Dictionary Encoding").

    dictionary page               each distinct value once, in PLAIN form
    data page that refers to it   only values of the dictionary, so no byte of the page is read
    data page in PLAIN form       its values, after their levels, in the form that is hashed

So finding the set of a chunk's values needs no decoding, and no data page is read if all refer to the dictionary. `values.read_chunk`,
which decodes everything, handles pages of other encodings, codecs and sizes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cramjam

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import equals, extremes, levels
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.extremes import Extremes
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec, Encoding, PageHeader, PageType
from sbbf_tool.parquet.page_sizes import EnsureSize, ensure_page
from sbbf_tool.parquet.pages import DICTIONARY_ENCODINGS, page_range, read_header

MAX_DICTIONARY_BYTES = 64 << 20
MAX_DATA_BYTES = 16 << 20
"""Larger pages are better read as part of the chunk's stream, in batches."""


def _decompress_lz4(stored: bytes | memoryview, plain: memoryview) -> int:
    """Decompress what is named LZ4: either blocks of Hadoop, or one block as in LZ4_RAW; only the lengths in it show which.

    Hadoop's streams state one uncompressed length, big-endian, and then compressed blocks, each after its length, until it is reached.
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
                written += cramjam.lz4.decompress_block_into(block, plain[written:end], output_len=end - written)
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
    CompressionCodec.LZ4_RAW: lambda stored, plain: int(cramjam.lz4.decompress_block_into(stored, plain, output_len=len(plain))),
}
"""Functions that decompress into memory of the stated size and return the number of bytes written, without numpy or pyarrow."""

_ENCODINGS = {Encoding.PLAIN, *DICTIONARY_ENCODINGS, Encoding.RLE, Encoding.BIT_PACKED}  # the last two encode levels

Read = Callable[[int, int], bytes]
"""A function that returns `length` bytes from `offset`, or fewer at the end of the file."""


class NotPlainError(Exception):
    """The chunk has a page that this module does not read."""


_PADDING = bytes(8)
"""Bytes that fastparquet writes after the values of every page (`writer.py`, `write_column`)."""


def _hash_byte_arrays(plain: memoryview, count: int) -> tuple[memoryview, memoryview]:
    """Return the bytes of a page's values without fastparquet's padding, and their hashes. Raises UnreadableError.

    If levels were read as a value, all values would shift by one. The length and the bytes of the last value would then be left over before
    the padding, never the padding alone.
    """
    try:
        return plain, hashing.hash_length_prefixed(plain, count)
    except UnreadableError:
        if plain[-len(_PADDING) :] != _PADDING:
            raise
        try:
            return plain[: -len(_PADDING)], hashing.hash_length_prefixed(plain[: -len(_PADDING)], count)
        except UnreadableError:
            pass
        raise


@dataclass(frozen=True, slots=True)
class PlainPage:
    """The hashes of one page's values; `len` returns the number of values."""

    hashes: memoryview
    """XXH64 of every value, in order."""
    hashes_of_equals: memoryview
    """Hashes of bytes that mean one of these values but are not stored for it: see `equals`."""
    extremes: Extremes | None
    """The smallest and the largest value, if requested."""
    page_type: int
    """DICTIONARY_PAGE, DATA_PAGE or DATA_PAGE_V2."""
    stored_bytes: int
    """Bytes of page header and page in the file, which are all bytes read."""

    def __len__(self) -> int:
        return len(self.hashes)


def may_be_plain(column: Column, meta: ColumnMetaData) -> bool:
    """Return whether, according to the footer, this module can read every page of the chunk."""
    return _is_readable(column, meta) and _ENCODINGS.issuperset(meta.encodings or ())


def _is_readable(column: Column, meta: ColumnMetaData) -> bool:
    # In PLAIN form, a BOOLEAN is one bit, and a value of fixed length 0 has no bytes.
    has_bytes = column.width is not None or column.physical == "BYTE_ARRAY"
    return has_bytes and (meta.codec in _CODECS or meta.codec == CompressionCodec.UNCOMPRESSED)


def _data_header(header: PageHeader) -> Any:
    """Return the part of a header that describes the values in its data page."""
    data = {PageType.DATA_PAGE: header.data_page_header, PageType.DATA_PAGE_V2: header.data_page_header_v2}.get(header.type)
    if data is None or data.num_values is None or data.num_values < 0:
        raise NotPlainError
    return data


class PlainChunk:
    """One column chunk, page by page; `ensure_size` accepts the sizes that a page header states, or raises an error.

    In this class, `position` is the first byte of a page header, and `length` its number of bytes.
    """

    def __init__(
        self,
        read: Read,
        column: Column,
        meta: ColumnMetaData,
        ensure_size: EnsureSize | None = None,
        *,
        normalised_intervals: bool = False,
        with_extremes: bool = False,
    ) -> None:
        self._read = read
        self._ensure_size = ensure_size
        self._column = column
        self._meta = meta
        self._start, self._end = page_range(meta)
        self._normalised_intervals = normalised_intervals
        self._with_extremes = with_extremes
        self._scratch = bytearray()

    def dictionary(self) -> PlainPage | None:
        """Read the chunk's dictionary page; None if it is missing or better read with the chunk (large, or an unusual codec).

        Raises UnreadableError if the page contradicts itself, and the error of `ensure_size` for sizes that it does not accept.
        """
        if not _is_readable(self._column, self._meta):
            return None
        header, length = read_header(self._read, self._start, self._end)
        try:
            return self._dictionary_page(header, self._start, length)
        except NotPlainError:
            return None

    def pages(self, dictionary: PlainPage | None = None) -> Iterator[PlainPage]:
        """Read the dictionary page, if there is one, and every data page that does not refer to it. They contain all values of the chunk,
        and possibly unused values of the dictionary. A given `dictionary` is not read again.

        Raises NotPlainError, at any page, if the chunk must be decoded instead; also if its pages contradict the footer or themselves,
        since a decoder explains that better. Raises UnreadableError for a page with a wrong checksum, and the error of `ensure_size` for
        sizes that it does not accept.
        """
        if not _is_readable(self._column, self._meta):
            raise NotPlainError
        position, remaining_values = self._start, self._meta.num_values or 0
        has_dictionary = dictionary is not None
        if dictionary is not None:
            yield dictionary
            position += dictionary.stored_bytes
        while remaining_values > 0:
            header, length = self._header(position)
            if header.type == PageType.DICTIONARY_PAGE:
                yield self._dictionary_page(header, position, length)
                has_dictionary = True
            else:
                data = _data_header(header)
                remaining_values -= data.num_values
                if data.encoding == Encoding.PLAIN:
                    yield self._data_page(header, data, position, length)
                elif data.encoding not in DICTIONARY_ENCODINGS or not has_dictionary:
                    raise NotPlainError
            position += length + header.compressed_page_size
            if position > self._end:
                raise NotPlainError
        if remaining_values:
            raise NotPlainError

    def _header(self, position: int) -> tuple[PageHeader, int]:
        """Read the page header at `position`, which must state the size of its page; return it and its length."""
        if position >= self._end:
            raise NotPlainError
        try:
            header, length = read_header(self._read, position, self._end)
        except UnreadableError:
            raise NotPlainError from None
        if header.compressed_page_size is None or header.compressed_page_size < 0:
            raise NotPlainError
        return header, length

    def _dictionary_page(self, header: PageHeader, position: int, length: int) -> PlainPage:
        """Read a dictionary page. Raises UnreadableError if the page contradicts itself: then no reader can read the chunk."""
        page = header.dictionary_page_header
        if header.type != PageType.DICTIONARY_PAGE or page is None or page.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
            raise NotPlainError
        stored, size, count = header.compressed_page_size, header.uncompressed_page_size, page.num_values
        self._ensure_page(header, position)
        if None in (stored, size, count) or max(stored, size) > MAX_DICTIONARY_BYTES:
            raise NotPlainError
        place = f"dictionary page at byte {position:,}"
        if min(stored, size, count) < 0:
            raise UnreadableError("the stated size is negative", place=place)
        if position + length + stored > self._end:
            # Writers such as fastparquet before 0.1.5 left the page out of total_compressed_size.
            raise NotPlainError
        body = self._read(position + length, stored)
        if len(body) != stored:
            raise UnreadableError("the page is truncated", place=place)
        _ensure_sum(body, header, place)
        try:
            plain = self._decompress(body, size, self._meta.codec)
        except ValueError as error:
            raise UnreadableError(f"the page cannot be decompressed: {error}", place=place) from error
        width = self._column.width
        if width is not None and len(plain) != count * width:
            raise UnreadableError(f"the page has {len(plain):,} bytes for {count:,} values of {width} bytes", place=place)
        return self._page(plain, count, length + stored, header.type, place)

    def _data_page(self, header: PageHeader, data: Any, position: int, length: int) -> PlainPage:
        """Read a data page in PLAIN form; `data` is the part of the header for this type of page."""
        stored, size = header.compressed_page_size, header.uncompressed_page_size
        self._ensure_page(header, position)
        if size is None or size < 0 or max(stored, size) > MAX_DATA_BYTES or position + length + stored > self._end:
            raise NotPlainError
        body = self._read(position + length, stored)
        if len(body) != stored:
            raise NotPlainError
        place = f"page at byte {position:,}"
        _ensure_sum(body, header, place)
        split = self._split_v2 if header.type == PageType.DATA_PAGE_V2 else self._split_v1
        try:
            plain, defined = split(body, size, data)
            count = levels.count_highest(defined, self._column.max_definition, data.num_values)
        except ValueError:
            raise NotPlainError from None
        if self._column.width is not None and len(plain) != count * self._column.width:
            raise NotPlainError
        return self._page(plain, count, length + stored, header.type, place)

    def _ensure_page(self, header: PageHeader, position: int) -> None:
        if self._ensure_size is not None:
            ensure_page(header, position, self._ensure_size)

    def _page(self, plain: memoryview, count: int, stored_bytes: int, page_type: int, place: str) -> PlainPage:
        """Build the page of these `count` values. Raises UnreadableError if there are fewer, or bytes after the last one: then levels were
        read as values, or the writer miscounted.
        """
        column = self._column
        try:
            # Values are hashed here and `plain` is not kept: the next page may be decompressed into the same memory.
            if column.width is None:
                plain, hashes = _hash_byte_arrays(plain, count)
            else:
                hashes = hashing.hash_fixed(plain, column.width)
            hashes_of_equals = equals.hashes_of(column, plain, normalised_intervals=self._normalised_intervals)
            page_extremes = extremes.of_plain(column, plain, count) if self._with_extremes else None
        except UnreadableError as error:
            raise error.at(place=place) from error.__cause__
        return PlainPage(hashes, hashes_of_equals, page_extremes, page_type, stored_bytes)

    def decompress_page(self, stored: bytes, header: PageHeader, size: int, place: str) -> tuple[bytes, bool]:
        """Return a page as it is without compression, and whether it may have values besides nulls. Raises ValueError.

        UnreadableError says that its checksum is wrong.
        """
        _ensure_sum(stored, header, place)
        if header.type == PageType.DICTIONARY_PAGE:
            return bytes(self._decompress(stored, size, self._meta.codec)), True
        try:
            data = _data_header(header)
            if header.type == PageType.DATA_PAGE_V2:
                values, defined = self._split_v2(stored, size, data)
                page = stored[: (data.repetition_levels_byte_length or 0) + len(defined)] + values
            else:
                page = bytes(self._decompress(stored, size, self._meta.codec))
                _, defined = self._split_levels(memoryview(page), data)
            return page, levels.count_highest(defined, self._column.max_definition, data.num_values) > 0
        except NotPlainError:
            raise ValueError("its levels have a form that sbbf does not read") from None

    def _split_v1(self, body: bytes, size: int, data: Any) -> tuple[memoryview, memoryview]:
        return self._split_levels(self._decompress(body, size, self._meta.codec), data)

    def _split_levels(self, page: memoryview, data: Any) -> tuple[memoryview, memoryview]:
        """Split a page into values and definition levels. A length precedes each kind of levels; levels that are always 0 are missing."""
        defined = memoryview(b"")
        for highest, encoding in (
            (self._column.max_repetition, data.repetition_level_encoding),
            (self._column.max_definition, data.definition_level_encoding),
        ):
            if not highest:
                continue
            end = 4 + int.from_bytes(page[:4], "little")
            if encoding != Encoding.RLE or end > len(page):
                raise NotPlainError
            defined, page = page[4:end], page[end:]
        return page, defined

    def _split_v2(self, body: bytes, size: int, data: Any) -> tuple[memoryview, memoryview]:
        """Split a page whose levels are not compressed and whose header states their lengths."""
        repeated, defined = data.repetition_levels_byte_length or 0, data.definition_levels_byte_length or 0
        size -= repeated + defined
        if min(repeated, defined, size) < 0 or repeated + defined > len(body):
            raise NotPlainError
        view = memoryview(body)
        codec = CompressionCodec.UNCOMPRESSED if data.is_compressed is False else self._meta.codec
        values = view[repeated + defined :]
        return self._decompress(values, size, codec) if size else values[:0], view[repeated : repeated + defined]

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


def _ensure_sum(stored: bytes, header: PageHeader, place: str) -> None:
    if header.crc is not None and zlib.crc32(stored) != header.crc & 0xFFFF_FFFF:
        raise UnreadableError("the checksum does not match", place=place)
