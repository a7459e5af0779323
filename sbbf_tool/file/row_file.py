"""Rows of a Parquet file that this package wrote, such as a report, read row group by row group.

The file may have been replaced or damaged, so reading it is bounded: by the number of rows of a row group, and by the bytes to which the
pages of a row group decompress. Text is decoded to a dictionary, so that a value is in memory once, however many rows repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.page_sizes import open_checked

_MOST_ROWS = 1 << 20
"""Rows of a row group."""
_MOST_BYTES = 256 << 20
"""Decompressed bytes of the pages of a row group that are read."""


class RowFile:
    """An open file of rows. Use as a context manager. Methods raise UnreadableError if the bytes contradict the format or the limits."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._plain_bytes = 0
        self._resources = ExitStack()
        try:
            with self._convert_errors():
                self._open()
        except BaseException:
            self._resources.close()
            raise

    def _open(self) -> None:
        file = self._resources.enter_context(ParquetFile.open(self.path))
        footer = file.footer
        for number in range(footer.num_row_groups):
            if not 0 <= (footer.num_rows(number) or 0) <= _MOST_ROWS:
                raise UnreadableError(f"a row group has more than {_MOST_ROWS:,} rows", file=self.path)
        chunks = (footer.chunk(number, column.index) for number in range(footer.num_row_groups) for column in footer.columns)
        metas = [chunk for chunk in chunks if chunk is not None]
        stream = self._resources.enter_context(open_checked(file.source.open_arrow, metas, self._ensure_size))
        text = [column.name for column in footer.columns if column.physical == "BYTE_ARRAY"]
        self._reader = parquet.ParquetFile(stream, read_dictionary=text)
        self.num_row_groups: int = self._reader.num_row_groups

    def read(self, row_group: int, columns: Sequence[str]) -> dict[str, list[Any]]:
        """Return the values of these columns, all of which must exist, as Python objects."""
        self._plain_bytes = 0
        with self._convert_errors():
            table = self._reader.read_row_group(row_group, columns=list(columns), use_threads=False)
            return {name: list(_values(table.column(name))) for name in columns}

    def close(self) -> None:
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ensure_size(self, stored: int, plain: int) -> None:
        self._plain_bytes += max(stored, plain)
        if self._plain_bytes > _MOST_BYTES:
            raise UnreadableError(f"the pages of a row group decompress to more than {_MOST_BYTES:,} bytes")

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert the errors of pyarrow, which decodes some values only when they are used."""
        try:
            yield
        except MissingError:
            raise
        except SbbfError as error:
            raise UnreadableError(error.message, file=self.path) from error
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise UnreadableError(" ".join(str(error).split())[:200], file=self.path) from error


def _values(column: pa.ChunkedArray) -> Iterator[Any]:
    for array in column.chunks:
        if isinstance(array, pa.DictionaryArray):
            entries = array.dictionary.to_pylist()
            yield from (None if index is None else entries[index] for index in array.indices.to_pylist())
        else:
            yield from array.to_pylist()
