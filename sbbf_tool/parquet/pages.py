"""The pages of one column chunk as their headers describe them; no page is read (parquet.thrift `PageHeader`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, Encoding, PageHeader, PageType
from sbbf_tool.parquet.structs import parse_prefix

DICTIONARY_ENCODINGS = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)

if TYPE_CHECKING:
    from pyarrow import NativeFile

# Most headers take some 30 bytes; page statistics in them may hold two whole values.
_FIRST_WINDOW = 64


class ChunkPages(NamedTuple):
    """The decrypted pages of one column chunk: a file, or an encrypted chunk read with its key."""

    meta: ColumnMetaData
    """The chunk's metadata, with offsets for `read`."""
    read: Callable[[int, int], bytes]
    """Return `length` bytes from `offset`; fewer at the end and, for an encrypted chunk, at the end of a page header."""
    open_arrow: Callable[[], NativeFile]
    """Open a new stream of the same bytes."""
    ensure_size: Callable[[int, int], None] | None = None
    """Check the compressed and uncompressed bytes that a page header states; raises RefusedError. None accepts all."""
    limit: Callable[[], int] | None = None
    """Return the first byte after the chunk that belongs to something else; None if total_compressed_size is certain."""

    @property
    def bytes(self) -> int:
        """Compressed bytes of all pages with their headers, as the footer states them."""
        return count_of(self.meta.total_compressed_size)


class ReadStream(io.RawIOBase):
    """A file of `size` bytes over `read(offset, length)`, as a Python file object for pyarrow."""

    def __init__(self, read: Callable[[int, int], bytes], size: int, close: Callable[[], None] = lambda: None) -> None:
        self._read = read
        self._size = size
        self._close = close
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        remaining = max(0, self._size - self._position)
        data = self._read(self._position, remaining if size is None or size < 0 else min(size, remaining))
        self._position += len(data)
        return data

    def close(self) -> None:
        self._close()
        super().close()


class Page(NamedTuple):
    """A dictionary or data page."""

    is_dictionary: bool
    encoding: int
    values: int
    """Number of values that the header states, including nulls."""
    size: int
    """Bytes after decompression, including levels."""


def read_pages(read: Callable[[int, int], bytes], meta: ColumnMetaData) -> Iterator[Page]:
    """Iterate over the pages of a chunk in order, to its last value. `read(offset, length)` may return fewer bytes at the end of the file.

    Raises UnreadableError, with the byte offset, for bytes that cannot be a header.
    """
    position, end = page_range(meta)
    remaining_values = count_of(meta.num_values)
    while position < end and remaining_values > 0:
        header, length = read_header(read, position, end)
        place = f"page header at byte {position:,}"
        data = header.data_page_header_v2 or header.data_page_header or header.dictionary_page_header
        if header.compressed_page_size is None or header.compressed_page_size < 0 or header.uncompressed_page_size is None:
            raise UnreadableError("the header does not state the size of its page", place=place)
        if data is not None:
            is_dictionary = header.type == PageType.DICTIONARY_PAGE
            remaining_values -= 0 if is_dictionary else count_of(data.num_values)
            yield Page(is_dictionary, data.encoding or 0, count_of(data.num_values), count_of(header.uncompressed_page_size))
        position += length + header.compressed_page_size


def page_range(meta: ColumnMetaData) -> tuple[int, int]:
    """Return the first byte of the chunk's first page, and the byte after its last page. A dictionary page, if any, comes first."""
    start = meta.data_page_offset or 0
    if meta.dictionary_page_offset and 0 < meta.dictionary_page_offset < start:
        start = meta.dictionary_page_offset
    return start, start + count_of(meta.total_compressed_size)


def data_encodings(meta: ColumnMetaData) -> set[int] | None:
    """Return the encodings of the chunk's data pages; None if the footer does not show them."""
    if meta.encoding_stats:
        return {entry.encoding for entry in meta.encoding_stats if entry.page_type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)}
    encodings = set(meta.encodings or ()) - {Encoding.RLE, Encoding.BIT_PACKED}  # the encodings of levels
    # Besides RLE_DICTIONARY, PLAIN is the encoding of either the dictionary page or data pages after it.
    return None if not encodings or Encoding.RLE_DICTIONARY in encodings else encodings


def is_dictionary_encoded(meta: ColumnMetaData) -> bool:
    """Return whether all data pages of the chunk are known to be dictionary-encoded; False if the footer does not show it."""
    encodings = data_encodings(meta)
    return bool(encodings) and set(DICTIONARY_ENCODINGS).issuperset(encodings or ())


def count_of(number: int | None) -> int:
    """Return a size or count that a struct states; 0 if it is missing or negative."""
    return max(0, number or 0)


def read_header(read: Callable[[int, int], bytes], position: int, end: int) -> tuple[PageHeader, int]:
    """Read the page header at `position` of a chunk that ends at `end`; return it and its length."""
    window = _FIRST_WINDOW
    while True:
        data = read(position, min(window, end - position))
        try:
            return parse_prefix(PageHeader, data)
        except UnreadableError as error:
            if window >= end - position or len(data) < window:
                raise UnreadableError(
                    "the bytes are truncated, or are not a page header", place=f"page header at byte {position:,}"
                ) from error
        window *= 4
