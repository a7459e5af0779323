"""Runs of pages: data pages of a chunk that follow each other and have one form, read in one call.

The extension `_pages` reads them. It stops before a page that is not as it expects, and reads none
of a codec that it does not know: such pages are read one by one, so what a chunk holds never
depends on the extension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.parquet.codecs import COMPILED_CODECS
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import CompressionCodec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.parquet.pages import Read

try:
    from sbbf_tool.parquet import _pages
except ImportError:
    is_built = False
else:
    is_built = True

_CODECS = {
    CompressionCodec.UNCOMPRESSED,
    CompressionCodec.SNAPPY,
    *(number for number, codec in enumerate(COMPILED_CODECS) if codec is not None),
}
_FIRST_WINDOW = 64 << 10
_LARGEST_WINDOW = 4 << 20
_GROWTH = 4
SMALL_PAGE = 4 << 10
"""Bytes of a page up to which the header after it is read together with it."""


class PageSpan(NamedTuple):
    """Pages that follow each other, by their headers."""

    pages: int
    bytes: int
    """Bytes with headers, as stored."""
    values: int
    """Number of values, nulls included."""
    sizes: int
    """The most bytes that a reader allocates for them: see `StoredPage.ensure_size`."""


_NO_PAGES = PageSpan(0, 0, 0, 0)


class PageRun(NamedTuple):
    """The values of pages, in order."""

    span: PageSpan
    num_present: int
    """Number of values without nulls."""
    content: memoryview
    """The values in PLAIN form, or their numbers in the dictionary."""
    present: bytearray | None
    """A byte for each value, which is 0 for null; None if there is no null."""

    def indices(self) -> NDArray[np.uint32]:
        """Return the numbers of the values in the dictionary."""
        import numpy as np

        return np.frombuffer(self.content, np.uint32)

    def rows(self, first_row: int) -> NDArray[np.int64]:
        """Return the rows of the values, of a column without lists."""
        import numpy as np

        if self.present is None:
            return np.arange(first_row, first_row + self.num_present)
        return np.flatnonzero(np.frombuffer(self.present, np.bool_)) + first_row


def measure_pages(data: bytes, values: int, end: int) -> PageSpan:
    """Measure the pages whose headers are in `data`, up to one that reaches this number of values.
    The last one may end behind `data`, but by `end`."""
    return PageSpan(*_pages.measure(data, _pages.ANY, values, end))


class RunReader:
    """Reads runs of pages of one chunk, whose last byte is before `end`."""

    def __init__(self, read: Read, column: Column, codec: int, end: int) -> None:
        self._read = read
        self._column = column
        self._codec = codec
        self.is_able = is_built and codec in _CODECS
        """Whether pages of the chunk are read here."""
        self._end = end
        self._window = _FIRST_WINDOW
        self._start = 0
        self._data = b""
        """Bytes of the chunk from `_start` on, which were read last."""

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes; those that are in the last window are not read again."""
        first = offset - self._start
        kept = b""
        if 0 <= first < len(self._data):
            kept = self._data[first : first + length]
        if len(kept) == length:
            return kept
        return kept + self._read(offset + len(kept), length - len(kept))

    def plain(self, position: int, end: int, values: int) -> PageRun | None:
        """Read pages in PLAIN form, of which the first one begins at `position` and ends at `end`,
        up to one that reaches this number of values. None if it is not read here."""
        if not self.is_able:
            return None
        length = max(end - position, min(self._window, self._end - position))
        self._fill(position, length)
        run = self._collect(self._data, _pages.PLAIN, 0, values)
        if run is None:
            # The other pages of the chunk are probably like it.
            self.is_able = False
        elif run.span.pages > 1:
            self._window = min(self._window * _GROWTH, _LARGEST_WINDOW)
        return run

    def small_indices(self, position: int, values: int) -> PageSpan:
        """Measure pages that refer to the dictionary, from `position` on."""
        if not self.is_able:
            return _NO_PAGES
        self._fill(position, min(self._window, self._end - position))
        end = self._end - position
        return PageSpan(*_pages.measure(self._data, _pages.INDICES, values, end))

    def indices(self, position: int, span: PageSpan, num_entries: int) -> PageRun | None:
        """Read pages that refer to a dictionary with so many entries. None if they are not all
        read here."""
        if not self.is_able:
            return None
        data = self.read(position, span.bytes)
        run = self._collect(data, _pages.INDICES, num_entries, span.values)
        if run is None or run.span.bytes != span.bytes:
            return None
        return run

    def _fill(self, position: int, length: int) -> None:
        self._data = self.read(position, length)
        self._start = position

    def _collect(self, data: bytes, form: int, num_entries: int, values: int) -> PageRun | None:
        """Read the pages of a form in these bytes; None if the first one is not read here."""
        column = self._column
        *span, num_present, content, present = _pages.collect(
            data,
            form,
            self._codec,
            COMPILED_CODECS,
            column.width or 0,
            column.max_definition,
            column.max_repetition,
            num_entries,
            values,
        )
        run = PageRun(PageSpan(*span), num_present, memoryview(content), present)
        return run if run.span.pages else None
