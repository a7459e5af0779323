"""What the pages of a column chunk hold in PLAIN form (parquet-format README, "Data Pages"; Encodings.md, "Plain", "Dictionary Encoding").

    dictionary page               each distinct value once, in PLAIN form
    data page that refers to it   nothing that is not in the dictionary: no byte of it is read
    data page in PLAIN form       its values, behind their levels, as they are hashed

So the set of a chunk's values is had without decoding a value, and where all data pages refer to the dictionary without reading them.
Pages of other encodings, codecs and sizes are for whoever decodes everything: `values.read_chunk`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import equals, levels
from sbbf_tool.parquet.batches import data_encodings
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec, Encoding, PageHeader, PageType
from sbbf_tool.parquet.pages import DICTIONARY_ENCODINGS, chunk_range, read_header

MAX_DICTIONARY_BYTES = 64 << 20
MAX_DATA_BYTES = 16 << 20
"""Larger pages are better read as part of the chunk's stream, in batches."""

# LZ4 is not here: under that name files hold either Hadoop's framing or LZ4's own, and the header does not tell which.
_CODECS: dict[int, Callable[[bytes | memoryview, bytearray], int]] = {
    CompressionCodec.SNAPPY: cramjam.snappy.decompress_raw_into,
    CompressionCodec.GZIP: cramjam.gzip.decompress_into,
    CompressionCodec.BROTLI: cramjam.brotli.decompress_into,
    CompressionCodec.ZSTD: cramjam.zstd.decompress_into,
    CompressionCodec.LZ4_RAW: lambda stored, plain: int(cramjam.lz4.decompress_block_into(stored, plain, output_len=len(plain))),
}
"""Decompress into memory of the size that the header states, and answer with the bytes that came. Neither numpy nor pyarrow is needed."""

_ENCODINGS = {Encoding.PLAIN, *DICTIONARY_ENCODINGS, Encoding.RLE, Encoding.BIT_PACKED}  # the last two are those of levels

Read = Callable[[int, int], bytes]
"""`length` bytes from `offset`, or fewer at the end of the file."""


class NotPlainError(Exception):
    """The chunk has a page that is not to be read here."""


class PlainPage:
    """The values of one page; `len` of it is their count."""

    def __init__(self, column: Column, plain: memoryview, count: int, stored_bytes: int, *, normalised_intervals: bool = False) -> None:
        self._column = column
        self._plain = plain
        self._count = count
        self._normalised_intervals = normalised_intervals
        self.stored_bytes = stored_bytes
        """Bytes of page header and page in the file: all that had to be read."""

    def __len__(self) -> int:
        return self._count

    def hashes(self) -> memoryview:
        """XXH64 of every value. Raises UnreadableError where the page does not hold as many as its header says."""
        if self._column.width is not None:
            return hashing.hash_fixed(self._plain, self._column.width)
        return hashing.hash_length_prefixed(self._plain, self._count)

    def hashes_of_equals(self) -> memoryview:
        """Hashes of bytes that mean one of these values and are not stored for it: see `equals`."""
        return equals.hashes_of(self._column, self._plain, normalised_intervals=self._normalised_intervals)


def is_dictionary_encoded(meta: ColumnMetaData) -> bool:
    """Whether all data pages of the chunk are known to be dictionary-encoded; False where the footer leaves it open."""
    encodings = data_encodings(meta)
    return bool(encodings) and set(DICTIONARY_ENCODINGS).issuperset(encodings or ())


def may_be_plain(column: Column, meta: ColumnMetaData) -> bool:
    """Whether the footer knows of no page in the chunk that is not to be read here."""
    return _is_readable(column, meta) and _ENCODINGS.issuperset(meta.encodings or ())


