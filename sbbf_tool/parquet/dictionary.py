"""The dictionary page of a column chunk (parquet-format README, "Data Pages"; Encodings.md, "Dictionary Encoding").

A chunk whose data pages are all dictionary-encoded stores each distinct value once, in PLAIN form, in its first page. Whoever wants the
set of its values reads that page and nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.batches import data_encodings
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec, Encoding, PageHeader, PageType
from sbbf_tool.parquet.pages import DICTIONARY_ENCODINGS, chunk_range, read_header, read_pages

MAX_PAGE_BYTES = 64 << 20
"""A larger dictionary is better read as part of the chunk's stream, in batches."""

# LZ4 is not here: under that name files hold either Hadoop's framing or LZ4's own, and the header does not tell which.
_CODECS = {
    CompressionCodec.SNAPPY: "snappy",
    CompressionCodec.GZIP: "gzip",
    CompressionCodec.BROTLI: "brotli",
    CompressionCodec.ZSTD: "zstd",
    CompressionCodec.LZ4_RAW: "lz4_raw",
}


class DictionaryPage:
    """The distinct values of a chunk; `len` of it is their count."""

    def __init__(self, column: Column, plain: memoryview, count: int, stored_bytes: int, *, normalised_intervals: bool) -> None:
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


def has_only_dictionary_pages(read: Callable[[int, int], bytes], meta: ColumnMetaData) -> bool:
    """The same from the headers of the data pages themselves, of which a footer is but a summary: reads them, and no page.

    Raises UnreadableError for a header that cannot be one.
    """
    return all(page.is_dictionary or page.encoding in DICTIONARY_ENCODINGS for page in read_pages(read, meta))


def read_dictionary_page(
    read: Callable[[int, int], bytes], column: Column, meta: ColumnMetaData, *, normalised_intervals: bool = False
) -> DictionaryPage | None:
    """The chunk's dictionary page; None where it is better read as part of the chunk (an unusual codec, very large, not there).

    `read(offset, length)` may answer with fewer bytes at the end of the file. Raises UnreadableError where the page contradicts itself.
    """
    if column.physical == "BOOLEAN" or (meta.codec not in _CODECS and meta.codec != CompressionCodec.UNCOMPRESSED):
        return None
    start, end = chunk_range(meta)
    header, length = read_header(read, start, end)
    page = header.dictionary_page_header
    if header.type != PageType.DICTIONARY_PAGE or page is None or page.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        return None
    stored, size, count = header.compressed_page_size, header.uncompressed_page_size, page.num_values
    if None in (stored, size, count) or max(stored, size) > MAX_PAGE_BYTES:
        return None
    place = f"dictionary page at byte {start}"
    if min(stored, size, count) < 0 or start + length + stored > end:
        raise UnreadableError("it claims to be larger than its chunk, or less than nothing", place=place)
    body = read(start + length, stored)
    plain = _decompress(body, header, meta.codec, place)
    width = column.width
    if width is not None and len(plain) != count * width:
        raise UnreadableError(f"{len(plain):,} bytes for {count:,} values of {width}", place=place)
    return DictionaryPage(column, plain, count, length + stored, normalised_intervals=normalised_intervals)


def _decompress(body: bytes, header: PageHeader, codec: int, place: str) -> memoryview:
    if len(body) != header.compressed_page_size:
        raise UnreadableError("it is cut short", place=place)
    if header.crc is not None and zlib.crc32(body) != header.crc & 0xFFFF_FFFF:
        raise UnreadableError("its checksum does not fit", place=place)
    if codec == CompressionCodec.UNCOMPRESSED:
        return memoryview(body)
    import pyarrow as pa

    try:
        return memoryview(pa.Codec(_CODECS[codec]).decompress(body, header.uncompressed_page_size))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(f"it cannot be decompressed ({error})", place=place) from error
