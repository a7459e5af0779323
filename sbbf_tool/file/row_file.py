"""Rows of a Parquet file that this package wrote, such as a report.

The file may have been replaced or damaged, so reading it is bounded: by the number of rows of a row
group, and by the bytes to which the pages of a row group decompress. Text is decoded to a
dictionary, so that a value is in memory once, however many rows repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.checked_streams import open_checked

_MOST_ROWS = 1 << 20
"""Rows of a row group."""
_MOST_BYTES = 256 << 20
"""Decompressed bytes of the pages of a row group that are read."""


PYARROW_ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
)
"""What pyarrow raises for bytes that contradict the format."""


def read_rows(path: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Read the values of these columns, all of which must exist, as Python objects.

    Raises UnreadableError if the bytes contradict the format or the limits.
    """
    try:
        with ParquetFile.open(path) as file:
            return [*chain.from_iterable(_read_row_groups(file, columns))]
    except MissingError:
        raise
    except SbbfError as error:
        raise UnreadableError(error.message, file=path) from error
    except PYARROW_ERRORS as error:
        raise UnreadableError(" ".join(str(error).split())[:200], file=path) from error


def _read_row_groups(
    file: ParquetFile, columns: Sequence[str]
) -> Iterator[Iterator[tuple[Any, ...]]]:
    plain_bytes = 0

    def ensure_size(stored: int, plain: int) -> None:
        nonlocal plain_bytes
        plain_bytes += max(stored, plain)
        if plain_bytes > _MOST_BYTES:
            raise UnreadableError(
                f"the pages of a row group decompress to more than {_MOST_BYTES:,} bytes"
            )

    footer = file.footer
    for number in range(footer.num_row_groups):
        num_rows = footer.num_rows(number) or 0
        if not 0 <= num_rows <= _MOST_ROWS:
            raise UnreadableError(f"a row group has more than {_MOST_ROWS:,} rows")
    with open_checked(file.source.open_arrow, footer.open_chunks(), ensure_size) as stream:
        text = [column.name for column in footer.columns if column.physical == "BYTE_ARRAY"]
        reader = parquet.ParquetFile(stream, read_dictionary=text)
        for number in range(reader.num_row_groups):
            plain_bytes = 0
            table = reader.read_row_group(number, columns=list(columns), use_threads=False)
            values_by_column = (_values(table.column(name)) for name in columns)
            yield zip(*values_by_column, strict=True)


def _values(column: pa.ChunkedArray) -> Iterator[Any]:
    for array in column.chunks:
        if isinstance(array, pa.DictionaryArray):
            entries = array.dictionary.to_pylist()
            for index in array.indices.to_pylist():
                yield None if index is None else entries[index]
        else:
            yield from array.to_pylist()