def read_dictionary_page(read: Read, column: Column, meta: ColumnMetaData, *, normalised_intervals: bool = False) -> PlainPage | None:
    """The chunk's dictionary page; None where it is better read as part of the chunk (an unusual codec, very large, not there).

    Raises UnreadableError where the page contradicts itself.
    """
    if not _is_readable(column, meta):
        return None
    start, end = chunk_range(meta)
    header, length = read_header(read, start, end)
    try:
        return _dictionary_page(read, column, meta, header, (start, length, end), normalised_intervals=normalised_intervals)
    except NotPlainError:
        return None


def read_plain_pages(
    read: Read, column: Column, meta: ColumnMetaData, dictionary: PlainPage | None = None, *, normalised_intervals: bool = False
) -> Iterator[PlainPage]:
    """The dictionary page, where there is one, and every data page that does not refer to it: all values of a chunk, and maybe, of the
    dictionary, others. A `dictionary` that was read before is not read again.

    Raises NotPlainError, at whichever page, where the chunk must be decoded instead: also where its pages do not agree with the footer
    or with themselves, which a decoder has the better words for. UnreadableError for a page whose checksum does not fit.
    """
    if not _is_readable(column, meta):
        raise NotPlainError
    position, end = chunk_range(meta)
    values_left = meta.num_values or 0
    has_dictionary = dictionary is not None
    if dictionary is not None:
        yield dictionary
        position += dictionary.stored_bytes
    while values_left > 0:
        header, length = _header(read, position, end)
        body = position + length
        if header.type == PageType.DICTIONARY_PAGE:
            yield _dictionary_page(read, column, meta, header, (position, length, end), normalised_intervals=normalised_intervals)
            has_dictionary = True
        else:
            data = _data_header(header)
            values_left -= data.num_values
            if data.encoding == Encoding.PLAIN:
                stored = _read_body(read, header, body, end, MAX_DATA_BYTES)
                plain, count = _values(column, meta, header, data, stored, f"page at byte {position}")
                yield PlainPage(column, plain, count, length + len(stored), normalised_intervals=normalised_intervals)
            elif data.encoding not in DICTIONARY_ENCODINGS or not has_dictionary:
                raise NotPlainError
        position = body + header.compressed_page_size
        if position > end:
            raise NotPlainError
    if values_left:
        raise NotPlainError


def _is_readable(column: Column, meta: ColumnMetaData) -> bool:
    # A BOOLEAN is a bit in PLAIN form, and a fixed length of 0 none at all.
    has_bytes = column.width is not None or column.physical == "BYTE_ARRAY"
    return has_bytes and (meta.codec in _CODECS or meta.codec == CompressionCodec.UNCOMPRESSED)


def _header(read: Read, position: int, end: int) -> tuple[PageHeader, int]:
    if position >= end:
        raise NotPlainError
    try:
        header, length = read_header(read, position, end)
    except UnreadableError:
        raise NotPlainError from None
    if header.compressed_page_size is None or header.compressed_page_size < 0:
        raise NotPlainError
    return header, length


def _data_header(header: PageHeader) -> Any:
    """What a header says of the values in its data page."""
    data = {PageType.DATA_PAGE: header.data_page_header, PageType.DATA_PAGE_V2: header.data_page_header_v2}.get(header.type)
    if data is None or data.num_values is None or data.num_values < 0:
        raise NotPlainError
    return data


def _read_body(read: Read, header: PageHeader, start: int, end: int, most: int) -> bytes:
    """The page behind a header, as it is stored. Raises NotPlainError where it is too large, or not all there."""
    stored, size = header.compressed_page_size, header.uncompressed_page_size
    if stored is None or size is None or min(stored, size) < 0 or max(stored, size) > most or start + stored > end:
        raise NotPlainError
    body = read(start, stored)
    if len(body) != stored:
        raise NotPlainError
    return body


