"""The values of one column chunk as the bytes that a Bloom filter hashes (parquet-format
BloomFilter.md and Encodings.md, "Plain").

The hash covers the PLAIN form of the *physical* type. pyarrow decodes the pages, but would convert
decimals, timestamps, UUIDs or narrow integers to its own types. So it gets a footer with one
column, in which the schema has no logical types and INT96 is FIXED_LEN_BYTE_ARRAY(12). The result
is the values as stored in the pages.

They come in batches that keep memory flat, whatever a row group contains (`batches`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.parquet import equals, int96, statistics
from sbbf_tool.parquet.batches import FEWEST_BYTES, plan_batches
from sbbf_tool.parquet.columns import Column, ensure_readable
from sbbf_tool.parquet.comparison import Pairs
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.idl.ttypes import (
    ColumnMetaData,
)
from sbbf_tool.parquet.narrow_file import build_narrow_file
from sbbf_tool.parquet.pages import (
    ChunkPages,
    StoredPage,
    read_pages,
)
from sbbf_tool.parquet.rewritten_pages import RewrittenPages
from sbbf_tool.parquet.statistics import Extremes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.bloom.interface import ValueHasher


STREAM_BUFFER_BYTES = 1 << 20
_ROWS_OF_A_GLANCE = 256


class PlainValues:
    """A run of non-null values of a column; `len` returns their number. A BOOLEAN value takes one
    byte, as arrow-rs hashes it."""

    def __init__(
        self,
        column: Column,
        array: pa.Array,
        rows: NDArray[np.int64] | None,
        *,
        normalised_intervals: bool,
    ) -> None:
        self.column = column
        self.rows = rows
        """Number of the row of each value in its row group, if requested."""
        self._width = 1 if column.physical == "BOOLEAN" else column.width
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        self._array = array
        self._normalised_intervals = normalised_intervals

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, position: int) -> bytes:
        """Return the plain bytes of one value."""
        if self._width is not None:
            start = position * self._width
            plain = self._fixed(self._width)
            return bytes(plain[start : start + self._width])
        value = self._array[position]
        if isinstance(value, pa.DictionaryScalar):
            value = value.value
        return bytes(value.as_buffer())

    def are_equal(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return of which pairs the value has the plain bytes."""
        if self._width is not None:
            return pairs.are_equal_fixed(self._fixed(self._width), self._width)
        array = self._array
        places = pairs.places
        if isinstance(array, pa.DictionaryArray):
            places = _indices(array)[places]
            array = array.dictionary
        data, window, size = _variable(array)
        offsets = np.frombuffer(window, f"i{size}")
        return pairs.are_equal_spans(data, offsets[places], offsets[places + 1])

    def after(self, position: int) -> PlainValues:
        """Return the values from this position on."""
        rows = None if self.rows is None else self.rows[position:]
        return PlainValues(
            self.column,
            self._array.slice(position),
            rows,
            normalised_intervals=self._normalised_intervals,
        )

    def hashes(self, hasher: ValueHasher = hashing) -> memoryview:
        """Hash every value, in order, with XXH64 as the format requires, unless `hasher` is that of
        a draft."""
        if self._width is not None:
            return hasher.hash_fixed(self._fixed(self._width), self._width)
        if not isinstance(self._array, pa.DictionaryArray):
            return hasher.hash_variable(*_variable(self._array))
        hashes_of_entries = hasher.hash_variable(*_variable(self._array.dictionary))
        hashes_by_index: NDArray[np.uint64] = np.frombuffer(hashes_of_entries, np.uint64)
        hashes: NDArray[np.uint64] = hashes_by_index[_indices(self._array)]
        return hashes.data.cast("B").cast("Q")

    def extremes(self) -> Extremes | None:
        """Find the smallest and the largest value; None for columns without an order, and if all
        values are NaN."""
        if self._width is not None:
            return statistics.of_fixed(self.column, self._fixed(self._width))
        array = self._array
        if isinstance(array, pa.DictionaryArray):
            counts = np.bincount(_indices(array), minlength=len(array.dictionary))
            is_used = counts > 0
            array = array.dictionary.filter(pa.array(is_used))
        return statistics.of_variable(self.column, *_variable(array))

    def hashes_of_equals(self) -> memoryview:
        """Hash the bytes that mean one of these values but are not stored for it: see `equals`. The
        hashes are in no particular order."""
        plain = memoryview(b"")
        if self._width is not None:
            plain = self._fixed(self._width)
        return equals.hashes_of(self.column, plain, normalised_intervals=self._normalised_intervals)

    def hashes_shown(self, hasher: ValueHasher) -> memoryview:
        """Hash the number that readers show for each value of a column of narrow integers."""
        assert self._width is not None
        numbers = equals.numbers_shown(self.column, self._fixed(self._width))
        assert numbers is not None
        _, shown = numbers
        return hasher.hash_fixed(shown.tobytes(), self._width)

    def hashes_of_instants_rounded_down(self) -> memoryview:
        """Hash the rounded-down form of the INT96 values that are stored in another form."""
        forms = int96.rounded_down(self._fixed(int96.INT96_BYTES))
        return hashing.hash_fixed(forms, int96.INT96_BYTES)

    def equal_floats(self) -> list[bytes]:
        """Return the plain bytes of floating-point numbers that mean one of these values, stored or
        not: both zeros, canonical NaNs."""
        if self._width is None:
            return []
        return equals.of_floats(self.column, self._fixed(self._width))

    def are_nan(self) -> NDArray[np.bool_]:
        """Mark the values that are NaN."""
        numbers = None
        if self._width is not None:
            numbers = equals.floats(self.column, self._fixed(self._width))
        return np.zeros(len(self), np.bool_) if numbers is None else np.isnan(numbers)

    def fixed(self) -> memoryview:
        """Return the plain bytes of values of a fixed width, back to back."""
        assert self._width is not None
        return self._fixed(self._width)

    def array(self) -> pa.Array:
        """Return the values as pyarrow has decoded them."""
        return self._array

    def _fixed(self, width: int) -> memoryview:
        start = self._array.offset * width
        end = start + len(self) * width
        _, values = self._array.buffers()
        return memoryview(values)[start:end]


