"""A Parquet file that an operation works on: its bytes within reach, its footer parsed, its filters found.

The parquet room knows bytes and not where they come from; the storage room knows files and not what is in them. They meet here, and
errors of the first are told here which file they are about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter, parse_header
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, parse_tail
from sbbf_tool.storage import places
from sbbf_tool.storage.source import Source

# A filter of this size comes with its header: a second request would cost more.
_SMALL_FILTER = 4 << 10


class ParquetFile:
    """An open file and its footer. Use as a context manager."""

    def __init__(self, source: Source) -> None:
        self.source = source
        with self.named():
            self.footer = self._read_footer()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ParquetFile:
        return cls.of(places.open_source(path))

    @classmethod
    def of(cls, source: Source) -> ParquetFile:
        """The file of a source, which is closed with it, or here where it is none."""
        try:
            return cls(source)
        except UnreadableError as error:
            source.close()
            if places.has_journal(source.name):
                error.message, error.hint = f"an append to it was interrupted ({error.message})", f"sbbf repair {source.name} cuts it back"
            raise
        except BaseException:
            source.close()
            raise

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.source.close()
        if isinstance(error, SbbfError):
            error.at(file=self.name)

    @property
    def name(self) -> str:
        return self.source.name

    def _read_footer(self) -> Footer:
        size = self.source.size
        tail = parse_tail(self.source.read(max(0, size - TAIL_BYTES), min(size, TAIL_BYTES)), size)
        if tail.encrypted:
            raise RefusedError("its footer is encrypted", hint="this needs the file's keys, which cannot be given yet")
        return Footer(self.source.read(tail.start, tail.length), tail.start)

    def stored_filter(self, row_group: int, column: Column) -> StoredFilter | None:
        """The filter of a chunk; None where the footer names none. Raises UnreadableError where it cannot be one."""
        place = self.footer.filter_place(row_group, column.index)
        if place is None:
            return None
        with self.named(lambda: f"column {column.name}, row group {row_group}, filter at byte {place.offset}"):
            if place.offset >= self.footer.end:
                raise UnreadableError(f"outside the file, which has {self.source.size:,} bytes")
            header = parse_header(self.source.read(place.offset, min(HEADER_GUESS, self.source.size - place.offset)))
            stored = StoredFilter(row_group, column.index, place, header)
            if stored.end > self.footer.start:
                where = "the footer" if stored.end <= self.source.size else "the end of the file"
                raise UnreadableError(f"a bitset of {header.num_bytes:,} bytes would run into {where}")
            return stored

    def expect_filters(self, columns: Iterable[Column], *, whole: bool = False, also: Iterable[tuple[int, int]] = ()) -> None:
        """Say that these columns' filters, or their headers, will be read soon, and `also` these ranges: all then come at a time."""
        self.source.prefetch(chain(self._filter_ranges(columns, whole), also))

    def _filter_ranges(self, columns: Iterable[Column], whole: bool) -> Iterator[tuple[int, int]]:
        for column in columns:
            for row_group in range(self.footer.num_row_groups):
                place = self.footer.filter_place(row_group, column.index)
                if place is not None:
                    length = place.length or _SMALL_FILTER
                    yield place.offset, length if whole else min(length, _SMALL_FILTER)

    def encryption_of(self, row_group: int, column: Column) -> str | None:
        """Why a chunk's bytes mean nothing without a key; None where they are in the clear."""
        chunk = self.footer.metadata.row_groups[row_group].columns[column.index]
        return "its column is encrypted" if chunk.crypto_metadata is not None or chunk.meta_data is None else None

    def named(self, place: str | Callable[[], str] | None = None) -> _Named:
        """A block in which errors, of rooms that know bytes only, are told which file and place they are about."""
        return _Named(self.name, place)


class _Named:
    """See `ParquetFile.named`. A class, since a lake's every file enters three, and a place is put into words only when it is needed."""

    __slots__ = ("_file", "_place")

    def __init__(self, file: str, place: str | Callable[[], str] | None) -> None:
        self._file = file
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, SbbfError):
            place = self._place() if callable(self._place) else self._place
            if place and error.place and not error.place.startswith(place):
                error.place = f"{place}, {error.place}"
            error.at(file=self._file, place=place)