def _dictionary_page(
    read: Read, column: Column, meta: ColumnMetaData, header: PageHeader, where: tuple[int, int, int], *, normalised_intervals: bool
) -> PlainPage:
    """`where` are the header's first byte and its length, and the byte behind the chunk."""
    position, length, end = where
    page = header.dictionary_page_header
    if header.type != PageType.DICTIONARY_PAGE or page is None or page.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        raise NotPlainError
    stored, size, count = header.compressed_page_size, header.uncompressed_page_size, page.num_values
    if None in (stored, size, count) or max(stored, size) > MAX_DICTIONARY_BYTES:
        raise NotPlainError
    place = f"dictionary page at byte {position}"
    if min(stored, size, count) < 0 or position + length + stored > end:
        raise UnreadableError("it claims to be larger than its chunk, or less than nothing", place=place)
    body = read(position + length, stored)
    if len(body) != stored:
        raise UnreadableError("it is cut short", place=place)
    _check_sum(body, header, place)
    plain = _decompress(body, size, meta.codec, place)
    width = column.width
    if width is not None and len(plain) != count * width:
        raise UnreadableError(f"{len(plain):,} bytes for {count:,} values of {width}", place=place)
    return PlainPage(column, plain, count, length + stored, normalised_intervals=normalised_intervals)


def _values(column: Column, meta: ColumnMetaData, header: PageHeader, data: Any, stored: bytes, place: str) -> tuple[memoryview, int]:
    """The non-null values of a data page in PLAIN form, and their number; `data` is the part of the header that its type asks for."""
    _check_sum(stored, header, place)
    try:
        if header.type == PageType.DATA_PAGE_V2:
            plain, defined = _behind_levels_v2(meta, header, data, stored, place)
        else:
            plain, defined = _behind_levels_v1(column, data, _decompress(stored, header.uncompressed_page_size, meta.codec, place))
        count = levels.count_highest(defined, column.max_definition, data.num_values)
    except (ValueError, UnreadableError):
        raise NotPlainError from None
    if column.width is not None and len(plain) != count * column.width:
        raise NotPlainError
    return plain, count


def _behind_levels_v1(column: Column, data: Any, page: memoryview) -> tuple[memoryview, memoryview]:
    """The values of a page, and its definition levels: of both kinds of levels first their length, then they; none where all are 0."""
    defined = memoryview(b"")
    for highest, encoding in (
        (column.max_repetition, data.repetition_level_encoding),
        (column.max_definition, data.definition_level_encoding),
    ):
        if not highest:
            continue
        if encoding != Encoding.RLE:
            raise NotPlainError
        size = int.from_bytes(page[:4], "little")
        if 4 + size > len(page):
            raise NotPlainError
        defined, page = page[4 : 4 + size], page[4 + size :]
    return page, defined


def _behind_levels_v2(meta: ColumnMetaData, header: PageHeader, data: Any, stored: bytes, place: str) -> tuple[memoryview, memoryview]:
    """The same of a page whose levels are not compressed, and whose header has their lengths."""
    repeated, defined = data.repetition_levels_byte_length or 0, data.definition_levels_byte_length or 0
    size = header.uncompressed_page_size - repeated - defined
    if min(repeated, defined, size) < 0 or repeated + defined > len(stored):
        raise NotPlainError
    view = memoryview(stored)
    codec = CompressionCodec.UNCOMPRESSED if data.is_compressed is False else meta.codec
    values = view[repeated + defined :]
    return _decompress(values, size, codec, place) if size else values[:0], view[repeated : repeated + defined]


def _check_sum(stored: bytes, header: PageHeader, place: str) -> None:
    if header.crc is not None and zlib.crc32(stored) != header.crc & 0xFFFF_FFFF:
        raise UnreadableError("its checksum does not fit", place=place)


def _decompress(stored: bytes | memoryview, size: int, codec: int, place: str) -> memoryview:
    if codec == CompressionCodec.UNCOMPRESSED:
        return memoryview(stored)
    plain = bytearray(size)
    try:
        came = _CODECS[codec](stored, plain)
    except (cramjam.DecompressionError, ValueError) as error:
        raise UnreadableError(f"it cannot be decompressed ({error})", place=place) from error
    if came != size:
        raise UnreadableError(f"it decompresses to {came:,} bytes, its header says {size:,}", place=place)
    return memoryview(plain)