def _variable(array: pa.Array) -> tuple[memoryview | bytes, memoryview, int]:
    """Return the data, the offsets into it, and the bytes of an offset."""
    _, offsets, data = array.buffers()
    size = 8 if pa.types.is_large_binary(array.type) else 4
    first = array.offset
    last = first + len(array)
    window = memoryview(offsets)[first * size : (last + 1) * size]
    view = b"" if data is None else memoryview(data)
    return view, window, size


def _indices(array: pa.DictionaryArray) -> NDArray[Any]:
    return np.asarray(array.indices)


def read_chunk(
    footer: Footer, row_group: int, column: Column, pages: ChunkPages, *, with_rows: bool = False
) -> Generator[PlainValues, None, None]:
    """Read all non-null values of a column chunk, batch by batch, with the rows that have them if
    `with_rows`. Raises UnreadableError if its pages cannot be decoded.

    Only the chunk's own bytes are read from the stream of `pages`. Pages that pyarrow does not
    decode are rewritten (`rewritten_pages`).
    """
    place = f"column {column.name}, row group {row_group}"
    ensure_readable(column, place)
    num_read = 0
    try:
        for values in _decode(pages, footer, row_group, column, with_rows=with_rows):
            num_read += len(values)
            yield values
        return
    except UnreadableError as error:
        if type(error) is not UnreadableError:
            raise
        problem = error.at(place=place)
    try:
        rewritten = RewrittenPages(pages, column)
        for values in _decode(rewritten, footer, row_group, column, with_rows=with_rows):
            num_again = min(num_read, len(values))
            num_read -= num_again
            if num_again < len(values):
                yield values.after(num_again)
    except UnreadableError as error:
        # Without a cause, it is a contradiction between footer and pages, which explains what
        # pyarrow says.
        explanation = error.at(place=place) if error.__cause__ is None else problem
        raise explanation from problem


_Leaves: TypeAlias = "tuple[pa.Array, NDArray[np.int64] | None]"
"""Non-null values, and the number of the row of each."""


def _decode(
    pages: ChunkPages | RewrittenPages,
    footer: Footer,
    row_group: int,
    column: Column,
    *,
    with_rows: bool,
) -> Iterator[PlainValues]:
    group = footer.row_group(row_group)
    if not group.num_rows:
        return
    place = f"column {column.name}, row group {row_group}"
    normalised = equals.has_interval_mark(footer, column)
    try:
        with ErrorPlace(None, place), pages.open_arrow() as stream:
            narrow_file = build_narrow_file(footer, row_group, column, pages.meta)
            metadata = pq.read_metadata(pa.BufferReader(narrow_file))
            chunk = _Chunk(stream, metadata, with_rows=with_rows)
            for array, rows in _read_arrays(chunk, column, pages.meta, group.num_rows):
                yield PlainValues(column, array, rows, normalised_intervals=normalised)
    except (pa.ArrowException, OSError, NotImplementedError) as error:
        # Damaged pages raise any of these; pyarrow also raises the last two if it was built without
        # the codec or the encoding.
        reason = " ".join(str(error).split())
        raise UnreadableError(f"pyarrow cannot decode the pages ({reason})", place=place) from error
    if chunk.num_decoded_rows != group.num_rows:
        # Pages may be missing, or pyarrow took an empty page for the end, as version 26 does if
        # lists begin with one. Either way, a filter would miss values that another reader may find.
        counts = f"{chunk.num_decoded_rows:,} rows come out, the row group has {group.num_rows:,}"
        raise UnreadableError(f"the pages cannot be decoded ({counts})", place=place)


