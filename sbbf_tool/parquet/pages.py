"""One column chunk as the footer and the headers of its pages describe it; no page is read
(`ColumnChunk`, `PageHeader` of parquet.thrift).

Writers leave fields out, and damaged footers contain negative numbers. A missing size counts as 0,
since sizes are added up and limit reads. A missing count is None (unknown), since 0 would wrongly
mean that there are no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData, Encoding, PageHeader, PageType
from sbbf_tool.parquet.structs import read_prefix

if TYPE_CHECKING:
    from pyarrow import NativeFile

DICTIONARY_ENCODINGS = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)
_ENCODINGS_OF_LEVELS = {Encoding.RLE, Encoding.BIT_PACKED}

Read: TypeAlias = Callable[[int, int], bytes]
"""A function that returns `length` bytes from `offset`, or fewer at the end of the file."""
EnsureSize: TypeAlias = Callable[[int, int], None]
"""A function of the compressed and the uncompressed bytes that a page header states. Raises
RefusedError above the decompression limit."""

# pyarrow decodes the lengths of all values of a page at once, and a run of equal lengths takes no
# bytes.
_LENGTH_BYTES = {Encoding.DELTA_LENGTH_BYTE_ARRAY: 4, Encoding.DELTA_BYTE_ARRAY: 8}
# Most headers take some 30 bytes; page statistics in them hold two whole values, of up to 64 bytes
# in most files.
_FIRST_WINDOW = 256


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
    """Return the first byte after the chunk that belongs to something else; None if
    total_compressed_size is certain."""

    @property
    def bytes(self) -> int:
        """Compressed bytes of all pages with their headers, as the footer states them."""
        return count_of(self.meta.total_compressed_size)


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
        """The part of the header that describes the values of a data page; None for other pages,
        and if it does not count the values."""
        header = self.header
        data = None
        if header.type == PageType.DATA_PAGE:
            data = header.data_page_header
        elif header.type == PageType.DATA_PAGE_V2:
            data = header.data_page_header_v2
        if data is None or data.num_values is None or data.num_values < 0:
            return None
        return data

    @property
    def values(self) -> int:
        """Number of values of a data page, including nulls."""
        data = self.data
        return 0 if data is None else int(data.num_values)

    @property
    def place(self) -> str:
        return f"page header at byte {self.offset:,}"

    def ensure_size(self, ensure_size: EnsureSize) -> None:
        """Check the stated sizes. Raises the error of `ensure_size`, with the position."""
        data = self.data
        size = self.size
        if data is not None:
            size = max(size, _LENGTH_BYTES.get(data.encoding, 0) * data.num_values)
        try:
            ensure_size(self.stored, size)
        except SbbfError as error:
            raise error.at(place=self.place) from None


def read_page(read: Read, position: int, end: int) -> StoredPage:
    """Read the page header at `position` of a chunk that ends at `end`.

    Raises UnreadableError, with the byte offset, for bytes that cannot be a header, and if it does
    not state the size of its page.
    """
    try:
        header, length = read_prefix(PageHeader, read, position, end, _FIRST_WINDOW)
    except UnreadableError as error:
        raise UnreadableError(
            "the bytes are truncated, or are not a page header",
            place=f"page header at byte {position:,}",
        ) from error
    page = StoredPage(position, length, header)
    if header.compressed_page_size is None or header.compressed_page_size < 0:
        raise UnreadableError("the header does not state the size of its page", place=page.place)
    return page


def read_pages(read: Read, meta: ColumnMetaData, end: int | None = None) -> Iterator[StoredPage]:
    """Iterate over the pages of a chunk in order, to its last value or up to `end`. Raises as
    `read_page`."""
    position, end_of_chunk = page_range(meta)
    if end is None:
        end = end_of_chunk
    remaining_values = count_of(meta.num_values)
    while position < end and remaining_values > 0:
        page = read_page(read, position, end)
        yield page
        remaining_values -= page.values
        position = page.end


def page_range(meta: ColumnMetaData) -> tuple[int, int]:
    """Return the first byte of the chunk's first page, and the byte after its last page. A
    dictionary page, if any, comes first."""
    start = meta.data_page_offset or 0
    if meta.dictionary_page_offset and 0 < meta.dictionary_page_offset < start:
        start = meta.dictionary_page_offset
    return start, start + count_of(meta.total_compressed_size)


def data_encodings(meta: ColumnMetaData) -> set[int] | None:
    """Return the encodings of the chunk's data pages; None if the footer does not show them."""
    if meta.encoding_stats:
        return {
            entry.encoding
            for entry in meta.encoding_stats
            if entry.page_type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)
        }
    encodings = set(meta.encodings or ()) - _ENCODINGS_OF_LEVELS
    # Besides RLE_DICTIONARY, PLAIN is the encoding of either the dictionary page or data pages
    # after it.
    if not encodings or Encoding.RLE_DICTIONARY in encodings:
        return None
    return encodings


def is_dictionary_encoded(meta: ColumnMetaData) -> bool:
    """Return whether all data pages of the chunk are known to be dictionary-encoded; False if the
    footer does not show it."""
    encodings = data_encodings(meta)
    if not encodings:
        return False
    return encodings.issubset(DICTIONARY_ENCODINGS)


