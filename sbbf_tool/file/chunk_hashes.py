"""The values of one column chunk, read in the cheapest way.

dictionary and PLAIN pages     if the chunk has no other pages: nothing is decoded, and most pages
                               are not read
all pages, decoded by pyarrow  otherwise
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import equals, plain_pages
from sbbf_tool.parquet.idl.ttypes import PageType
from sbbf_tool.parquet.pages import is_dictionary_encoded
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.parquet.statistics import Extremes, StatisticsCheck

_Run: TypeAlias = tuple[int, memoryview, memoryview, Extremes | None]
"""The number of values, their hashes, the hashes of their equals, and their extremes if a check
needs them."""


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
        self._row_group, self._column = key[0], file.footer.columns[key[1]]
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
        self.dictionary: plain_pages.PlainPage | None = None
        """The dictionary, if the footer states that all values are in it."""
        if is_dictionary_encoded(self._pages.meta):
            with self._locate_errors():
                self.dictionary = self._plain_chunk().dictionary()

    @property
    def non_null_count(self) -> int | None:
        """Non-null values of the chunk, counted by the last `hashes`; None if a dictionary stood
        for some of them."""
        return (
            self.count
            if self.are_decoded or PageType.DICTIONARY_PAGE not in self.page_types
            else None
        )

    def hashes(self) -> Iterator[memoryview]:
        """Yield all hashes that go into a filter of these values, run by run; some may appear
        twice."""
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

    def stored_hashes(self) -> Generator[memoryview, None, None]:
        """Yield the hashes of the stored values alone, without those of their equals; some may
        appear twice."""
        hashes = self.hashes()
        for of_values in hashes:
            yield of_values
            next(hashes)

    def _count_values(self, runs: Iterator[_Run]) -> Iterator[memoryview]:
        self.count = 0
        for count, hashes, hashes_of_equals, extremes in runs:
            yield hashes
            yield hashes_of_equals
            if self._check is not None:
                self._check.add(extremes)
            self.count += count

    def _plain_pages(self) -> Iterator[_Run]:
        for page in self._plain_chunk().pages(self.dictionary):
            if isinstance(page, plain_pages.PlainPage):
                self.page_types.add(page.page_type)
                count = (
                    0
                    if self._counts_all and page.page_type == PageType.DICTIONARY_PAGE
                    else len(page)
                )
                equals_of_page = page.hashes_of_equals(normalised_intervals=self._normalised)
                yield (
                    count,
                    page.hashes,
                    equals_of_page,
                    page.extremes() if self._check is not None else None,
                )
            elif self._counts_all:
                yield len(page()[1]), memoryview(b""), memoryview(b""), None

    def _plain_chunk(self) -> plain_pages.PlainChunk:
        return plain_pages.PlainChunk(
            self._read, self._column, self._pages.meta, self._pages.ensure_size
        )

    def _decode_pages(self) -> Iterator[_Run]:
        from sbbf_tool.parquet.values import read_chunk

        self.bytes_read += self._pages.bytes
        for run in read_chunk(self._file.footer, self._row_group, self._column, self._pages):
            yield (
                len(run),
                run.hashes(),
                run.hashes_of_equals(),
                run.extremes() if self._check is not None else None,
            )

    def _read(self, offset: int, length: int) -> bytes:
        data = self._pages.read(offset, length)
        self.bytes_read += len(data)
        return data

    def _locate_errors(self) -> AbstractContextManager[None]:
        return self._file.locate_errors(
            lambda: f"column {self._column.name}, row group {self._row_group}"
        )