def _read_arrays(
    chunk: _Chunk, column: Column, meta: ColumnMetaData, num_rows: int
) -> Iterator[_Leaves]:
    """Read all non-null values of a chunk of `num_rows` rows, as arrays of a suitable size."""

    def pages() -> Iterator[StoredPage]:
        return read_pages(chunk.read, meta)

    plan = plan_batches(column, meta, num_rows, pages, chunk.longest_in_dictionary)
    if plan.as_dictionary:
        arrays = chunk.leaves(plan.rows, as_dictionary=True)
        first = next(arrays, None)
        if first is None:
            return
        header = next(pages()).header.dictionary_page_header
        first_array, _ = first
        if header is not None and len(first_array.dictionary) == header.num_values:
            for array, rows in chain([first], arrays):
                # pyarrow decodes an index past the end of the dictionary without an error.
                array.validate(full=True)
                yield array, rows
            return
        # pyarrow removes repeated entries from the dictionary, but not from the indices, which then
        # mean other values. DuckDB 2.0.1 writes such dictionaries for an ENUM, with an empty text
        # in place of each value that the row group does not have.
        plan = plan_batches(
            column, meta, num_rows, pages, chunk.longest_in_dictionary, expand_dictionary=True
        )
        chunk.num_decoded_rows = 0
    yield from _merge_arrays(chunk.leaves(plan.rows, as_dictionary=False))


class _Chunk:
    """One column chunk for pyarrow: a stream, and metadata that contain no other chunk."""

    def __init__(
        self, stream: pa.NativeFile, metadata: pq.FileMetaData, *, with_rows: bool = False
    ) -> None:
        self._stream = stream
        self._metadata = metadata
        self._with_rows = with_rows
        self.num_decoded_rows = 0

    def read(self, offset: int, length: int) -> bytes:
        data: bytes = self._stream.read_at(length, offset)
        return data

    def leaves(self, batch_rows: int, *, as_dictionary: bool) -> Iterator[_Leaves]:
        """Iterate over the non-null leaf values, `batch_rows` rows per array; no array is empty."""
        reader = pq.ParquetFile(
            self._stream,
            metadata=self._metadata,
            read_dictionary=[0] if as_dictionary else None,
            buffer_size=STREAM_BUFFER_BYTES,
            pre_buffer=False,
        )
        for batch in reader.iter_batches(batch_rows, use_threads=False):
            first_row = self.num_decoded_rows
            self.num_decoded_rows += len(batch)
            rows: NDArray[np.int64] | None = None
            if self._with_rows:
                rows = np.arange(first_row, self.num_decoded_rows)
            array, rows = _leaves(batch.column(0), rows)
            if len(array):
                yield array, rows

    def longest_in_dictionary(self) -> int:
        """Return the bytes of the longest value in the dictionary page, provided that the first
        data page refers to it."""
        chunk = _Chunk(self._stream, self._metadata)
        first = next(chunk.leaves(_ROWS_OF_A_GLANCE, as_dictionary=True), None)
        if first is None:
            return 0
        array, _ = first
        _, offsets, _ = _variable(array.dictionary)
        lengths = np.diff(np.frombuffer(offsets, np.int32))
        return int(lengths.max())


def _merge_arrays(arrays: Iterator[_Leaves]) -> Iterator[_Leaves]:
    """Merge the values into fewer arrays. If rows might be long but are not, each array has only a
    few values, and hashing it would take longer than decoding it.
    """
    to_merge = []
    size = 0
    for array, rows in arrays:
        to_merge.append((array, rows))
        size += array.nbytes
        if size >= FEWEST_BYTES:
            yield _merge(to_merge)
            to_merge = []
            size = 0
    if to_merge:
        yield _merge(to_merge)


def _merge(leaves: list[_Leaves]) -> _Leaves:
    if len(leaves) == 1:
        return leaves[0]
    merged = pa.concat_arrays([array for array, _ in leaves])
    rows = [rows for _, rows in leaves if rows is not None]
    if not rows:
        return merged, None
    return merged, np.concatenate(rows)


def _leaves(array: pa.Array, rows: NDArray[np.int64] | None) -> _Leaves:
    """Return the leaf values below lists and structs, without nulls, and their rows.

    A required leaf has no nulls of its own, but the struct around it may be null, which `flatten`
    handles.
    """
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            array = array.flatten()[0]
            continue
        if rows is not None:
            lengths = array.value_lengths().fill_null(0)
            rows = rows.repeat(np.asarray(lengths))
        array = array.flatten()
    if not array.null_count:
        return array, rows
    if rows is not None:
        rows = rows[np.asarray(array.is_valid())]
    return array.drop_null(), rows
