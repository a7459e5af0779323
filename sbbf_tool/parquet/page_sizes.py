"""The sizes that page headers state, checked before a page is read (parquet.thrift `PageHeader`, fields 2 and 3).

A page of a kilobyte may state that it decompresses to 2 GiB, and readers allocate what a header states. pyarrow reads pages from
the stream of a chunk by itself, so the stream checks each header first: it returns the bytes of a page only after accepting its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, Encoding, PageHeader, PageType
from sbbf_tool.parquet.pages import ChunkPages, ReadStream, count_of, page_range, read_header

if TYPE_CHECKING:
    from pyarrow import NativeFile

EnsureSize: TypeAlias = Callable[[int, int], None]
"""A function of the compressed and the uncompressed bytes that a page header states. Raises RefusedError above the decompression limit."""


# pyarrow decodes the lengths of all values of a page at once, and a run of equal lengths takes no bytes.
_LENGTH_BYTES = {Encoding.DELTA_LENGTH_BYTE_ARRAY: 4, Encoding.DELTA_BYTE_ARRAY: 8}


def ensure_page(header: PageHeader, position: int, ensure_size: EnsureSize) -> None:
    """Check the sizes in the header at `position`. Raises the error of `ensure_size`, with the position."""
    data = header.data_page_header_v2 or header.data_page_header
    lengths = _LENGTH_BYTES.get(data.encoding, 0) * count_of(data.num_values) if data is not None else 0
    try:
        ensure_size(count_of(header.compressed_page_size), max(count_of(header.uncompressed_page_size), lengths))
    except SbbfError as error:
        raise error.at(place=f"page header at byte {position:,}") from None


def with_checked_sizes(pages: ChunkPages, ensure_size: EnsureSize) -> ChunkPages:
    """Return the same pages; before their streams return a byte of a page, `ensure_size` checks its sizes and may raise an error."""
    return pages._replace(open_arrow=partial(open_checked, pages.open_arrow, (pages.meta,), ensure_size), ensure_size=ensure_size)


def open_checked(open_arrow: Callable[[], NativeFile], metas: Iterable[ColumnMetaData], ensure_size: EnsureSize) -> NativeFile:
    """Open a stream of a file that checks the sizes of a page of these chunks before it returns a byte of the page."""
    import pyarrow

    stream = open_arrow()
    try:
        size: int = stream.size()
    except BaseException:
        stream.close()
        raise
    walks = [(*page_range(meta), HeaderWalk(meta, size, ensure_size)) for meta in metas]

    def read(start: int, length: int) -> bytes:
        data: bytes = stream.read_at(length, start)
        end = start + len(data)

        def read_header_at(offset: int, length: int) -> bytes:
            if start <= offset and offset + length <= end:
                return data[offset - start : offset - start + length]
            header: bytes = stream.read_at(length, offset)
            return header

        for first, last, walk in walks:
            if first < end and start < last:
                walk.check_up_to(end, read_header_at)
        return data

    return pyarrow.PythonFile(ReadStream(read, size, stream.close), mode="r")


class HeaderWalk:
    """The page headers of one chunk in order, each checked once. `size` is the length of the file."""

    def __init__(self, meta: ColumnMetaData, size: int, ensure_size: EnsureSize) -> None:
        self._position, end = page_range(meta)
        self._end = min(end, size)
        self._size = size
        # Readers stop at the last value. The bytes after it in the chunk are not read, and may be anything.
        self._remaining_values = meta.num_values or 0
        self._ensure_size = ensure_size

    def check_up_to(self, position: int, read: Callable[[int, int], bytes]) -> None:
        """Check the header of every page that begins before `position`.

        Raises RefusedError, and UnreadableError if the bytes are not a header or state more bytes than the file has.
        """
        while self._position < min(position, self._end) and self._remaining_values > 0:
            try:
                header, length = read_header(read, self._position, self._end)
            except UnreadableError as error:
                raise self._undecodable(error.message) from error
            stored = header.compressed_page_size
            if stored is None or stored < 0:
                raise self._undecodable("the header does not state the size of its page")
            if self._position + length + stored > self._size:
                raise self._undecodable(f"its page of {stored:,} bytes would run past the end of the file")
            ensure_page(header, self._position, self._ensure_size)
            if header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                data = header.data_page_header if header.type == PageType.DATA_PAGE else header.data_page_header_v2
                self._remaining_values -= count_of(data.num_values) if data is not None else 0
            self._position += length + stored

    def _undecodable(self, reason: str) -> UnreadableError:
        return UnreadableError(f"the pages cannot be decoded (page header at byte {self._position:,}: {reason})")
