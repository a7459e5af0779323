"""The pages of one column chunk as their headers describe them; no page is read (parquet.thrift `PageHeader`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, Encoding, PageHeader, PageType
from sbbf_tool.parquet.structs import read_prefix

DICTIONARY_ENCODINGS = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)

if TYPE_CHECKING:
    from pyarrow import NativeFile

Read: TypeAlias = Callable[[int, int], bytes]
"""A function that returns `length` bytes from `offset`, or fewer at the end of the file."""
EnsureSize: TypeAlias = Callable[[int, int], None]
"""A function of the compressed and the uncompressed bytes that a page header states. Raises RefusedError above the decompression limit."""

# pyarrow decodes the lengths of all values of a page at once, and a run of equal lengths takes no bytes.
_LENGTH_BYTES = {Encoding.DELTA_LENGTH_BYTE_ARRAY: 4, Encoding.DELTA_BYTE_ARRAY: 8}
# Most headers take some 30 bytes; page statistics in them may hold two whole values.
_FIRST_WINDOW = 64


class ChunkPages(NamedTuple):
    """The decrypted pages of one column chunk: a file, or an encrypted chunk read with its key."""

    meta: ColumnMetaData
    """The chunk's metadata, with offsets for `read`."""
    read: Read
    """Return bytes; for an encrypted chunk, fewer at the end of a page header and of a page."""
    open_arrow: Callable[[], NativeFile]
    """Open a new stream of the same bytes."""
    ensure_size: EnsureSize = lambda stored, size: None
    limit: Callable[[], int] | None = None
    """Return the first byte after the chunk that belongs to something else; None if total_compressed_size is certain."""

    @property
    def bytes(self) -> int:
        """Compressed bytes of all pages with their headers, as the footer states them."""
        return count_of(self.meta.total_compressed_size)


class ReadStream(io.RawIOBase):
    """A file of `size` bytes over `read(offset, length)`, as a Python file object for pyarrow."""

    def __init__(self, read: Read, size: int, close: Callable[[], None] = lambda: None) -> None:
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


class StoredPage(NamedTuple):
    """A page as its header describes it. Numbers that are missing or negative count as 0."""

    offset: int
    """First byte of the header."""
    header_bytes: int
    header: PageHeader

    @property
    def body(self) -> int:
        """First byte after the header."""
        return self.offset + self.header_bytes

    @property
    def stored(self) -> int:
        """Bytes of the page without its header, as stored."""
        return count_of(self.header.compressed_page_size)

    @property
    def end(self) -> int:
        return self.body + self.stored

    @property
    def size(self) -> int:
        """Bytes after decompression, including levels."""
        return count_of(self.header.uncompressed_page_size)

    @property
    def is_dictionary(self) -> bool:
        return bool(self.header.type == PageType.DICTIONARY_PAGE)

    @property
    def data(self) -> Any:
        """The part of the header that describes the values of a data page; None for other pages, and if it does not count the values."""
        header = self.header
        data = {PageType.DATA_PAGE: header.data_page_header, PageType.DATA_PAGE_V2: header.data_page_header_v2}.get(header.type)
        return None if data is None or data.num_values is None or data.num_values < 0 else data

    @property
    def values(self) -> int:
        """Number of values of a data page, including nulls."""
        return 0 if self.data is None else int(self.data.num_values)

    @property
    def place(self) -> str:
        return f"page header at byte {self.offset:,}"

    def ensure_size(self, ensure_size: EnsureSize) -> None:
        """Check the stated sizes. Raises the error of `ensure_size`, with the position."""
        lengths = _LENGTH_BYTES.get(self.data.encoding, 0) * self.values if self.values else 0
        try:
            ensure_size(self.stored, max(self.size, lengths))
        except SbbfError as error:
            raise error.at(place=self.place) from None


def read_page(read: Read, position: int, end: int) -> StoredPage:
    """Read the page header at `position` of a chunk that ends at `end`.

    Raises UnreadableError, with the byte offset, for bytes that cannot be a header, and if it does not state the size of its page.
    """
    try:
        header, length = read_prefix(PageHeader, read, position, end, _FIRST_WINDOW)
    except UnreadableError as error:
        raise UnreadableError("the bytes are truncated, or are not a page header", place=f"page header at byte {position:,}") from error
    page = StoredPage(position, length, header)
    if header.compressed_page_size is None or header.compressed_page_size < 0:
        raise UnreadableError("the header does not state the size of its page", place=page.place)
    return page


def read_pages(read: Read, meta: ColumnMetaData) -> Iterator[StoredPage]:
    """Iterate over the pages of a chunk in order, to its last value. Raises as `read_page`."""
    position, end = page_range(meta)
    remaining_values = count_of(meta.num_values)
    while position < end and remaining_values > 0:
        yield (page := read_page(read, position, end))
        remaining_values -= page.values
        position = page.end


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
