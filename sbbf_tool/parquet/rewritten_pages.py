"""The pages of a column chunk, rewritten in the form that every decoder reads, for chunks that
pyarrow does not decode as they are.

    total_compressed_size that contradicts the pages   the pages end where the footer's number of
                                                       values is reached
    pages without values, or of another kind           left out
    pages of nulls alone, without a byte of values     stated as PLAIN; in some encodings, decoders
                                                       expect a header of the values
    codecs, such as LZ4 in the blocks of Hadoop        decompressed

Levels and values stay as they are, and pyarrow decodes them. Only page headers are read at first; a
page is read and decompressed when bytes of it are read, and only the last one is kept.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.checked_streams import ReadStream
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import MAGIC
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec, Encoding
from sbbf_tool.parquet.pages import (
    ChunkPages,
    StoredPage,
    count_of,
    page_range,
    read_pages,
)
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk
from sbbf_tool.parquet.structs import build_struct

if TYPE_CHECKING:
    from pyarrow import NativeFile


class NewPages(ABC):
    """Pages of one chunk that no file has, laid out as in a file: after the magic, each header and
    its page. Threads must not share it."""

    def __init__(self, meta: ColumnMetaData, sizes: Iterable[int], *, has_dictionary: bool) -> None:
        """Take the metadata of the chunk in the file, and the bytes of each page with its
        header."""
        *self._starts, self._end = accumulate(sizes, initial=len(MAGIC))
        self.meta = copy.copy(meta)
        """The metadata of the new pages."""
        self.meta.dictionary_page_offset = len(MAGIC) if has_dictionary else None
        self.meta.data_page_offset = [*self._starts, self._end][int(has_dictionary)]
        self.meta.index_page_offset = None
        self.meta.total_compressed_size = self._end - len(MAGIC)

    @abstractmethod
    def content(self, at: int, start: int) -> bytes:
        """Return bytes of a page with its header from its byte `start` on, which may end before the
        page does."""

    def read_part(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes; none after the end. Raises the errors of the page."""
        if offset < len(MAGIC) or offset >= self._end:
            return MAGIC[offset : offset + length]
        at = bisect_right(self._starts, offset) - 1
        return self.content(at, offset - self._starts[at])[:length]

    def read(self, offset: int, length: int) -> bytes:
        """Read `length` bytes; fewer at the end. Raises the errors of the pages."""
        parts = []
        while length > 0:
            part = self.read_part(offset, length)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def open_arrow(self) -> NativeFile:
        """Open a pyarrow stream of the new chunk."""
        import pyarrow

        return pyarrow.PythonFile(ReadStream(self.read, self._end), mode="r")


class RewrittenPages(NewPages):
    """The pages of a chunk in the new form."""

    def __init__(self, pages: ChunkPages, column: Column) -> None:
        """Read the page headers. Raises UnreadableError if they do not hold the number of values
        that the footer states."""
        self._source = pages
        self._chunk = PlainChunk(pages, column)
        self._pages = list(self._follow())
        self._last: tuple[int, bytes] | None = None
        has_dictionary = bool(self._pages) and self._pages[0].is_dictionary
        sizes = map(self._size_with_header, self._pages)
        super().__init__(pages.meta, sizes, has_dictionary=has_dictionary)
        self.meta.codec = CompressionCodec.UNCOMPRESSED

    def _follow(self) -> Iterator[StoredPage]:
        meta = self._source.meta
        position, end = page_range(meta)
        if self._source.limit is not None:
            end = self._source.limit()
        remaining_values = count_of(meta.num_values)
        is_first = True
        for page in read_pages(self._source.read, meta, end):
            if page.end > end:
                raise UnreadableError(
                    "the header states a size of its page that exceeds the column chunk",
                    place=page.place,
                )
            page.ensure_size(self._source.ensure_size)
            if page.values or (page.is_dictionary and is_first):
                yield page
                is_first = False
            remaining_values -= page.values
            position = page.end
        if remaining_values > 0:
            missing = f"{remaining_values:,} values are missing where the pages end"
            stated = (
                f"total_compressed_size in the footer is {count_of(meta.total_compressed_size):,}"
            )
            raise UnreadableError(f"{missing}; {stated}", place=f"page header at byte {position:,}")
        if remaining_values:
            raise UnreadableError(
                f"the pages have {-remaining_values:,} more values than the footer states"
            )

    def _size(self, page: StoredPage) -> int:
        if self._source.meta.codec == CompressionCodec.UNCOMPRESSED:
            return page.stored
        return page.size

    def _size_with_header(self, page: StoredPage) -> int:
        size = self._size(page)
        return len(_build_header(page, size, None)) + size

    def content(self, at: int, start: int) -> bytes:
        """Return the header and the body of a page from byte `start` on; the last page is kept."""
        if self._last is None or self._last[0] != at:
            self._last = (at, self._rewrite(self._pages[at]))
        _, content = self._last
        return content[start:]

    def _rewrite(self, page: StoredPage) -> bytes:
        """Build the header and the body of a page, not compressed."""
        place = f"page at byte {page.body:,}"
        size = self._size(page)
        try:
            stored = self._source.read(page.body, page.stored)
            body, has_values = self._chunk.decompress_page(stored, page, size, place)
        except (ValueError, NotPlainError) as error:
            raise UnreadableError(
                f"the page cannot be decompressed: {error}", place=place
            ) from error
        if len(body) != size:
            raise UnreadableError(
                "the page does not have the size that its header states", place=place
            )
        encoding = None if has_values else Encoding.PLAIN
        return _build_header(page, size, encoding) + body


def _build_header(page: StoredPage, size: int, encoding: int | None) -> bytes:
    """Build the header of a page that is not compressed; any `encoding` takes the same number of
    bytes."""
    header = copy.deepcopy(page.header)
    header.compressed_page_size = header.uncompressed_page_size = size
    header.crc = None
    data = header.data_page_header_v2 or header.data_page_header
    if data is not None:
        if encoding is not None:
            data.encoding = encoding
        if header.data_page_header_v2 is not None:
            data.is_compressed = False
    return build_struct(header)
