"""The pages of a column chunk, rewritten in the form that every decoder reads, for chunks that pyarrow does not decode as they are.

    total_compressed_size that contradicts the pages   the pages end where the footer's number of values is reached
    pages without values, or of another kind           left out
    pages of nulls alone, without a byte of values     stated as PLAIN; in some encodings, decoders expect a header of the values
    codecs, such as LZ4 in the blocks of Hadoop        decompressed

Levels and values stay as they are, and pyarrow decodes them. Only page headers are read at first; a page is read and decompressed when
bytes of it are read, and only the last one is kept.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import plain_pages
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import MAGIC
from sbbf_tool.parquet.idl.ttypes import CompressionCodec, Encoding, PageHeader, PageType
from sbbf_tool.parquet.page_sizes import ensure_page
from sbbf_tool.parquet.pages import ChunkPages, ReadStream, count_of, page_range, read_header
from sbbf_tool.parquet.structs import build_struct

if TYPE_CHECKING:
    from pyarrow import NativeFile


class _Page(NamedTuple):
    start: int
    """First byte of the header in the new chunk."""
    header_bytes: int
    size: int
    offset: int
    """First byte of the page in the file."""
    header: PageHeader
    """The header as stored."""


class RewrittenPages:
    """The new pages of one chunk; threads must not share it."""

    def __init__(self, pages: ChunkPages, column: Column) -> None:
        """Read the page headers. Raises UnreadableError if they do not hold the number of values that the footer states."""
        self._source = pages
        self._chunk = plain_pages.PlainChunk(pages.read, column, pages.meta)
        self._pages: list[_Page] = []
        self._last: tuple[int, bytes] | None = None
        self._end = len(MAGIC)
        self._follow()
        self._starts = [page.start for page in self._pages]
        self.meta = copy.copy(pages.meta)
        self.meta.codec = CompressionCodec.UNCOMPRESSED
        has_dictionary = bool(self._pages) and self._pages[0].header.type == PageType.DICTIONARY_PAGE
        self.meta.dictionary_page_offset = len(MAGIC) if has_dictionary else None
        self.meta.data_page_offset = self._starts[1] if has_dictionary and len(self._pages) > 1 else len(MAGIC)
        self.meta.index_page_offset = None
        self.meta.total_compressed_size = self._end - len(MAGIC)

    def as_pages(self) -> ChunkPages:
        return ChunkPages(self.meta, self.read, self.open_arrow)

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes of the new chunk, which begins after a file's magic; fewer at its end. Raises UnreadableError."""
        parts = []
        position, end = offset, min(offset + length, self._end)
        while position < end:
            if position < len(MAGIC):
                part = MAGIC[position:end]
            else:
                at = bisect_right(self._starts, position) - 1
                inside = position - self._starts[at]
                part = self._content(at)[inside : inside + end - position]
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def open_arrow(self) -> NativeFile:
        """Open a pyarrow stream of the new chunk."""
        import pyarrow

        return pyarrow.PythonFile(ReadStream(self.read, self._end), mode="r")

    def _follow(self) -> None:
        position, stated_end = page_range(self._source.meta)
        end = self._source.limit() if self._source.limit is not None else stated_end
        remaining_values = count_of(self._source.meta.num_values)
        while remaining_values > 0:
            place = f"page header at byte {position:,}"
            if position >= end:
                stated = f"total_compressed_size in the footer is {count_of(self._source.meta.total_compressed_size):,}"
                raise UnreadableError(f"{remaining_values:,} values are missing where the pages end; {stated}", place=place)
            header, length = read_header(self._source.read, position, end)
            stored, size = header.compressed_page_size, header.uncompressed_page_size
            if self._source.meta.codec == CompressionCodec.UNCOMPRESSED:
                size = stored
            if stored is None or size is None or min(stored, size) < 0 or position + length + stored > end:
                raise UnreadableError("the header states no size of its page, or one that exceeds the column chunk", place=place)
            if self._source.ensure_size is not None:
                ensure_page(header, position, self._source.ensure_size)
            data = header.data_page_header_v2 or header.data_page_header
            num_values = count_of(data.num_values) if data is not None else 0
            if num_values or (header.type == PageType.DICTIONARY_PAGE and not self._pages):
                page = _Page(self._end, len(_build_header(header, size, None)), size, position + length, header)
                self._pages.append(page)
                self._end += page.header_bytes + page.size
            remaining_values -= num_values
            position += length + stored
        if remaining_values:
            raise UnreadableError(f"the pages have {-remaining_values:,} more values than the footer states")

    def _content(self, at: int) -> bytes:
        """Return the header and the body of a new page."""
        if self._last is None or self._last[0] != at:
            page = self._pages[at]
            place = f"page at byte {page.offset:,}"
            stored = self._source.read(page.offset, page.header.compressed_page_size)
            try:
                body, has_values = self._chunk.decompress_page(stored, page.header, page.size, place)
            except (ValueError, plain_pages.NotPlainError) as error:
                raise UnreadableError(f"the page cannot be decompressed: {error}", place=place) from error
            if len(body) != page.size:
                raise UnreadableError("the page does not have the size that its header states", place=place)
            self._last = at, _build_header(page.header, page.size, None if has_values else Encoding.PLAIN) + body
        return self._last[1]


def _build_header(header: PageHeader, size: int, encoding: int | None) -> bytes:
    """Build the header of a page that is not compressed; any `encoding` takes the same number of bytes."""
    header = copy.deepcopy(header)
    header.compressed_page_size = header.uncompressed_page_size = size
    header.crc = None
    data = header.data_page_header_v2 or header.data_page_header
    if data is not None:
        data.statistics = None
        if encoding is not None:
            data.encoding = encoding
        if header.data_page_header_v2 is not None:
            data.is_compressed = False
    return build_struct(header)
