"""The values of one column chunk, read in the cheapest way.

dictionary and PLAIN pages     if the chunk has no other pages: nothing is decoded, and most pages
                               are not read
all pages, decoded by pyarrow  otherwise
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import equals, plain_pages
from sbbf_tool.parquet.idl.ttypes import PageType
from sbbf_tool.parquet.pages import is_dictionary_encoded
from sbbf_tool.parquet.plain_page import PlainPage
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.parquet.statistics import Extremes, StatisticsCheck


class _Run(NamedTuple):
    """Values of a chunk that were read together."""

    num_values: int
    """How many of them are counted."""
    hashes: memoryview = memoryview(b"")
    hashes_of_equals: memoryview = memoryview(b"")
    """Hashes of the values that are equal to them, but stored as other bytes."""
    extremes: Extremes | None = None
    """None if no check needs them."""


class StoredValues:
    """A chunk's values as hashes; threads must not share it. Raises UnreadableError if the values
    cannot be read.

    A `check` receives the values too, and compares them with the footer's statistics. With
    `counts_all`, references to a dictionary are read too: they are counted instead of its entries,
    and must refer to one of these.
    """

    def __init__(
        self,
        file: ParquetFile,
        key: ChunkKey,
        check: StatisticsCheck | None = None,
        *,
        counts_all: bool = False,
    ) -> None:
        self._file = file
        self._check = check
        self._counts_all = counts_all
        self._row_group = key[0]
        self._column = file.footer.columns[key[1]]
        self._pages = file.pages(self._row_group, self._column)
        self._normalised = equals.has_interval_mark(file.footer, self._column)
        self.count = 0
        """Number of values behind the last `hashes`: non-null values, and, unless all are counted,
        each value of a dictionary once."""
        self.are_decoded = False
        """Whether the last `hashes` came from pages that pyarrow decoded."""
        self.page_types: set[int] = set()
        """Types of the pages that were read without pyarrow."""
        self.bytes_read = 0
        """Bytes of the chunk that were read."""
        self.dictionary: PlainPage | None = None
        """The dictionary, if the footer states that all values are in it."""
        if is_dictionary_encoded(self._pages.meta):
            with self._locate_errors():
                self.dictionary = self._plain_chunk().dictionary()

    @property
    def non_null_count(self) -> int | None:
        """Non-null values of the chunk, counted by the last `hashes`; None if a dictionary stood
        for some of them."""
        if self.are_decoded or PageType.DICTIONARY_PAGE not in self.page_types:
            return self.count
        return None

    def hashes(self) -> Iterator[memoryview]:
        """Yield all hashes that go into a filter of these values, run by run; some may appear
        twice."""
        for run in self._runs():
            yield run.hashes
            yield run.hashes_of_equals

    def stored_hashes(self) -> Generator[memoryview, None, None]:
        """Yield the hashes of the stored values alone, without those of their equals; some may
        appear twice."""
        for run in self._runs():
            yield run.hashes

    def _runs(self) -> Iterator[_Run]:
        """Yield all values, run by run, and count them."""
        self.are_decoded = False
        with self._locate_errors():
            if plain_pages.may_be_plain(self._column, self._pages.meta):
                try:
                    yield from self._count_values(self._plain_pages())
                    return
                except plain_pages.NotPlainError:
                    pass  # the hashes so far are of stored values, so they do no harm
            self.are_decoded = True
            yield from self._count_values(self._decode_pages())

    def _count_values(self, runs: Iterator[_Run]) -> Iterator[_Run]:
        self.count = 0
        for run in runs:
            yield run
            if self._check is not None:
                self._check.add(run.extremes)
            self.count += run.num_values

    def _plain_pages(self) -> Iterator[_Run]:
        for page in self._plain_chunk().pages(self.dictionary):
            if isinstance(page, PlainPage):
                yield self._run_of(page)
            elif self._counts_all:
                _, indices = page()
                yield _Run(len(indices))

    def _run_of(self, page: PlainPage) -> _Run:
        self.page_types.add(page.page_type)
        num_values = len(page)
        if self._counts_all and page.page_type == PageType.DICTIONARY_PAGE:
            num_values = 0
        hashes = page.hashes
        hashes_of_equals = page.hashes_of_equals(normalised_intervals=self._normalised)
        extremes = None if self._check is None else page.extremes()
        return _Run(num_values, hashes, hashes_of_equals, extremes)

    def _plain_chunk(self) -> plain_pages.PlainChunk:
        return plain_pages.PlainChunk(self._pages._replace(read=self._read), self._column)

    def _decode_pages(self) -> Iterator[_Run]:
        self.bytes_read += self._pages.bytes
        for run in self._file.values(self._row_group, self._column):
            hashes = run.hashes()
            hashes_of_equals = run.hashes_of_equals()
            extremes = None if self._check is None else run.extremes()
            yield _Run(len(run), hashes, hashes_of_equals, extremes)

    def _read(self, offset: int, length: int) -> bytes:
        data = self._pages.read(offset, length)
        self.bytes_read += len(data)
        return data

    def _locate_errors(self) -> AbstractContextManager[None]:
        return self._file.locate_errors(
            lambda: f"column {self._column.name}, row group {self._row_group}"
        )
