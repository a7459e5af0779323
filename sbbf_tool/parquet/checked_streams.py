"""Streams of column chunks for pyarrow, which check the sizes that page headers state.

A page of a kilobyte may state that it decompresses to 2 GiB, and readers allocate what a header
states. pyarrow reads pages from the stream of a chunk by itself, so the stream checks each header
first: it returns the bytes of a page only after accepting its sizes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.parquet import page_runs
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData
from sbbf_tool.parquet.page_runs import measure_pages
from sbbf_tool.parquet.pages import (
    ChunkPages,
    EnsureSize,
    Read,
    count_of,
    page_range,
    read_page,
)

if TYPE_CHECKING:
    from pyarrow import NativeFile

_HEADER_WINDOW = 64 << 10
"""Bytes in which several headers are looked for at once."""


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
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = bases[whence] + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        length = max(0, self._size - self._position)
        if size is not None and size >= 0:
            length = min(size, length)
        data = self._read(self._position, length)
        self._position += len(data)
        return data

    def close(self) -> None:
        self._close()
        super().close()


def with_checked_sizes(pages: ChunkPages, ensure_size: EnsureSize) -> ChunkPages:
    """Return the same pages; before their streams return a byte of a page, `ensure_size` checks its
    sizes and may raise an error."""
    return pages._replace(
        open_arrow=partial(open_checked, pages.open_arrow, (pages.meta,), ensure_size),
        ensure_size=ensure_size,
    )


def open_checked(
    open_arrow: Callable[[], NativeFile], metas: Iterable[ColumnMetaData], ensure_size: EnsureSize
) -> NativeFile:
    """Open a stream of a file that checks the sizes of a page of these chunks before it returns a
    byte of the page."""
    import pyarrow

    stream = open_arrow()
    try:
        size: int = stream.size()
    except BaseException:
        stream.close()
        raise
    walks = [HeaderWalk(meta, size, ensure_size) for meta in metas]

    def read(start: int, length: int) -> bytes:
        """Read bytes of the stream; the headers of pages in them are checked first."""
        data: bytes = stream.read_at(length, start)
        end = start + len(data)

        def read_header_at(offset: int, length: int) -> bytes:
            if start <= offset and offset + length <= end:
                return data[offset - start : offset - start + length]
            header: bytes = stream.read_at(length, offset)
            return header

        for walk in walks:
            if walk.first < end and start < walk.last:
                walk.check_up_to(end, read_header_at)
        return data

    return pyarrow.PythonFile(ReadStream(read, size, stream.close), mode="r")


class HeaderWalk:
    """The page headers of one chunk in order, each checked once. `size` is the length of the
    file."""

    def __init__(self, meta: ColumnMetaData, size: int, ensure_size: EnsureSize) -> None:
        self.first, self.last = page_range(meta)
        """First byte of the chunk, and the byte after it, as the footer states them."""
        self._position = self.first
        self._end = min(self.last, size)
        self._size = size
        # Readers stop at the last value. The bytes after it in the chunk are not read, and may be
        # anything.
        self._remaining_values = count_of(meta.num_values)
        self._ensure_size = ensure_size
        self._checks_many = page_runs.is_built

    def check_up_to(self, position: int, read: Read) -> None:
        """Check the header of every page that begins before `position`.

        Raises RefusedError, and UnreadableError if the bytes are not a header or state more bytes
        than the file has.
        """
        while self._position < min(position, self._end) and self._remaining_values > 0:
            if self._checks_many and self._check_many(position, read):
                continue
            try:
                page = read_page(read, self._position, self._end)
                if page.end > self._size:
                    raise UnreadableError(
                        f"its page of {page.stored:,} bytes would run past the end of the file",
                        place=page.place,
                    )
            except UnreadableError as error:
                raise UnreadableError(
                    f"the pages cannot be decoded ({error.place}: {error.message})"
                ) from error
            page.ensure_size(self._ensure_size)
            self._remaining_values -= page.values
            self._position = page.end

    def _check_many(self, position: int, read: Read) -> bool:
        """Check the headers of several pages that begin before `position`; return whether that was
        possible, and all are right."""
        length = min(position, self._end) - self._position
        headers = read(self._position, min(length, _HEADER_WINDOW))
        end = self._size - self._position
        span = measure_pages(headers, self._remaining_values, end)
        if not span.pages:
            return False
        try:
            self._ensure_size(0, span.sizes)
        except SbbfError:
            # A limit of single pages may accept each of them.
            self._checks_many = False
            return False
        self._remaining_values -= span.values
        self._position += span.bytes
        return True