def count_of(number: int | None) -> int:
    """Return a size or count that a struct states; 0 if it is missing or negative."""
    return max(0, number or 0)


# The metadata of a locked chunk, which state nothing.
_UNKNOWN = ColumnMetaData()


class ChunkMeta:
    """A view of one column chunk's structs; it copies nothing and is cheap to make."""

    __slots__ = ("_chunk", "_meta")

    def __init__(self, chunk: ColumnChunk) -> None:
        self._chunk = chunk
        self._meta = chunk.meta_data if chunk.meta_data is not None else _UNKNOWN

    @property
    def is_locked(self) -> bool:
        """Whether the metadata are unknown: they are encrypted with the column's own key, which is
        missing."""
        return self._chunk.meta_data is None

    @property
    def is_encrypted(self) -> bool:
        """Whether the chunk's pages are encrypted, with any key."""
        return self._chunk.crypto_metadata is not None or self.is_locked

    @property
    def external(self) -> str | None:
        """Path of the other file that contains the chunk's pages; None if they are in this file."""
        return self._chunk.file_path or None

    @property
    def bytes(self) -> int:
        """Compressed bytes of all pages with their headers; 0 if unknown."""
        return count_of(self._meta.total_compressed_size)

    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed bytes of all pages with their headers; 0 if unknown."""
        return count_of(self._meta.total_uncompressed_size)

    @property
    def values(self) -> int | None:
        """Number of values, nulls included."""
        return _stated_count(self._meta.num_values)

    @property
    def nulls(self) -> int | None:
        """Number of nulls. Writers disagree on whether an empty list counts as a null."""
        statistics = self._meta.statistics
        return None if statistics is None else _stated_count(statistics.null_count)

    @property
    def non_null_values(self) -> int | None:
        """Number of values that are not null; None if either count is unknown, or they contradict
        each other."""
        values = self.values
        if values == 0:
            return 0
        nulls = self.nulls
        if values is None or nulls is None or nulls > values:
            return None
        if nulls == values and self._has_bounds:
            return None
        return values - nulls

    @property
    def _has_bounds(self) -> bool:
        """Whether the statistics, which the chunk has, state a bound of its values."""
        statistics = self._meta.statistics
        bounds = (statistics.min, statistics.max, statistics.min_value, statistics.max_value)
        return any(bound is not None for bound in bounds)

    @property
    def most_values(self) -> int:
        """Upper bound of non-null values, for sizes and estimates: all values if the number of
        nulls is unknown."""
        return max(0, (self.values or 0) - (self.nulls or 0))

    @property
    def has_only_nulls(self) -> bool:
        """Whether the footer shows that the chunk contains only nulls, or no values."""
        return self.non_null_values == 0

    @property
    def type(self) -> int | None:
        """Physical type, as a number of parquet.thrift's `Type`."""
        number: int | None = self._meta.type
        return number

    @property
    def encodings(self) -> frozenset[int]:
        return frozenset(self._meta.encodings or ())

    @property
    def page_types(self) -> frozenset[int]:
        """Types of the pages, if the writer lists them."""
        return frozenset(entry.page_type for entry in self._meta.encoding_stats or ())

    @property
    def is_dictionary_encoded(self) -> bool:
        """Whether all data pages are known to be dictionary-encoded; False if the footer does not
        show it."""
        return is_dictionary_encoded(self._meta)

    @property
    def page_range(self) -> tuple[int, int]:
        """First byte of the first page, and the byte after the last page; (0, 0) if the metadata
        are locked."""
        return page_range(self._meta)

    @property
    def first_data_page(self) -> int | None:
        """Offset of the first data page if a dictionary page is before it; None if there is none,
        or if the metadata are locked."""
        dictionary = self._meta.dictionary_page_offset or 0
        data = self._meta.data_page_offset or 0
        return data if 0 < dictionary < data else None

    @property
    def stated_filter(self) -> tuple[int | None, int | None]:
        """`bloom_filter_offset` and `bloom_filter_length` as stated, even if they mean that there
        is no filter."""
        return self._meta.bloom_filter_offset, self._meta.bloom_filter_length

    @property
    def file_offset(self) -> int | None:
        """`file_offset` as stated: the place of a copy of the metadata, or of the first page, or
        0."""
        return _stated_count(self._chunk.file_offset)

    def is_copy(self, other: ColumnMetaData) -> bool:
        """Return whether these metadata describe the same pages; a copy is written before filters
        and statistics are added.

        Offsets in the copies of older versions of parquet-rs count from the first byte of the
        chunk, so only their distance is compared.
        """
        if self.is_locked:
            return False
        names = ("type", "path_in_schema", "codec", "num_values", "total_compressed_size")
        is_same = all(getattr(self._meta, name) == getattr(other, name) for name in names)
        return is_same and _dictionary_bytes(self._meta) == _dictionary_bytes(other)


def _dictionary_bytes(meta: ColumnMetaData) -> int | None:
    """Return the distance from dictionary page to first data page; None without a dictionary."""
    if meta.dictionary_page_offset is None:
        return None
    distance: int = meta.data_page_offset - meta.dictionary_page_offset
    return distance


def _stated_count(number: int | None) -> int | None:
    if number is None or number < 0:
        return None
    return number
